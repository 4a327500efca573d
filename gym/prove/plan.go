package prove

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"provegym/gym"
)

const (
	PlanSchema = "prove-plan/1"
	Analysis   = "prove/1" // version of the rules; a plan is evaluated only by the rules that it was frozen under

	Power      = .80 // of every MDE
	Confidence = .95 // of every interval that is not joint

	BinaryOne   = "binary_one" // the kind of a condition: one pass/fail pair a cluster
	ClusterTask = "task"       // the cluster of a condition: a task that shares nothing with the others

	Confirmatory = "confirmatory"
	Exploratory  = "exploratory"

	SameCells      = "same-cells"      // conditions that training may see: descriptive only
	HeldOutDials   = "held-out-dials"  // trained families at settings that training may not see
	HeldOutFamily  = "held-out-family" // families that training never sees
	MonitorLook    = "monitor"         // the id of looks at the monitor block
	BaseArm        = "base"            // the starting point
	CheckpointArm  = "checkpoint"      // what training made of it
	minClusters    = 20                // fewer can hardly reach any verdict
	adviseClusters = 100               // per condition at one sample a task
	adviseFamily   = 12                // confirmatory conditions

	// Bounds of what is judged at one time: exact power over more would take minutes, and lists of seeds gigabytes.
	maxClusters   = 50_000 // of a look, all conditions together
	maxConditions = 256
	maxLooks      = 32
	minAlpha      = 1e-6
	minWeight     = 1e-6
)

// Plan declares what will be compared, before training. As a draft it may leave out what Freeze fills in (marked *).
// It is canonical JSON: members in this order, no white space, map keys sorted. Hash covers all but Hash and Made.
type Plan struct {
	Schema     string      `json:"schema"`     // *
	Analysis   string      `json:"analysis"`   // *
	Pack       string      `json:"pack"`       // name@version
	PackHash   string      `json:"pack_hash"`  // *
	CheckHash  string      `json:"check_hash"` // *
	SplitHash  string      `json:"split_hash"` // *
	Code       string      `json:"code"`       // commit of the trainer, if it has one
	Base       Base        `json:"base"`
	Alpha      float64     `json:"alpha"` // * .05: share of runs with any wrong verdict in the condition table
	Looks      []Look      `json:"looks"`
	Monitor    *Monitor    `json:"monitor,omitempty"`
	Conditions []Condition `json:"conditions"`
	Overall    Overall     `json:"overall"` // *
	Lost       Lost        `json:"lost"`    // *
	Budget     Budget      `json:"budget"`
	// Exclude lists conditions that training and Break may not draw. Freeze adds every held-out one.
	Exclude    []string    `json:"exclude_from_training"`
	Amendments []Amendment `json:"amendments"`
	Warnings   []string    `json:"warnings"` // * what Freeze warned of, so that nobody can say later it did not
	Hash       string      `json:"hash,omitempty"`
	Made       *Made       `json:"made,omitempty"`
}

// Base names the starting point, by hash or, where it does not exist yet, by the rule that makes it.
type Base struct {
	Hash string `json:"hash,omitempty"`
	Rule string `json:"rule,omitempty"` // "imitation of 200 oracle episodes at seed 1"
}

// Look is one opening of a sealed block. Its level is alpha x weight; weights add to at most 1, so that all looks
// together keep alpha by the union bound, whatever training does between them.
type Look struct {
	ID         string  `json:"id"`
	Weight     float64 `json:"weight"`     // * if left out of every look: 6/(pi^2 l^2)
	Checkpoint string  `json:"checkpoint"` // the rule that names the checkpoint: "last", "best on the monitor mean"
	Block      string  `json:"block"`      // * its seeds; every look has its own
	Seeds      string  `json:"seeds"`      // * commitment to them
}

// Monitor is the block that every checkpoint may be measured on. It may choose the checkpoint; it feeds no gradient, no
// Break and no curriculum, and earns no verdict word.
type Monitor struct {
	Block      string   `json:"block"`      // *
	Conditions []string `json:"conditions"` // * all that mode eval may see
	Tasks      int      `json:"tasks"`      // * 50 a condition
	Seeds      string   `json:"seeds"`      // *
}

// Condition is one condition of the plan.
type Condition struct {
	ID      string   `json:"id"`      // canonical condition id
	Tier    string   `json:"tier"`    // SameCells, HeldOutDials or HeldOutFamily
	Family  string   `json:"family"`  // * Confirmatory or Exploratory: the family of tests, not of tasks
	Kind    string   `json:"kind"`    // * BinaryOne
	Cluster string   `json:"cluster"` // * ClusterTask
	G       int      `json:"G"`       // * 100 clusters a look
	K       int      `json:"k"`       // * 1 sample a cluster and arm
	DMin    float64  `json:"dmin"`    // * .10: smallest change of interest
	Delta   float64  `json:"delta"`   // * .10: margin of UNCHANGED_WITHIN
	Psi0    float64  `json:"psi0"`    // * .20: discordance by noise alone, from a run of the base against itself
	MDE     *float64 `json:"mde"`     // * at the last look; null: no change could reach 80 % power
	// Demoted marks a condition that an amendment after a sealed look made exploratory. It still counts in the size of the
	// family: looking must not make the others' tests easier.
	Demoted bool `json:"demoted,omitempty"`
}

