package main

import (
	"encoding/json"

	"provegym/gym"
	"provegym/gym/split"
)

func init() {
	methods["split.freeze"] = alone(func(in *struct {
		Split json.RawMessage `json:"split"`
	}) (any, error) {
		s, err := split.Parse(in.Split)
		if err != nil {
			return nil, err
		}
		return map[string]any{"split": json.RawMessage(s.JSON())}, nil
	})
	methods["split.region"] = alone(func(in *struct {
		Split     json.RawMessage `json:"split"`
		Condition string          `json:"condition"`
	}) (any, error) {
		s, err := split.Parse(in.Split)
		if err != nil {
			return nil, err
		}
		c, err := gym.ParseCondition(in.Condition)
		if err != nil {
			return nil, err
		}
		if c.Pack != s.Pack() {
			return nil, badInput("the split is of pack %s, and the condition of %s", s.Pack().Name, c.Pack.Name)
		}
		region, why := s.Region(c)
		return map[string]any{"region": region.String(), "why": why}, nil
	})
}
