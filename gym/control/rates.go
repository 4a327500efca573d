package control

import (
	"encoding/json"
	"fmt"

	"provegym/gym"
	"provegym/gym/prove/stats"
)

// Rates are how often controls ended as they must not, over all conditions and both views of one check. They are kept beside the
// pack, in the file that Pack.Rates embeds, and say of which version and sources they are.
type Rates struct {
	Pack       string      `json:"pack"`
	Version    int         `json:"version"`
	Hash       string      `json:"hash"`
	CheckHash  string      `json:"check_hash"`
	Seeds      int         `json:"seeds"` // per family at the base condition
	DialSeeds  int         `json:"dial_seeds"`
	LevelTasks int         `json:"level_tasks"`
	FalsePass  Rate        `json:"false_pass"` // of the negative controls that must never pass
	FalseFail  Rate        `json:"false_fail"` // of the oracle and the positive controls
	Controls   []Rate      `json:"controls"`
	References []Reference `json:"references"`
}

// Rate is how often one control, or all of a kind, ended as it must not.
type Rate struct {
	Control  string  `json:"control,omitempty"`
	Kind     string  `json:"kind,omitempty"`
	Episodes int     `json:"episodes"`
	Wrong    int     `json:"wrong"`
	Upper    float64 `json:"upper"`           // Wilson's two-sided 95 % bound
	Bound    float64 `json:"bound,omitempty"` // that Upper must not exceed, where some may be wrong
}

func (r *Rate) add(episodes, wrong int) {
	r.Episodes += episodes
	r.Wrong += wrong
	r.Upper = 1
	if r.Episodes > 0 {
		_, r.Upper = stats.Wilson(r.Wrong, r.Episodes, alpha)
	}
}

// rates sums a finished check up.
func (c *Check) rates(r *Report) *Rates {
	p := c.pack
	out := &Rates{Pack: p.Name, Version: p.Version, Hash: p.Hash, CheckHash: p.CheckHash, Seeds: max(0, c.opts.Seeds),
		DialSeeds: max(0, c.opts.DialSeeds), LevelTasks: max(0, c.opts.LevelTasks), References: r.References}
	at := map[string]int{}
	for i := range c.agents {
		at[c.agents[i].Name] = i
		out.Controls = append(out.Controls, Rate{Control: c.agents[i].Name, Kind: c.agents[i].Kind.String(), Bound: c.agents[i].Bound})
		out.Controls[i].add(0, 0)
	}
	out.FalsePass.add(0, 0)
	out.FalseFail.add(0, 0)
	for i := range r.Rows {
		row := &r.Rows[i]
		negative := row.Kind == gym.NegativeControl.String()
		wrong := row.Episodes - row.Passes
		if negative {
			wrong = row.Passes + row.Broken
		}
		out.Controls[at[row.Control]].add(row.Episodes, wrong)
		switch {
		case !negative:
			out.FalseFail.add(row.Episodes, wrong)
		case row.Bound == 0:
			out.FalsePass.add(row.Episodes, wrong)
		}
	}
	return out
}

// StoredRates returns the rates that are kept with a pack; nil if there are none.
//
// Errors: gym.ErrPack if they are not what a check wrote, or are of another pack or version.
func StoredRates(p *gym.Pack) (*Rates, error) {
	if p.Rates == "" {
		return nil, nil
	}
	r := &Rates{}
	if err := json.Unmarshal([]byte(p.Rates), r); err != nil {
		return nil, fmt.Errorf("%w: the rates kept with %s: %w", gym.ErrPack, p.Name, err)
	}
	if r.Pack != p.Name || r.Version != p.Version {
		return nil, fmt.Errorf("%w: the rates kept with %s@%d are of %s@%d: run provegym check-pack %s --full --write FILE", gym.ErrPack, p.Name,
			p.Version, r.Pack, r.Version, p.Name)
	}
	return r, nil
}
