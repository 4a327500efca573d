package trace

import (
	"database/sql"
	"strconv"
	"strings"

	"provegym/gym"
)

// Slot is one place of a plan that one episode fills.
type Slot struct {
	Condition string `json:"condition"`
	Cluster   string `json:"cluster"`
	Seed      uint64 `json:"seed,string"`
	Sample    int64  `json:"sample"`
	Arm       string `json:"arm"`
}

// Record is what filled a slot, as Prove reads it.
type Record struct {
	Slot
	Episode uint64      `json:"episode"`
	Purpose string      `json:"purpose"`
	Mode    string      `json:"mode"`
	Outcome gym.Outcome `json:"outcome"` // never Running
	Limit   gym.Limit   `json:"limit"`
	Success bool        `json:"success"`
	Reward  *float64    `json:"reward"` // nil for invalid and check_error
	Audits  []string    `json:"audits,omitempty"`
	Digest  string      `json:"digest,omitempty"`
	// Of the run, which must agree with the plan.
	Policy     string `json:"policy"`
	Checkpoint string `json:"checkpoint_hash"`
	Pack       string `json:"pack_hash"`
	Check      string `json:"check_hash"`
	Split      string `json:"split_hash"`
}

// Slots returns the ended episodes of a look of a plan, superseded ones left out, by condition, cluster, seed, sample and arm.
func (r *Reader) Slots(plan, look string) ([]Record, error) {
	rows, err := collect(r.db, func(rows *sql.Rows, v *Record) error {
		var seed string
		var mode gym.Mode
		var reward sql.NullFloat64
		var digest, audits sql.NullString
		err := rows.Scan(&v.Condition, &v.Cluster, &seed, &v.Sample, &v.Arm, &v.Episode, &v.Purpose, &mode, &v.Outcome, &v.Limit,
			&v.Success, &reward, &digest, &v.Policy, &v.Checkpoint, &v.Pack, &v.Check, &v.Split, &audits)
		if err != nil {
			return err
		}
		if v.Seed, err = strconv.ParseUint(seed, 10, 64); err != nil || mode > gym.Test || v.Outcome > gym.CheckError {
			return damaged(v.Episode, "its seed, mode or outcome is out of range")
		}
		v.Mode, v.Digest = mode.String(), digest.String
		if reward.Valid {
			v.Reward = &reward.Float64
		}
		if audits.Valid {
			v.Audits = strings.Split(audits.String, "\n")
		}
		return nil
	}, `SELECT e.condition, cluster, seed, sample, arm, e.id, purpose, mode, outcome, limit_hit, success, reward, lower(hex(digest)),
		policy, checkpoint_hash, pack_hash, check_hash, split_hash,
		(SELECT group_concat(name, char(10)) FROM (SELECT name FROM audit WHERE episode = e.id ORDER BY name))
		FROM episode e JOIN run ON run.id = e.run
		WHERE plan_hash = ? AND look = ? AND outcome <> 0 AND superseded = 0
		ORDER BY e.condition, cluster, length(seed), seed, sample, arm, e.id`, plan, look)
	return rows, explain(r.path, err)
}

// FilledSlots returns the sealed slots of a look that an episode has filled, whatever its outcome. They are never run again.
func (r *Reader) FilledSlots(plan, look string) ([]Slot, error) {
	records, err := r.Slots(plan, look)
	if err != nil {
		return nil, err
	}
	slots := []Slot{}
	for i := range records {
		if records[i].Purpose == sealed {
			slots = append(slots, records[i].Slot)
		}
	}
	return slots, nil
}
