package main

import (
	"fmt"
	"slices"
	"time"

	"provegym/gym"
	"provegym/gym/vector"
	"provegym/sandbox"
)

// What one row does while the others work: it forks, fills memory, floods its output and sleeps for ever, all at once, or it
// only sleeps.
const (
	attack  = `f() { f | f & }; f; (a=x; while :; do a=$a$a; done) & yes flood & sleep 1000000`
	sleeper = `sleep 1000000`
	work    = `echo hello | wc -c`

	neighbourRows   = 64
	neighbourReady  = 16 // rows that recv waits for
	neighbourWindow = 5 * time.Second
	neighbourPairs  = 5
	neighbourTurns  = 2 // of four windows a pair: a window alone differs from the next by a tenth
)

// neighbours compares how many commands 63 rows of an asynchronous batch get done beside a hostile row and beside a sleeping one. Every
// box, the hostile one too, may use a tenth of a processor.
func neighbours(s *sandbox.Sandbox) {
	if c := s.Capabilities(); c.Grade("cpu") != sandbox.Enforced {
		fmt.Println("beside a hostile row: left out: nothing caps a box's share of the processors here; provegym doctor says why")
		return
	}
	ends := map[sandbox.Reason]int{}
	b, err := newBatch(s, ends)
	fatal(err)
	defer b.v.Close()
	b.window(sleeper) // warms up
	clear(ends)
	var ratios, beside, quiet []float64
	for range neighbourPairs {
		var x, y float64
		for range neighbourTurns { // in the order in which a machine that gets slower or faster favours neither
			y += b.window(sleeper)
			x += b.window(attack) + b.window(attack)
			y += b.window(sleeper)
		}
		beside, quiet, ratios = append(beside, x/(2*neighbourTurns)), append(quiet, y/(2*neighbourTurns)), append(ratios, x/y)
	}
	for _, s := range [][]float64{beside, quiet, ratios} {
		slices.Sort(s)
	}
	mid := neighbourPairs / 2
	report(row{Name: "63 rows beside a hostile one, over a sleeping one", Value: ratios[mid], Goal: 0.9, Gate: 0.8, Higher: true, Unit: "x",
		Note: fmt.Sprintf("%.0f/s against %.0f/s, %.2f to %.2f; ends of row 0: %v", beside[mid], quiet[mid], ratios[0], ratios[len(ratios)-1], ends)})
}

// batch is rows that run commands, each in a fresh box.
type batch struct {
	v  *vector.Vector
	io *vector.IO
}

func newBatch(s *sandbox.Sandbox, ends map[sandbox.Reason]int) (*batch, error) {
	v, err := vector.New(vector.Config{Sampler: vector.Sampler{Pack: commands(s, ends)}, NumEnvs: neighbourRows})
	if err != nil {
		return nil, err
	}
	const k = neighbourRows
	b := &batch{v, &vector.IO{ActionOff: make([]uint32, k+1), Reward: make([]float64, k), Terminated: make([]uint8, k), Truncated: make([]uint8, k),
		Outcome: make([]uint8, k), Limit: make([]uint8, k), Components: make([]uint8, k), Calls: make([]int32, k), Began: make([]uint8, k),
		Obs: vector.Obs{Text: &vector.Text{}}, Final: vector.Obs{Text: &vector.Text{}}, Task: &vector.Text{}}}
	if err := v.Bind(b.io); err != nil {
		return nil, err
	}
	return b, v.Reset(make([]uint64, k), make([]uint8, k), nil)
}

// send gives row 0 its command and the others theirs.
func (b *batch) send(ids []uint32, first string) {
	b.io.ActionText = b.io.ActionText[:0]
	for i := range neighbourRows {
		command := work
		if i == 0 {
			command = first
		}
		b.io.ActionText = fmt.Appendf(b.io.ActionText, `{"tool":"run","args":{"command":%q}}`, command)
		b.io.ActionOff[i+1] = uint32(len(b.io.ActionText))
	}
	b.v.SetActionText(b.io.ActionText)
	fatal(b.v.Send(ids))
}

// window keeps all rows at work, row 0 with its command, and returns how many commands the others got done in a second.
func (b *batch) window(first string) float64 {
	ids := make([]uint32, neighbourRows)
	for i := range ids {
		ids[i] = uint32(i)
	}
	began := time.Now()
	b.send(ids, first)
	done, flying := 0, neighbourRows
	var took time.Duration
	for flying > 0 {
		n, err := b.v.Recv(ids, neighbourReady, -1)
		fatal(err)
		flying -= n
		if took = time.Since(began); took >= neighbourWindow {
			break
		}
		if done += n; slices.Contains(ids[:n], 0) {
			done--
		}
		b.send(slices.Clone(ids[:n]), first)
		flying += n
	}
	for flying > 0 {
		n, err := b.v.Recv(ids, flying, -1)
		fatal(err)
		flying -= n
	}
	return float64(done) / took.Seconds()
}

// still is a world in which nothing is.
type still struct{}

func (still) Clone() gym.World           { return still{} }
func (still) CopyFrom(gym.World)         {}
func (still) AppendDigest(*gym.Digester) {}

// commands is a pack of one tool, which runs a command in a fresh box.
func commands(s *sandbox.Sandbox, ends map[sandbox.Reason]int) *gym.Pack {
	spec := sandbox.Spec{CPUMilli: 100, WallTimeout: neighbourWindow, OutputBytes: 4 << 10, OutputMaxBytes: 1 << 30}
	never := gym.Predicate{Name: "never", Holds: func(*gym.Evidence) bool { return false }}
	p := &gym.Pack{
		Name: "commands", Title: "Commands", Version: 1, TextOnly: true, Hash: "bench", CheckHash: "bench",
		Types: []gym.Type{{Name: "command", Form: gym.FormText}},
		Tools: []gym.Tool{
			{
				Name: "run", Doc: "Runs a command.", Params: []gym.Param{{Name: "command", Doc: "what sh -c is given", Types: []gym.TypeID{0}}},
				Run: func(t *gym.Turn) error {
					command, _ := t.One(0)
					end, err := s.Run(ctx, spec, sandbox.Command{Argv: []string{"/bin/sh", "-c", command.Text}})
					if err != nil {
						return err
					}
					if command.Text == work && !end.OK() {
						return fmt.Errorf("ended with %v", &end)
					}
					if command.Text == attack { // row 0's alone, one after the other
						ends[end.Reason]++
					}
					t.Int("exit", int64(end.ExitCode))
					return nil
				},
			},
			{Name: "finish", Doc: "Ends it.", Finish: true, Run: func(t *gym.Turn) error { return nil }},
		},
		Families: []gym.Family{{Name: "commands"}},
		Limits:   func(gym.Condition) gym.Limits { return gym.Limits{Calls: 1 << 30, Wall: time.Hour, Bytes: 1 << 30} },
		Build: func(gym.Task) (*gym.Built, error) {
			return &gym.Built{World: still{}, Instruction: "Work.", Tools: gym.ToolSet(0).With(0).With(1), Graph: "one",
				Check: gym.Check{Goals: []gym.Predicate{never}, Collateral: never, Commit: never}}, nil
		},
	}
	fatal(p.Validate())
	return p
}
