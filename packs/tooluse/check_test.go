package tooluse

import (
	"bytes"
	"encoding/json"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"provegym/gym"
	"provegym/gym/control"
	"provegym/packs/tooluse/check"
	"provegym/packs/tooluse/world"
)

// Each part of the check stands alone: these controls go wrong in one of them, and would pass but for it.
func TestCheckPartsStandAlone(t *testing.T) {
	for _, tc := range []struct {
		agent string
		want  gym.Components
	}{
		{"nc8_also_nearest", gym.Components{Goals: true, Path: true, Commit: true}},
		{"nc9_stale", gym.Components{Goals: true, Path: true, Collateral: true}},
		{"nc13_skipped", gym.Components{Goals: true, Collateral: true, Commit: true}},
		{"nc14_swapped", gym.Components{Goals: true, Collateral: true, Commit: true}},
		{"nc16_repaired", gym.Components{Goals: true, Path: true, Commit: true}},
	} {
		a, err := Pack.Agent(tc.agent)
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range []string{"resolve-act", "branch", "for-each", "workspace-join", "ops-resolve-act"} {
			c, _ := Pack.Preset(family, "L1")
			for seed := range uint64(3 * *seeds) {
				for variant := range a.Variants(start(t, c, seed, gym.Text).Evidence()) {
					ep := start(t, c, seed, gym.Text)
					if run(t, ep, tc.agent, variant); ep.Components() != tc.want {
						t.Errorf("%s: %+v, want %+v\nrerun: %s", ep.Outcome(), ep.Components(), tc.want, control.Rerun(ep.Task(), tc.agent, variant, gym.Text))
					}
				}
			}
		}
	}
}

// TestFinishes: after all of the work only the right outcome, code and evidence are paid.
func TestFinishes(t *testing.T) {
	for _, family := range Pack.FamilyNames() {
		c, _ := Pack.Preset(family, "L1")
		ep := start(t, c, 7, gym.Text)
		a := &oracle{plan: ep.Evidence().Built.Plan}
		var finish gym.Call
		for ep.Outcome() == gym.Running {
			if !a.Act(ep, &finish) || Pack.Tools[finish.Tool].Finish {
				break
			}
			if err := ep.StepCall(&finish); err != nil {
				t.Fatal(err)
			}
		}
		var worked gym.Snapshot
		if err := ep.Snapshot(&worked); err != nil {
			t.Fatal(err)
		}
		s := specOf(ep.Evidence())
		right := slices.Clone(finish.Arg(check.ArgEvidence))
		other := gym.Value{Type: world.TRev, Bits: 12345}
		for outcome := range 3 {
			for code := range world.NumCodes {
				for i, cited := range [][]gym.Value{right, right[1:], append(slices.Clone(right), other), append(slices.Clone(right[1:]), other)} {
					if err := ep.Restore(&worked, gym.Options{}); err != nil {
						t.Fatal(err)
					}
					f := call(toolFinish, world.Value(world.TOutcome, outcome), world.Value(world.TCode, code))
					f.Push(check.ArgEvidence, cited...)
					if err := ep.StepCall(&f); err != nil {
						t.Fatal(err)
					}
					if want := outcome == int(s.Outcome) && code == int(s.Code) && i == 0; ep.Success() != want {
						t.Errorf("%s: finish %d %d with evidence %d: success is %v, %+v", ep.Task().ID(), outcome, code, i, ep.Success(), ep.Components())
					}
				}
			}
		}
	}
}

// TestExplained: of an oracle's episode every fact is met and nothing is unrequested; one write too many is named.
func TestExplained(t *testing.T) {
	for _, family := range Pack.FamilyNames() {
		c, _ := Pack.Preset(family, "L2")
		for seed := range uint64(*seeds) {
			ep := start(t, c, seed, gym.Text)
			run(t, ep, "oracle", 0)
			x := ep.Evidence().Built.Explain(ep.Evidence())
			for _, f := range x.Required {
				if !f.Met {
					t.Errorf("%s: the oracle misses %+v", ep.Task().ID(), f)
				}
			}
			if len(x.Unrequested) > 0 || len(x.Required) < 4 {
				t.Errorf("%s: %+v", ep.Task().ID(), x)
			}
			ep = start(t, c, seed, gym.Text)
			if run(t, ep, "nc16_repaired", 0); len(ep.Evidence().Built.Explain(ep.Evidence()).Unrequested) != 2 {
				t.Errorf("%s: a setting turned over and back is explained by %q", ep.Task().ID(), ep.Evidence().Built.Explain(ep.Evidence()).Unrequested)
			}
		}
	}
}

