package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"provegym/gym"
	"provegym/gym/breaker"
	"provegym/gym/split"
)

func init() {
	methods["break.new"] = alone(newSearch)
	methods["break.ask"] = on(func(s *search, in *struct {
		N int `json:"n"`
	}) (any, error) {
		if in.N < 1 || in.N > 1<<16 {
			return nil, badInput("n is %d; it must be from 1 to %d", in.N, 1<<16)
		}
		probes := []probe{}
		for _, p := range s.Ask(in.N) {
			probes = append(probes, probe{p, fmt.Sprintf("%s#seed=%d", p.Condition, p.Seed), gym.Labels{Purpose: "break"}})
		}
		return map[string]any{"probes": probes, "done": s.Done()}, nil
	})
	methods["break.tell"] = on(func(s *search, in *struct {
		Results []breaker.Result `json:"results"`
	}) (any, error) {
		if err := s.Tell(in.Results); err != nil {
			return nil, err
		}
		told := s.Report().Episodes
		return map[string]any{"done": s.Done(), "spent": told.Told, "lost": told.Lost}, nil
	})
	methods["break.report"] = on(func(s *search, in *struct {
		Text bool `json:"text"` // answer it in plain words too
	}) (any, error) {
		out := struct {
			breaker.Report
			Words string `json:"text,omitempty"`
		}{Report: s.Report()}
		if in.Text {
			out.Words = out.Text()
		}
		return out, nil
	})
	methods["break.state"] = on(func(s *search, in *struct{}) (any, error) {
		b, err := s.MarshalJSON()
		return map[string]any{"state": stored{s.region, b}}, err
	})
}

// region says where a search or a curriculum draws, and with which key.
type region struct {
	Pack     string          `json:"pack"`
	Split    json.RawMessage `json:"split"`
	Families []string        `json:"families"`
	Dials    []string        `json:"dials"`
}

// space is the train region of the split.
func (r *region) space() (breaker.Space, error) {
	p, err := gym.LookupPack(r.Pack)
	if err != nil {
		return breaker.Space{}, err
	}
	if len(r.Split) == 0 || string(r.Split) == "null" {
		return breaker.Space{}, badInput("a split is needed: what it holds out is never drawn")
	}
	s, err := split.Parse(r.Split)
	if err != nil {
		return breaker.Space{}, err
	}
	if s.Pack() != p {
		return breaker.Space{}, badInput("the split is of pack %s, not of %s", s.Pack().Name, p.Name)
	}
	space, err := breaker.SpaceOf(p, r.Families, r.Dials, s)
	if err == nil && s.Late() {
		space.HeldOut = func(c breaker.Cell, seed uint64) bool {
			t, err := space.Task(c, seed)
			return err == nil && !s.Trains(t)
		}
	}
	return space, err
}

// runKey is the key that everything of a run derives from. Purposes below it are disjoint streams.
func runKey(seed number) gym.Key { return gym.NewKey(uint64(seed), "run") }

// keyText spells a key. It is derived from the run's by hash, so that a state file does not open the sealed seeds.
type keyText gym.Key

func (k keyText) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%016x%016x", k.Hi, k.Lo), nil
}

func (k *keyText) UnmarshalText(b []byte) error {
	if _, err := hex.DecodeString(string(b)); err != nil || len(b) != 32 {
		return badInput("the key of a state is 32 hex digits")
	}
	_, err := fmt.Sscanf(string(b), "%16x%16x", &k.Hi, &k.Lo)
	return err
}

// keyed is a region with its key: what a state needs beside the search's or sampler's own.
type keyed struct {
	region
	Key keyText `json:"key"`
}

// stored is a state as the caller keeps it.
type stored struct {
	keyed
	Inner json.RawMessage `json:"inner"`
}

type search struct {
	*breaker.Search
	region keyed
}

func (*search) kind() string { return "a search" }
func (*search) close() error { return nil }

type probe struct {
	breaker.Probe
	Task   string     `json:"task"`
	Labels gym.Labels `json:"labels"`
}

func newSearch(in *struct {
	region
	Key        number          `json:"key"`
	Budget     int             `json:"budget"`
	Tau        float64         `json:"tau"`
	Checkpoint string          `json:"checkpoint"`
	Causes     []breaker.Cause `json:"causes"`
	State      *stored         `json:"state"`
}) (any, error) {
	s := &search{region: keyed{in.region, keyText(runKey(in.Key).Sub("break"))}}
	if in.State != nil {
		s.region = in.State.keyed
	}
	space, err := s.region.space()
	if err != nil {
		return nil, err
	}
	if in.State != nil {
		s.Search, err = breaker.Resume(space, gym.Key(s.region.Key), in.State.Inner)
		return handleOf(s, err)
	}
	s.Search, err = breaker.New(space, gym.Key(s.region.Key), breaker.Options{Budget: in.Budget, Tau: in.Tau, Checkpoint: in.Checkpoint})
	if err == nil {
		err = s.Recheck(own(in.Causes))
	}
	return handleOf(s, err)
}

// own leaves out the causes that another one covers.
func own(causes []breaker.Cause) (out []breaker.Cause) {
	for _, c := range causes {
		if c.ImpliedBy == "" {
			out = append(out, c)
		}
	}
	return out
}

// handleOf opens o, if making it came to no error.
func handleOf(o object, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	h, err := open(o)
	return map[string]any{"handle": number(h)}, err
}
