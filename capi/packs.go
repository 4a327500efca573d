package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"provegym/gym"
	"provegym/gym/control"
	"provegym/gym/vector"
)

func init() {
	methods["packs"] = alone(listPacks)
	methods["task"] = alone(showTask)
	methods["sample"] = alone(sample)
	methods["vec.info"] = on(vecInfo)
	methods["vec.explain"] = on(vecExplain)
	methods["vec.stop"] = on(vecStop)
}

type named struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
}

type dialInfo struct {
	named
	Levels []string `json:"levels"`
	Base   int      `json:"base"`
}

type presetInfo struct {
	Name     string            `json:"name"`
	Settings map[string]string `json:"settings"`
}

type agentInfo struct {
	named
	Kind string `json:"kind"`
}

type packInfo struct {
	named
	Title         string            `json:"title"`
	Version       int               `json:"version"`
	Hash          string            `json:"hash"`
	CheckHash     string            `json:"check_hash"`
	Deterministic bool              `json:"deterministic"`
	Bounded       bool              `json:"bounded"`
	Views         []string          `json:"views"`
	Families      []named           `json:"families"`
	Dials         []dialInfo        `json:"dials"`
	Presets       []presetInfo      `json:"presets"`
	Tools         []json.RawMessage `json:"tools"`
	Agents        []agentInfo       `json:"agents"`
	Audits        []named           `json:"audits"`
	Rates         *control.Rates    `json:"rates"` // of its controls, as stored with it; null if nobody has measured them
}

func listPacks(in *struct {
	Pack string `json:"pack"`
}) (any, error) {
	packs := gym.Packs()
	if in.Pack != "" {
		p, err := gym.LookupPack(in.Pack)
		if err != nil {
			return nil, err
		}
		packs = []*gym.Pack{p}
	}
	out := []packInfo{}
	for _, p := range packs {
		i, err := describe(p)
		if err != nil {
			return nil, err
		}
		out = append(out, i)
	}
	return map[string]any{"packs": out}, nil
}

func describe(p *gym.Pack) (packInfo, error) {
	i := packInfo{named: named{p.Name, p.Doc}, Title: p.Title, Version: p.Version, Hash: p.Hash, CheckHash: p.CheckHash,
		Deterministic: p.Deterministic, Bounded: p.Bounded, Views: viewNames(p), Families: []named{}, Dials: []dialInfo{}, Presets: []presetInfo{},
		Agents: []agentInfo{}, Audits: []named{}}
	for _, f := range p.Families {
		i.Families = append(i.Families, named{f.Name, f.Doc})
	}
	for _, d := range p.Dials {
		i.Dials = append(i.Dials, dialInfo{named{d.Name, d.Doc}, d.Levels, d.Base})
	}
	for _, s := range p.Presets {
		set := map[string]string{}
		for _, one := range s.Settings {
			set[one.Dial] = one.Value
		}
		i.Presets = append(i.Presets, presetInfo{s.Name, set})
	}
	for _, a := range control.Agents(p) {
		i.Agents = append(i.Agents, agentInfo{named{a.Name, a.Doc}, a.Kind.String()})
	}
	for _, a := range p.Audits {
		i.Audits = append(i.Audits, named{a.Name, a.Doc})
	}
	all := ^gym.ToolSet(0)
	i.Tools = schemas(p, all)
	var err error
	i.Rates, err = control.StoredRates(p)
	return i, err
}

func viewNames(p *gym.Pack) (out []string) {
	for _, v := range p.Views() {
		out = append(out, v.String())
	}
	return out
}

func schemas(p *gym.Pack, set gym.ToolSet) []json.RawMessage {
	out := []json.RawMessage{}
	for k := range p.Tools {
		if set.Has(k) {
			out = append(out, p.Schema(k))
		}
	}
	return out
}

type limitsInfo struct {
	Calls int     `json:"calls"`
	Wall  float64 `json:"wall_s"`
	Bytes int     `json:"bytes"`
}

func limitsOf(l gym.Limits) limitsInfo { return limitsInfo{l.Calls, l.Wall.Seconds(), l.Bytes} }

type taskInfo struct {
	Task        string            `json:"task"`
	Condition   string            `json:"condition"`
	Pack        string            `json:"pack"`
	Family      string            `json:"family"`
	Dials       map[string]string `json:"dials"`
	Seed        number            `json:"seed"`
	Instruction string            `json:"instruction"`
	Limits      limitsInfo        `json:"limits"`
	Tools       []json.RawMessage `json:"tools"`
}

