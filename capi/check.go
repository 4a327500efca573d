package main

import (
	"provegym/gym"
	"provegym/gym/control"
)

func init() {
	methods["check.new"] = alone(func(in *struct {
		Pack       string   `json:"pack"`
		Full       bool     `json:"full"`
		Seeds      int      `json:"seeds"`
		DialSeeds  int      `json:"dial_seeds"`
		LevelTasks int      `json:"level_tasks"`
		Families   []string `json:"families"`
		Key        number   `json:"key"`
	}) (any, error) {
		p, err := gym.LookupPack(in.Pack)
		if err != nil {
			return nil, err
		}
		c, err := control.NewCheck(p, control.Options{Families: in.Families, Full: in.Full, Seeds: in.Seeds, DialSeeds: in.DialSeeds,
			LevelTasks: in.LevelTasks, Key: runKey(in.Key)})
		return handleOf(&check{c}, err)
	})
	methods["check.step"] = on(func(c *check, in *struct{ budget }) (any, error) { return c.Step(in.time()), nil })
}

type check struct{ *control.Check }

func (*check) kind() string { return "a check" }
func (*check) close() error { return nil }