// TestShaping: the discounted sum of the dense term over an episode that is scored is −Φ of its start, whoever plays; it is off
// unless asked for, and refused where policies are evaluated.
func TestShaping(t *testing.T) {
	for i, family := range Pack.FamilyNames() {
		c, _ := Pack.Preset(family, []string{"L1", "L3"}[i%2])
		for seed := range uint64(*seeds) {
			for _, agent := range []string{"oracle", "priority_heuristic", "nc3_random_masked", "nc0_finish_at_once", "nc5_spam", "nc16_repaired"} {
				const gamma = 0.97
				ep, err := gym.NewEpisode(gym.Task{Condition: c, Seed: seed}, gym.Options{Shape: gamma})
				if err != nil {
					t.Fatal(err)
				}
				e := ep.Evidence()
				start := e.Built.Potential(e)
				a, err := control.Agent(Pack, agent)
				if err != nil {
					t.Fatal(err)
				}
				actor, err := control.New(ep, a, 0, control.Key(ep.Task(), agent))
				if err != nil {
					t.Fatal(err)
				}
				sum, discount, n := 0.0, 1.0, 0
				err = control.Play(ep, gym.ActorFunc(func(ep *gym.Episode, call *gym.Call) bool {
					if n > 0 {
						sum += discount * ep.Shaping()
						discount *= gamma
					}
					n++
					return actor.Act(ep, call)
				}))
				if err != nil {
					t.Fatal(err)
				}
				sum += discount * ep.Shaping()
				discount *= gamma
				want := -start
				if ep.Outcome() == gym.Truncated {
					want += discount * e.Built.Potential(ep.Evidence())
				}
				if n > 0 && ep.Calls() == n && math.Abs(sum-want) > 1e-9 { // a silent agent's calls are not seen here
					t.Errorf("%s by %s, %s after %d calls: the sum is %v, want %v", ep.Task().ID(), agent, ep.Outcome(), n, sum, want)
				}
			}
		}
	}
	c, _ := Pack.Condition("resolve-act")
	if ep := start(t, c, 1, gym.Text); ep.Shaping() != 0 {
		t.Error("shaping is on unasked")
	}
	if _, err := gym.NewEpisode(gym.Task{Condition: c, Seed: 1}, gym.Options{Mode: gym.Eval, Shape: 1}); err == nil {
		t.Error("shaping is let into an evaluation")
	}
}

// TestSecrets: what an agent sees holds no id or rev that the call did not mean to show, whatever it plays.
func TestSecrets(t *testing.T) {
	for _, family := range Pack.FamilyNames() {
		for _, preset := range []string{"L0", "L1", "L4"} {
			c, _ := Pack.Preset(family, preset)
			for seed := range uint64(*seeds) {
				for _, agent := range []string{"oracle", "priority_heuristic", "nc2_random_valid"} {
					ep := start(t, c, seed, gym.Text)
					run(t, ep, agent, 0)
					e := ep.Evidence()
					told := map[string]bool{}
					for _, p := range e.Built.Pins {
						told[Pack.Spell(p.Value)] = true
					}
					for i := range e.Log.Len() {
						r := e.Log.At(i)
						for _, v := range r.Shown {
							told[Pack.Spell(v)] = true
						}
						if r.Err != "" && bytes.Contains(r.Result, []byte("-")) {
							t.Errorf("%s: the error %s may hold a value", ep.Task().ID(), r.Result)
						}
						for _, word := range bytes.FieldsFunc(r.Result, func(c rune) bool { return c == '"' }) {
							if len(word) == 12 && word[1] == '-' && !told[string(word)] {
								t.Errorf("%s: call %d shows %s in %s", ep.Task().ID(), i, word, r.Result)
							}
						}
					}
				}
			}
		}
	}
}

