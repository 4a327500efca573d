package main

import (
	"encoding/json"

	"provegym/gym/prove"
	"provegym/gym/trace"
)

func init() {
	methods["prove.table"] = alone(func(in *struct {
		Plan prove.Plan `json:"plan"`
	}) (any, error) {
		return prove.Table(in.Plan)
	})
	methods["prove.freeze"] = alone(freezePlan)
	methods["prove.tasks"] = alone(func(in *struct {
		Plan prove.Plan `json:"plan"`
		Key  number     `json:"key"`
		Look string     `json:"look"`
	}) (any, error) {
		slots, err := prove.Slots(in.Plan, runKey(in.Key), in.Look)
		return map[string]any{"slots": slots}, err
	})
	methods["prove.look"] = alone(judge)
	methods["prove.report"] = alone(func(in *prove.Input) (any, error) {
		r, err := prove.NewReport(*in)
		if err != nil {
			return nil, err
		}
		return map[string]any{"report": json.RawMessage(r.JSON()), "markdown": r.Markdown(), "html": string(r.HTML())}, nil
	})
}

func freezePlan(in *struct {
	Plan  prove.Plan      `json:"plan"`
	Key   number          `json:"key"`
	Split json.RawMessage `json:"split"`
}) (any, error) {
	if in.Plan.Hash != "" {
		return map[string]any{"plan": in.Plan}, in.Plan.Verify()
	}
	s, err := parseSplit(in.Split)
	if err != nil {
		return nil, err
	}
	p, err := prove.Freeze(in.Plan, runKey(in.Key), s)
	return map[string]any{"plan": p}, err
}

func judge(in *struct {
	Plan       prove.Plan     `json:"plan"`
	Key        number         `json:"key"`
	Look       string         `json:"look"`
	Records    []prove.Record `json:"records"`
	Trace      string         `json:"trace"` // a store to take the records from instead
	PlanHash   string         `json:"plan_hash"`
	Base       string         `json:"base"`
	Checkpoint string         `json:"checkpoint"`
	Ledger     []string       `json:"ledger"`
}) (any, error) {
	ev := prove.Evidence{PlanHash: orElse(in.PlanHash, in.Plan.Hash), Base: in.Base, Checkpoint: in.Checkpoint, Records: in.Records,
		Ledger: in.Ledger}
	if in.Trace != "" {
		if in.Records != nil {
			return nil, badInput("records and trace exclude each other")
		}
		if _, err := reading(in.Trace, func(r *trace.Reader) (any, error) {
			rows, err := r.Slots(in.Plan.Hash, in.Look)
			for _, row := range rows {
				ev.Records = append(ev.Records, prove.Record{Condition: row.Condition, Cluster: row.Cluster, Seed: row.Seed,
					Sample: int(row.Sample), Arm: row.Arm, Mode: row.Mode, Outcome: row.Outcome.String(), Success: row.Success,
					PackHash: row.Pack, CheckHash: row.Check})
			}
			return nil, err
		}); err != nil {
			return nil, err
		}
	}
	return prove.Evaluate(in.Plan, runKey(in.Key), in.Look, ev)
}
