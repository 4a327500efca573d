package gym

import (
	"errors"
	"fmt"
	"strings"
)

// Sentinels, grouped by when they can occur. Three audiences, three kinds: a *ToolError is seen by the agent and the
// episode goes on; a sentinel is the caller's mistake; a panic is a bug, recovered at the C border.
var (
	// making a pack, condition, task or episode
	ErrBadInput = errors.New("bad input")
	ErrUnknown  = errors.New("unknown name")
	ErrHeldOut  = errors.New("held out")            // the split does not allow this condition in this mode
	ErrPack     = errors.New("pack is invalid")     // the pack broke its own declaration while building a task
	ErrHost     = errors.New("not on this machine") // the machine lacks what the pack needs

	// stepping
	ErrNotReset    = errors.New("no episode: reset first")
	ErrEpisodeOver = errors.New("the episode has ended: reset first")
	ErrRunning     = errors.New("the episode is still running: what its check asks for is told after its end")
	ErrSnapshot    = errors.New("snapshot does not fit")
)

func badInput(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrBadInput}, args...)...)
}

// unknown reports a name that is none of known and offers the nearest one.
func unknown(what, name string, known []string) error {
	if best := Nearest(name, known); best != "" {
		return fmt.Errorf("%w: %s %s; did you mean %q?", ErrUnknown, what, quote(name), best)
	}
	return fmt.Errorf("%w: %s %s; known: %s", ErrUnknown, what, quote(name), strings.Join(known, ", "))
}

// quote shows foreign text in an error, cut to a length that a terminal can hold.
func quote(s string) string {
	const most = 80
	if len(s) > most {
		return fmt.Sprintf("%q… (%d bytes)", s[:most], len(s))
	}
	return fmt.Sprintf("%q", s)
}

// Nearest returns the known name with the least edit distance to name, or "" when none is close (more than a third of its
// length away).
func Nearest(name string, known []string) string {
	best, bestD := "", len(name)/3+2
	if len(name) > 64 {
		return ""
	}
	for _, k := range known {
		if d := editDistance(strings.ToLower(name), strings.ToLower(k)); d < bestD {
			best, bestD = k, d
		}
	}
	return best
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diag
			if a[i-1] != b[j-1] {
				cost++
			}
			diag = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