func showTask(in *struct {
	Task string `json:"task"`
}) (any, error) {
	t, err := gym.ParseTask(in.Task)
	if err != nil {
		return nil, err
	}
	b, err := t.Pack.Build(t)
	if err != nil {
		return nil, fmt.Errorf("%w: build %s: %w", gym.ErrPack, t.ID(), err)
	}
	dials := map[string]string{}
	for i, d := range t.Pack.Dials {
		dials[d.Name] = d.Levels[t.Levels[i]]
	}
	condition, _, _ := strings.Cut(t.ID(), "#")
	face := t.Pack
	if b.Face != nil {
		face = b.Face
	}
	return taskInfo{t.ID(), condition, t.Pack.Name, t.Family, dials, number(t.Seed), b.Instruction,
		limitsOf(t.Pack.Limits(t.Condition)), schemas(face, b.Tools)}, nil
}

func sample(in *struct {
	source
	Seed number `json:"seed"`
	N    int    `json:"n"`
}) (any, error) {
	const most = 1 << 20
	if in.N < 0 || in.N > most {
		return nil, badInput("n is %d; it must be from 0 to %d", in.N, most)
	}
	s, err := in.sampler()
	if err == nil {
		err = s.Prepare()
	}
	if err != nil {
		return nil, err
	}
	tasks := make([]string, in.N)
	for i := range tasks {
		tasks[i] = s.Draw(uint64(in.Seed), uint64(i)).ID()
	}
	return map[string]any{"tasks": tasks}, nil
}

type episodeInfo struct {
	Task        string            `json:"task"`
	Instruction string            `json:"instruction"`
	Limits      limitsInfo        `json:"limits"`
	Tools       []json.RawMessage `json:"tools"`
	Labels      gym.Labels        `json:"labels"`
	Episode     *uint64           `json:"episode"` // the recorder's id; null when nothing records it
	Outcome     string            `json:"outcome"`
	Limit       string            `json:"limit"`
	Success     bool              `json:"success"`
	Components  map[string]bool   `json:"components"`
	Calls       int               `json:"calls"`
	Why         string            `json:"why"`
	Digest      string            `json:"digest"` // "" where there is no episode
}

func vecInfo(v *vec, in *struct {
	Env int `json:"env"`
}) (any, error) {
	s, err := v.Shown(in.Env)
	if err != nil {
		return nil, err
	}
	out := episodeInfo{Task: s.Task.ID(), Limits: limitsOf(s.Task.Pack.Limits(s.Task.Condition)), Labels: s.Labels,
		Outcome: s.Outcome.String(), Limit: s.Limit.String(), Success: s.Success(), Components: componentsOf(s.Components), Calls: s.Calls,
		Why: s.Why, Tools: []json.RawMessage{}}
	if s.Record != 0 {
		out.Episode = &s.Record
	}
	if ep := s.Episode; ep != nil {
		out.Instruction, out.Tools, out.Digest = ep.Instruction(), schemas(ep.Face(), ep.ToolSet()), ep.Digest().String()
	}
	return out, nil
}

// vecExplain tells why an episode that has ended was paid or not.
func vecExplain(v *vec, in *struct {
	Env int `json:"env"`
}) (any, error) {
	s, err := v.Shown(in.Env)
	if err != nil {
		return nil, err
	}
	var x *gym.Explanation
	switch {
	case s.Episode != nil:
		x, err = s.Episode.Explain()
	case s.Outcome == gym.Running:
		err = gym.ErrRunning
	}
	return map[string]any{"explanation": x}, err
}

// componentsOf names the bits of vector.IO.Components.
func componentsOf(bits uint8) map[string]bool {
	return map[string]bool{"goals": bits&vector.Goals != 0, "path": bits&vector.Path != 0,
		"collateral": bits&vector.Collateral != 0, "commit": bits&vector.Commit != 0}
}

// vecStop ends a running episode from outside. What the caller leaves out is the usual case: the limit on tokens, a failure
// of which nothing more is known.
func vecStop(v *vec, in *struct {
	Env     int         `json:"env"`
	Outcome gym.Outcome `json:"outcome"`
	Limit   gym.Limit   `json:"limit"`
	Why     string      `json:"why"`
}) (any, error) {
	switch {
	case in.Outcome == gym.Truncated && in.Limit == gym.NoLimit:
		in.Limit = gym.LimitTokens
	case in.Outcome == gym.Invalid && in.Why == "":
		in.Why = "the trainer stopped it"
	}
	err := v.Stop(in.Env, in.Outcome, in.Limit, in.Why)
	if v.bound {
		v.show()
	}
	return struct{}{}, err
}