// Overall is the row of all confirmatory pairs pooled, a family of its own.
type Overall struct {
	DMin  float64  `json:"dmin"`  // * the smallest of the confirmatory conditions
	Delta float64  `json:"delta"` // * likewise
	Psi0  float64  `json:"psi0"`  // * their mean by G
	MDE   *float64 `json:"mde"`   // *
	// Demoted: an amendment after a sealed look changed this row or what is pooled in it, so it has no verdict any more.
	Demoted bool `json:"demoted,omitempty"`
}

// Lost limits what the infrastructure may lose.
type Lost struct {
	Retries  int     `json:"retries"`   // * 2, same seed
	MaxShare float64 `json:"max_share"` // * .05 of the pairs of a condition
}

// Budget counts episodes by purpose.
type Budget struct {
	Train    int `json:"train"`
	Break    int `json:"break"`
	Monitor  int `json:"monitor"`
	Sealed   int `json:"sealed"` // * both arms, all looks
	Baseline int `json:"baseline"`
}

// Amendment is one change of a frozen plan. Amendments are appended, never edited.
type Amendment struct {
	Reason    string   `json:"reason"`
	AfterLook string   `json:"after_look"` // the last sealed look opened before, "" for none
	Touches   []string `json:"touches"`    // conditions whose terms it changed, and "overall" if the pooled row's
	Previous  string   `json:"previous"`   // hash of the plan before
}

// Made says when and where a plan was frozen. It is outside the hash.
type Made struct {
	At   string `json:"at,omitempty"`
	Host string `json:"host,omitempty"`
}

// canonical is JSON with the struct's member order and sorted map keys, without HTML escapes.
func canonical(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // our own structs; Evaluate and Freeze let no NaN in
	}
	return bytes.TrimSpace(b.Bytes())
}

// hash returns the hash that p should carry.
func (p Plan) hash() string {
	p.Hash, p.Made = "", nil
	sum := sha256.Sum256(canonical(p))
	return hex.EncodeToString(sum[:])
}

// JSON returns the canonical plan, hash included.
func (p Plan) JSON() []byte { return canonical(p) }

// ParsePlan reads a draft or a plan. Unknown members are errors. It does not judge: Freeze judges drafts, and a plan that
// was changed after freezing makes every verdict of Evaluate INVALID.
func ParsePlan(b []byte) (Plan, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	var p Plan
	if err := dec.Decode(&p); err != nil {
		return Plan{}, badInput("the plan cannot be read: %v", err)
	}
	return p, nil
}

// Verify reports whether the plan is as it was frozen.
func (p Plan) Verify() error {
	switch {
	case p.Schema != PlanSchema:
		return badInput("schema %q is not %q", p.Schema, PlanSchema)
	case p.Analysis != Analysis:
		return badInput("the plan was frozen under the rules %q, this library has %q", p.Analysis, Analysis)
	case p.Hash == "":
		return badInput("the plan is a draft: freeze it first")
	case p.Hash != p.hash():
		return badInput("the plan was changed after freezing: its hash is %s, it says %s", p.hash(), p.Hash)
	}
	return p.sound()
}

// FamilySize returns m, the number of tests that share one look's level.
func (p Plan) FamilySize() int {
	m := 0
	for i := range p.Conditions {
		if p.Conditions[i].Family == Confirmatory || p.Conditions[i].Demoted {
			m++
		}
	}
	return m
}

// hashes returns the plan's hash and those it had before its amendments.
func (p Plan) hashes() []string {
	out := []string{p.Hash}
	for _, a := range p.Amendments {
		out = append(out, a.Previous)
	}
	return out
}

// look returns the index of a declared look.
func (p Plan) look(id string) (int, error) {
	var known []string
	for i := range p.Looks {
		if p.Looks[i].ID == id {
			return i, nil
		}
		known = append(known, p.Looks[i].ID)
	}
	return 0, fmt.Errorf("prove: %w: look %q is not declared; the plan has %v", gym.ErrUnknown, id, known)
}

// block returns the seed block of a look, the key purpose of its seeds, its commitment, and its conditions with their G.
func (p Plan) block(look string) (block, purpose, commitment string, conditions []Condition, err error) {
	if look == MonitorLook {
		if p.Monitor == nil {
			return "", "", "", nil, badInput("the plan declares no monitor block")
		}
		for _, c := range p.Conditions {
			if slices.Contains(p.Monitor.Conditions, c.ID) {
				c.G = p.Monitor.Tasks
				conditions = append(conditions, c)
			}
		}
		return p.Monitor.Block, "monitor", p.Monitor.Seeds, conditions, nil
	}
	i, err := p.look(look)
	if err != nil {
		return "", "", "", nil, err
	}
	return p.Looks[i].Block, "sealed", p.Looks[i].Seeds, p.Conditions, nil
}

func badInput(format string, args ...any) error {
	return fmt.Errorf("prove: %w: "+format, append([]any{gym.ErrBadInput}, args...)...)
}
