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
	// Explanation takes the reward apart: of packs that are not deterministic alone, since no replay could; else nil.
	Explanation *Explanation
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
	// Of packs that are not deterministic alone, since nothing could rebuild it; nil for none.
	Told  []byte // the instruction, with the first step
	Shown []byte // the result of the call that the step completed
}

// The flags of an encoded step.
const (
	flagEnded = 1 << iota
	flagTold
	flagShown
)

// AppendStep encodes r: the action (text: uvarint length and bytes; structured: uvarint of action+1), CRC, reward, flags, and the
// texts that the flags announce, each as uvarint length and bytes.
func AppendStep(b []byte, r StepRec) []byte {
	if r.View == Text {
		b = binary.AppendUvarint(b, uint64(len(r.Text)))
		b = append(b, r.Text...)
	} else {
		b = binary.AppendVarint(b, int64(r.Action))
	}
	b = binary.LittleEndian.AppendUint32(b, r.CRC)
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(r.Reward))
	at := len(b)
	b = append(b, 0)
	if r.Ended {
		b[at] |= flagEnded
	}
	for _, x := range [2]struct {
		flag byte
		text []byte
	}{{flagTold, r.Told}, {flagShown, r.Shown}} {
		if x.text != nil {
			b[at] |= x.flag
			b = binary.AppendUvarint(b, uint64(len(x.text)))
			b = append(b, x.text...)
		}
	}
	return b
}

// NextStep decodes the first step of b and returns the rest. Text, Told and Shown point into b.
func NextStep(v View, b []byte) (r StepRec, rest []byte, err error) {
	r.View = v
	if v == Text {
		if r.Text, b, err = nextText(b); err != nil {
			return r, b, err
		}
	} else {
		a, k := binary.Varint(b)
		if k <= 0 {
			return r, b, errCutShort
		}
		r.Action, b = int(a), b[k:]
	}
	if len(b) < 9 {
		return r, b, errCutShort
	}
	r.CRC = binary.LittleEndian.Uint32(b)
	r.Reward = math.Float32frombits(binary.LittleEndian.Uint32(b[4:]))
	flags := b[8]
	if b = b[9:]; flags >= flagShown<<1 {
		return r, b, badInput("a recorded step has the unknown flags %#x", flags)
	}
	r.Ended = flags&flagEnded != 0
	if flags&flagTold != 0 {
		if r.Told, b, err = nextText(b); err != nil {
			return r, b, err
		}
	}
	if flags&flagShown != 0 {
		r.Shown, b, err = nextText(b)
	}
	return r, b, err
}

var errCutShort = badInput("a recorded step is cut short")

func nextText(b []byte) (text, rest []byte, err error) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(len(b)-k) {
		return nil, b, errCutShort
	}
	return b[k : k+int(n)], b[k+int(n):], nil
}
