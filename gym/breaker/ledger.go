package breaker

// Stage is what a probe is for.
type Stage string

const (
	StageSearch   Stage = "search"
	StageScreen   Stage = "screen"
	StageMinimise Stage = "minimise"
	StageConfirm  Stage = "confirm"
)

// Probe is one episode to run: build the condition of the cell, reset it with the seed, play it.
type Probe struct {
	ID        uint64 `json:"id"` // counts up from 0
	Stage     Stage  `json:"stage"`
	Cell      Cell   `json:"cell"`
	Condition string `json:"condition"` // Space.ID of the cell
	Seed      uint64 `json:"seed,string"`
}

// Result is what became of a probe. Failed covers a crash or a timeout of the agent. Lost means that no outcome exists
// (the infrastructure failed): the episode is asked again and counts as nothing.
type Result struct {
	ID     uint64 `json:"id"`
	Failed bool   `json:"failed"`
	Lost   bool   `json:"lost,omitempty"`
	Mode   string `json:"mode,omitempty"` // how it failed, in the caller's words; empty where unknown
}

// Outcome is the state of a ledger entry.
type Outcome string

const (
	Open   Outcome = "" // asked, not told yet
	Passed Outcome = "pass"
	Failed Outcome = "fail"
	Lost   Outcome = "lost"
)

// Entry is one line of the ledger. Entries are appended when asked, filled in once when told, and never removed.
type Entry struct {
	Probe
	Floor   bool    `json:"floor,omitempty"` // drawn by the uniform floor
	Job     int     `json:"job,omitempty"`   // the candidate that it tests; 0 for a search probe
	Trial   int     `json:"trial,omitempty"` // the test of that candidate
	Outcome Outcome `json:"outcome,omitempty"`
	Mode    string  `json:"mode,omitempty"`
	Ignored bool    `json:"ignored,omitempty"` // told after its test had ended: on record, but no evidence
}
