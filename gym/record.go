package gym

import (
	"encoding/binary"
	"math"
)

// Labels say what an episode is for. They travel to the trace untouched and influence nothing.
type Labels struct {
	Purpose   string `json:"purpose,omitempty"` // train, break, monitor, sealed, baseline
	Arm       string `json:"arm,omitempty"`
	Look      string `json:"look,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	Sample    int64  `json:"sample,omitempty"`
	Slot      int64  `json:"slot,omitempty"`
	Group     int64  `json:"group,omitempty"`
	Iteration int64  `json:"iteration,omitempty"`
}

// EpisodeStart is what a recorder is told when an episode begins.
type EpisodeStart struct {
	Task       Task
	Mode       Mode
	View       View
	Labels     Labels
	Parent     uint64 // the recorder's id of the episode this one was forked from, 0 for none
	ParentStep int
	Actions    []byte // every action before ParentStep, as AppendStep encodes it, CRCs zero; valid during Begin only
}

// EpisodeEnd is what a recorder is told when an episode ends.
type EpisodeEnd struct {
	Outcome    Outcome
	Limit      Limit
	Why        string // of invalid and check_error
	Components Components
	Reward     float64
	Steps      int // steps of the environment, micro-steps included
	Calls      int
	Digest     Digest
	Audits     []AuditResult
}

// AuditResult is one raised flag.
type AuditResult struct{ Name, Why string }

// Recorder stores episodes as they run. gym/trace implements it. Its methods may be called from many goroutines, for one
// episode from one at a time. A recorder that can fail also has Err() error: while it is not nil, no episode starts.
type Recorder interface {
	// Begin returns the recorder's id of the episode, never 0.
	Begin(s EpisodeStart) uint64
	// Segment takes steps of the episode, encoded by AppendStep, and returns an empty buffer for the next ones. The
	// recorder owns raw from then on.
	Segment(id uint64, seq, steps int, raw []byte) []byte
	End(id uint64, e EpisodeEnd)
}

// StepRec is one recorded step.
type StepRec struct {
	View   View
	Text   []byte // Text: the action's bytes
	Action int    // Structured: the action
	CRC    uint32 // CRC-32C of the observation after the step
	Reward float32
	Ended  bool
}

// AppendStep encodes r: the action (text: uvarint length and bytes; structured: uvarint of action+1), CRC, reward, flags.
func AppendStep(b []byte, r StepRec) []byte {
	if r.View == Text {
		b = binary.AppendUvarint(b, uint64(len(r.Text)))
		b = append(b, r.Text...)
	} else {
		b = binary.AppendVarint(b, int64(r.Action))
	}
	b = binary.LittleEndian.AppendUint32(b, r.CRC)
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(r.Reward))
	if r.Ended {
		return append(b, 1)
	}
	return append(b, 0)
}

// NextStep decodes the first step of b and returns the rest. Text points into b.
func NextStep(v View, b []byte) (r StepRec, rest []byte, err error) {
	r.View = v
	if v == Text {
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)-k) {
			return r, b, badInput("a recorded step is cut short")
		}
		r.Text, b = b[k:k+int(n)], b[k+int(n):]
	} else {
		a, k := binary.Varint(b)
		if k <= 0 {
			return r, b, badInput("a recorded step is cut short")
		}
		r.Action, b = int(a), b[k:]
	}
	if len(b) < 9 {
		return r, b, badInput("a recorded step is cut short")
	}
	r.CRC = binary.LittleEndian.Uint32(b)
	r.Reward = math.Float32frombits(binary.LittleEndian.Uint32(b[4:]))
	r.Ended = b[8] == 1
	return r, b[9:], nil
}