// Every refusal code occurs, so that no constant can be right often; and few cases are to be refused or undone.
func TestRefusalsVary(t *testing.T) {
	c, _ := Pack.Condition("refusal")
	var seen [world.NumCodes]int
	const n = 1200
	for seed := range uint64(n) {
		b, err := Pack.Build(gym.Task{Condition: c, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		seen[b.Spec.(*check.Spec).Code]++
	}
	for code, k := range seen {
		if k < n/24 || k > n/6 {
			t.Errorf("code %d is right in %d of %d", code, k, n)
		}
	}
}

// branch and refusal read alike, and so do cases that end otherwise than they look: only the world tells them apart.
func TestComplaintsAreAlike(t *testing.T) {
	shape := func(family string) (roles []string, goal [gym.GoalLen]float32) {
		c, _ := Pack.Condition(family)
		b, _ := Pack.Build(gym.Task{Condition: c, Seed: 3})
		for _, p := range b.Pins {
			roles = append(roles, p.Role)
		}
		for i, g := range b.Goal {
			goal[i] = min(g, 1)
		}
		goal[goalWant] = b.Goal[goalWant]
		return roles, goal
	}
	r1, g1 := shape("branch")
	r2, g2 := shape("refusal")
	if !slices.Equal(r1, r2) || g1 != g2 {
		t.Errorf("%v %v and %v %v", r1, g1, r2, g2)
	}
	for _, preset := range Pack.PresetNames() {
		a, _ := Pack.Preset("branch", preset)
		b, _ := Pack.Preset("refusal", preset)
		if Pack.Limits(a) != Pack.Limits(b) {
			t.Errorf("%s: the budget of a complaint is %+v, of one that is refused %+v", preset, Pack.Limits(a), Pack.Limits(b))
		}
	}
}

// TestBudgets: no plan is longer than the bound that budgets rest on, and some plan comes near it.
func TestBudgets(t *testing.T) {
	each(t, func(t *testing.T, c gym.Condition) {
		set, most := settingOf(&c), 0
		k, err := kindOf(c.Family)
		if err != nil {
			t.Fatal(err)
		}
		bound := steps(k, &set)
		for seed := range uint64(8 * *seeds) {
			b, err := Pack.Build(gym.Task{Condition: c, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, len(b.Plan))
		}
		slack := 3
		if k.refused {
			slack++ // its budget is that of a complaint which is not refused
		}
		if k.lock {
			slack += 1 + world.NumSwitches // to find the setting, which the oracle knows
		}
		if most > bound || most < bound-slack {
			t.Errorf("%s: plans have up to %d steps, the bound is %d", c.ID(), most, bound)
		}
	})
}

// TestFaultKinds: each of the ten kinds of fault comes up, shows its tell, and is passed by the oracle and by one who knows no row.
func TestFaultKinds(t *testing.T) {
	met := map[world.Fault]int{}
	good := 0
	for i, family := range Pack.FamilyNames() {
		c, _ := Pack.Condition(family)
		c, _ = c.Set("fault_rate", "0.4")
		for seed := range uint64(8 * *seeds) {
			for _, agent := range []string{"oracle", "blind_oracle"} {
				ep := start(t, c, seed+uint64(i)<<32, gym.Text)
				for _, f := range planFaults(ep.Evidence()) {
					met[f]++
				}
				if specOf(ep.Evidence()).Outcome == world.Blocked {
					met[world.ForGood]++
				}
				run(t, ep, agent, 0)
				if !ep.Success() {
					t.Errorf("%s\nrerun: %s", ep.Outcome(), control.Rerun(ep.Task(), agent, 0, gym.Text))
				}
				good++
			}
		}
	}
	for f := world.NoFault + 1; f < world.NumFaults; f++ {
		t.Logf("%s: %d", world.FaultNames[f], met[f])
		if met[f] == 0 {
			t.Errorf("%s never comes up", world.FaultNames[f])
		}
	}
}

// TestHollowPasses: audits flag fewer than one in a thousand passes of the baselines, and none of the oracle's.
func TestHollowPasses(t *testing.T) {
	for _, agent := range []string{"oracle", "blind_oracle", "expected_value", "priority_heuristic"} {
		passes, hollow, n := 0, 0, 0
		for i, family := range Pack.FamilyNames() {
			for k, preset := range []string{"L1", "L3"} {
				c, _ := Pack.Preset(family, preset)
				for seed := range uint64(4 * *seeds) {
					ep := start(t, c, seed+uint64(2*i+k)<<32, gym.Text)
					run(t, ep, agent, 0)
					n++
					if !ep.Success() {
						continue
					}
					passes++
					if flags := ep.Audits(); len(flags) > 0 {
						hollow++
						t.Logf("%s: %s", control.Rerun(ep.Task(), agent, 0, gym.Text), flags)
					}
				}
			}
		}
		t.Logf("%s: %d episodes, %d passes, %d of them flagged", agent, n, passes, hollow)
		if 1000*hollow > n || agent == "oracle" && hollow > 0 {
			t.Errorf("%s: %d of %d episodes are hollow passes", agent, hollow, n)
		}
	}
}

// TestMessageLoop plays as a chat model does that is careless with its calls: whatever it sends is answered by a typed error, costs
// a step, and changes nothing; calls made in parallel are taken one by one, and the work still ends well.
func TestMessageLoop(t *testing.T) {
	type message struct {
		Role  string `json:"role"`
		Calls []struct {
			Name string          `json:"name"`
			Args json.RawMessage `json:"arguments"`
		} `json:"tool_calls"`
	}
	garbage := []string{`{"tool":`, `not json`, `{"tool":"no_such_tool","args":{}}`, `{"tool":"find_customer","args":{"name":"A","zip":"1","colour":"red"}}`,
		`{"tool":"find_customer","args":{"name":7}}`, `{"tool":"get_order","args":{"order":"o-\u0000\ud83d\ude00"}}`, `{"tool":"list_orders","args":[]}`,
		`{"tool":"get_order","args":{"order":"` + strings.Repeat("x", 100_000) + `"}}`, `{"tool":"get_order"}`, `[{"tool":"now"},{"tool":"now"}]`,
		`{"tool":"wait","args":{"ticks":1e9}}`, `{"tool":"wait","args":{"ticks":"3"}}`, `{"tool":"get_policy","args":{"topic":"Damage"}}`, "", "\xff\xfe"}
	for _, family := range []string{"resolve-act", "for-each", "compensate"} {
		c, _ := Pack.Condition(family)
		c, _ = c.Set("slack", "3")
		for seed := range uint64(*seeds) {
			ep := start(t, c, seed, gym.Text)
			room := ep.Limits().Calls - len(ep.Evidence().Built.Plan) - 2
			for i := range min(len(garbage), room) {
				before := gym.DigestWorld(ep.Evidence().Last)
				calls := ep.Calls()
				if err := ep.StepText([]byte(garbage[(i+int(seed))%len(garbage)])); err != nil {
					t.Fatal(err)
				}
				var got struct{ Error struct{ Code, Text string } }
				if err := json.Unmarshal(ep.Result(), &got); err != nil || got.Error.Code == "" || got.Error.Text == "" {
					t.Errorf("%.80q gives %.200q", garbage[i], ep.Result())
				}
				if ep.Calls() != calls+1 || gym.DigestWorld(ep.Evidence().Last) != before {
					t.Errorf("%.80q cost %d calls, or changed the world", garbage[i], ep.Calls()-calls)
				}
			}
			// From here on as it should be, two calls a turn where the work allows it: the reads of a message are independent.
			a := &oracle{plan: ep.Evidence().Built.Plan}
			for ep.Outcome() == gym.Running {
				var one gym.Call
				if !a.Act(ep, &one) {
					break
				}
				var spelled struct {
					Tool string
					Args json.RawMessage
				}
				if err := json.Unmarshal(Pack.AppendCall(nil, &one), &spelled); err != nil {
					t.Fatal(err)
				}
				m := message{Role: "assistant"}
				m.Calls = append(m.Calls, struct {
					Name string          `json:"name"`
					Args json.RawMessage `json:"arguments"`
				}{spelled.Tool, spelled.Args})
				sent, err := json.Marshal(m)
				if err != nil || json.Unmarshal(sent, &m) != nil {
					t.Fatal(err)
				}
				for _, c := range m.Calls {
					action, _ := json.Marshal(map[string]any{"args": c.Args, "tool": c.Name}) // the other order of members
					if err := ep.StepText(action); err != nil {
						t.Fatal(err)
					}
				}
			}
			if !ep.Success() {
				t.Errorf("%s: %s, %+v", ep.Task().ID(), ep.Outcome(), ep.Components())
			}
		}
	}
}

// TestFrames: each kind of case has six ways at least to be said, and all of them occur.
func TestFrames(t *testing.T) {
	for kind, fs := range frames {
		if len(fs) < 6 {
			t.Errorf("%s has %d frames", kind, len(fs))
		}
	}
	for _, family := range Pack.FamilyNames() {
		begins := map[string]bool{}
		c, _ := Pack.Condition(family)
		for seed := range uint64(80) {
			b, err := Pack.Build(gym.Task{Condition: c, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			begins[b.Instruction[:min(14, len(b.Instruction))]] = true
		}
		if len(begins) < 6 {
			t.Errorf("%s begins in %d ways", family, len(begins))
		}
	}
}

func TestChecksDoNotImportAudits(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "./check", "./world").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if strings.Contains(string(out), "packs/tooluse/audit") {
		t.Error("the checks depend on the audits")
	}
}
