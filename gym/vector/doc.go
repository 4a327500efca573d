// Package vector steps n episodes of one pack at once, into buffers that the caller owns.
//
//	v, err := vector.New(vector.Config{Pack: pack, NumEnvs: 64, View: gym.Structured})
//	err = v.Bind(&vector.IO{Action: actions, Reward: rewards, ...})
//	err = v.Reset(seeds, nil, nil)
//	for {
//		choose(actions)
//		err = v.Step() // rewards, flags and observations are in the buffers now
//	}
//
// # Which task comes next
//
// A row that needs a task takes it from the queue, else from the Source (a curriculum, a search), else from its own stream:
// stream(key, "task", counter++), where the key is the row's seed. Tasks are handed out in row order before any of them
// starts, so who gets which does not depend on the number of workers. With GroupSize g, rows 0 to g-1, g to 2g-1 … are groups:
// the k-th episode of every member of a group is the same task, and the seed of the first member keys the group. What the split
// does not admit in this mode is never drawn; a task that turns out to be held out once it is built is drawn again.
//
// # Autoreset, as Gymnasium has it
//
//	mode       the step that ends an episode           the step after it
//	NextStep   shows its last observation              ignores the action, begins an episode: reward 0, no flags
//	SameStep   shows the next episode's first one;     is an ordinary step
//	           the last one is in IO.Final
//	Disabled   shows its last observation              is ErrState until Reset
//
// # What goes wrong
//
// A task that cannot be built, a tool that fails, a panic: the row ends as invalid and the batch goes on. A tool that does not
// return within Limits.Wall: the row ends truncated by the wall limit, goes on with a fresh Episode, and the runaway is told to
// stop at its next touch of its Turn. Go cannot kill it: a loop that touches nothing burns a core until the process ends.
//
// # Workers
//
// Packs declared Bounded are stepped by persistent workers, the caller among them, that spin for a moment and then park
// (see pool.go for the figures). Other packs run each row on a goroutine of its own, which a watchdog can leave behind.
//
// A Vector is used by one goroutine at a time. Reading order: config, task, row, io, vector, async, pool, runner, snapshot.
package vector
