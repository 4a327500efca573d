package vector

import (
	"errors"
	"fmt"
	"slices"

	"provegym/gym"
)

// ErrState says that a call comes at the wrong moment; its text says which one is due.
var ErrState = errors.New("not now")

// Autoreset says what a row does after its episode has ended; see the package comment.
type Autoreset uint8

const (
	NextStep Autoreset = iota
	SameStep
	Disabled
)

var autoresets = []string{"next_step", "same_step", "disabled"}

func (a Autoreset) String() string { return autoresets[a] }

// ParseAutoreset is the inverse of Autoreset.String.
func ParseAutoreset(s string) (Autoreset, error) {
	if i := slices.Index(autoresets, s); i >= 0 {
		return Autoreset(i), nil
	}
	return 0, fmt.Errorf("%w: autoreset %q; it is next_step, same_step or disabled", gym.ErrUnknown, s)
}

// MaxEnvs bounds the rows of a vector, MaxGroup the members of a group.
const (
	MaxEnvs  = 1 << 16
	MaxGroup = 1 << 10
)

// Config describes a vector.
type Config struct {
	Sampler          // which tasks rows draw for themselves
	NumEnvs   int    // rows
	GroupSize int    // consecutive rows that get the same tasks; 0 means 1; divides NumEnvs
	Source    Source // may be nil
	View      gym.View
	Recorder  gym.Recorder // may be nil
	Labels    gym.Labels   // of tasks that rows draw for themselves
	Autoreset Autoreset
	Workers   int // that step, the caller among them; 0 means one for each processor
}

// Source hands out tasks and is told how their episodes went: a curriculum, a search. The vector asks and tells in row order.
type Source interface {
	// Ask returns up to n jobs; rows for which there are none draw their own.
	Ask(n int) ([]Job, error)
	Tell(results []Result) error
}

// Job is a task to run.
type Job struct {
	Task   gym.Task
	Labels gym.Labels
	Item   int // the source's own number for it
}

// Result is the end of one episode of a job that a Source handed out.
type Result struct {
	Job
	Outcome gym.Outcome
	Success bool
}

// Validate lists everything that is wrong.
func (c *Config) Validate() error {
	var bad []error
	say := func(ok bool, format string, args ...any) {
		if !ok {
			bad = append(bad, fmt.Errorf("%w: "+format, append([]any{gym.ErrBadInput}, args...)...))
		}
	}
	say(c.NumEnvs >= 1 && c.NumEnvs <= MaxEnvs, "num_envs is %d; it must be from 1 to %d", c.NumEnvs, MaxEnvs)
	say(c.GroupSize >= 0 && c.GroupSize <= MaxGroup, "group_size is %d; it must be from 1 to %d", c.GroupSize, MaxGroup)
	say(c.GroupSize < 1 || c.NumEnvs%c.GroupSize == 0, "group_size %d does not divide num_envs %d", c.GroupSize, c.NumEnvs)
	say(c.Workers >= 0 && c.Workers <= 1024, "num_workers is %d; it must be from 0 to 1024", c.Workers)
	say(c.Pack == nil || slices.Contains(c.Pack.Views(), c.View), "the pack has no %s view: its arguments are free text", c.View)
	return errors.Join(bad...)
}
