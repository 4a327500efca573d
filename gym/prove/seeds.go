package prove

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"provegym/gym"
)

// Seed returns the seed of the i-th task of a condition in a block. Purposes (sealed, monitor, baseline) and whatever else
// is derived below other purposes of the run key (Break, curriculum, trainer) are disjoint streams: no two of them can be
// made to meet by arithmetic on a seed.
func Seed(key gym.Key, purpose, block, condition string, i int) uint64 {
	return key.Sub("prove").Sub(purpose).Sub(block).Sub(condition).At(uint64(i)).Seed()
}

// Slot is one task of a look. Both arms run it; each slot and arm ends in one record.
type Slot struct {
	Condition string   `json:"condition"`
	Cluster   string   `json:"cluster"` // index of the task in its condition
	Task      string   `json:"task"`    // task id
	Seed      uint64   `json:"seed,string"`
	Sample    int      `json:"sample"`
	Arms      []string `json:"arms"`
}

// Slots returns the tasks of a look, condition by condition. look is the id of a sealed look, or MonitorLook.
//
// Errors: gym.ErrUnknown (look), gym.ErrBadInput (a plan that is a draft or was changed, a key that does not open its
// commitment).
func Slots(p Plan, key gym.Key, look string) ([]Slot, error) {
	if err := p.Verify(); err != nil {
		return nil, err
	}
	slots, opens, err := p.slots(key, look)
	if err == nil && !opens {
		err = badInput("the key does not open the seeds that the plan committed to for %q: use the key it was frozen with", look)
	}
	if err != nil {
		return nil, err
	}
	return slots, nil
}

// slots returns the tasks of a look, and whether their seeds are those that the plan committed to.
func (p Plan) slots(key gym.Key, look string) (slots []Slot, opens bool, err error) {
	block, purpose, commitment, conditions, err := p.block(look)
	if err != nil {
		return nil, false, err
	}
	for _, c := range conditions {
		for g := range c.G {
			seed := Seed(key, purpose, block, c.ID, g)
			slots = append(slots, Slot{c.ID, strconv.Itoa(g), taskID(c.ID, seed), seed, 0, []string{BaseArm, CheckpointArm}})
		}
	}
	return slots, commit(block, slots) == commitment, nil
}

// commit returns the hash of a block's seed list. It binds: no other list can be shown later. It hides as well as the run
// key does, so a key from a small number can be guessed by whoever wants to.
func commit(block string, slots []Slot) string {
	h := sha256.New()
	fmt.Fprintf(h, "prove-seeds/1\n%s\n", block)
	for _, s := range slots {
		fmt.Fprintf(h, "%s %s %d\n", s.Task, s.Cluster, s.Sample)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func taskID(condition string, seed uint64) string {
	return condition + "#seed=" + strconv.FormatUint(seed, 10)
}
