// Package trace stores episodes in SQLite as they run. It implements gym.Recorder.
//
//	t, err := trace.Open("runs/a", trace.Run{Policy: "linear", Pack: pack.Hash}, trace.Options{})
//	ep, err := gym.NewEpisode(task, gym.Options{Recorder: t})
//	...                        // step until the end
//	n, err := t.Flush()        // n episodes are on disk now and survive kill -9
//	err = t.Close()
//
// # What is stored
//
// A row an episode, and its steps as compressed segments: the verbatim action, the reward, and a CRC-32C of the observation.
// Texts of observations and calls are not stored: an episode is a pure function of task and actions, so [Reader.Calls],
// [Reader.ExportJSONL] and [Reader.Replay] rebuild them. Of a pack that is not deterministic the steps keep instruction and results
// word for word, a table keeps the reward taken apart, and Replay leaves its episodes out. schema.sql says what each column means. An episode that was
// forked or restored also keeps the actions before the fork, so that it replays alone, whatever became of its parent. Of an
// episode that a language model played [Trace.Tokens] keeps the counts of tokens and, if given, the tokens: those no replay
// could rebuild.
//
// # Writing
//
// The goroutine that steps hands a buffer over and gets an empty one back; one goroutine writes, in transactions of about
// 1 MiB or 200 ms. It also computes digest and audits of episodes that have ended, which cost as much as several steps (see
// gym.LateRecorder). What waits to be written is bounded (64 MiB, 4096 episodes); beyond it the step blocks. Flush is the
// durability point.
//
// When a write fails (disk full, a sealed slot filled twice) the trace stops: the transaction is rolled back, nothing more is
// stored, Flush, Mark and Close return the error, and no further episode starts with this recorder. What an earlier Flush
// acknowledged is safe. Segment and End after Close panic: the caller closed the trace under a running episode.
//
// # Who may open what
//
// A file has one writing process, held by a lock file beside it that the kernel releases however the process ends; a second
// one gets ErrInUse and needs a file of its own. Inside the process, opening the same file again shares its writer, and
// each Open is a run of its own. Reading is free for everybody, while it is written too. But the process that records must
// read through this package, not through another copy of SQLite: POSIX locks belong to the process, and the other copy
// would drop them. The file must be on a local file system, as SQLite's write-ahead log asks.
//
// # Reading the source
//
// schema.sql, trace.go (Open, the recorder), writer.go (the queue), file.go (one SQLite file), resume.go, reader.go,
// slots.go, tokens.go, replay.go, verify.go, export.go.
package trace
