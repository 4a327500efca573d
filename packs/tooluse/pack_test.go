package tooluse

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"provegym/gym"
	"provegym/gym/control"
	"provegym/gym/packtest"
	"provegym/packs/tooluse/check"
	"provegym/packs/tooluse/desk"
)

var seeds = flag.Int("seeds", 20, "tasks per condition")

// each calls f for every family at every preset and at both ends of every dial.
func each(t *testing.T, f func(t *testing.T, c gym.Condition)) {
	t.Helper()
	for _, family := range Pack.FamilyNames() {
		base, err := Pack.Condition(family)
		if err != nil {
			t.Fatal(err)
		}
		conditions := append(control.DialEnds(base), base)
		for _, name := range Pack.PresetNames() {
			c, err := Pack.Preset(family, name)
			if err != nil {
				t.Fatal(err)
			}
			conditions = append(conditions, c)
		}
		for _, c := range conditions {
			f(t, c)
		}
	}
}

func start(t testing.TB, c gym.Condition, seed uint64, v gym.View) *gym.Episode {
	t.Helper()
	ep, err := gym.NewEpisode(gym.Task{Condition: c, Seed: seed}, gym.Options{View: v})
	if err != nil {
		t.Fatal(err)
	}
	return ep
}

func run(t testing.TB, ep *gym.Episode, agent string, variant int) {
	t.Helper()
	a, err := control.Agent(Pack, agent)
	if err != nil {
		t.Fatal(err)
	}
	actor, err := control.New(ep, a, variant, control.Key(ep.Task(), agent))
	if err != nil {
		t.Fatal(err)
	}
	if err := control.Play(ep, actor); err != nil {
		t.Fatalf("%s: %v", control.Rerun(ep.Task(), agent, variant, ep.View()), err)
	}
}

func TestPack(t *testing.T) { packtest.Run(t, Pack) }

func TestNothingLeaks(t *testing.T) {
	for _, problem := range packtest.Watch(Pack, packtest.Options{}, 1200) {
		t.Error(problem)
	}
}

func TestGolden(t *testing.T) { packtest.Golden(t, Pack) }

func TestControls(t *testing.T) {
	for _, family := range Pack.FamilyNames() {
		check, err := control.NewCheck(Pack, control.Options{Families: []string{family}, Seeds: 2 * *seeds, DialSeeds: *seeds})
		if err != nil {
			t.Fatal(err)
		}
		r := check.Step(1 << 62)
		for _, f := range r.Failures {
			t.Errorf("%s variant %d %s: %s\nrerun: %s", f.Control, f.Variant, f.View, f.Text, f.Rerun)
		}
	}
}

// TestOracle also plays a reader, who has no privilege, and at the presets, between the ends of the dials, where values could fall off the table of slots.
func TestOracle(t *testing.T) {
	each(t, func(t *testing.T, c gym.Condition) {
		for seed := range uint64(*seeds) {
			for _, v := range []gym.View{gym.Text, gym.Structured} {
				for _, agent := range []string{"oracle", "pc2_permuted", "reader"} {
					ep := start(t, c, seed, v)
					if run(t, ep, agent, 0); !ep.Success() {
						t.Errorf("%s after %d of %d calls, %+v\nrerun: %s", ep.Outcome(), ep.Calls(), ep.Limits().Calls, ep.Components(),
							control.Rerun(ep.Task(), agent, 0, v))
					}
					if a := ep.Audits(); len(a) > 0 {
						t.Errorf("%s: audit flags the %s: %v", ep.Task().ID(), agent, a)
					}
				}
			}
		}
	})
}

// TestHardestCorner turns every dial to its hardest level at once.
func TestHardestCorner(t *testing.T) {
	for _, family := range Pack.FamilyNames() {
		c, _ := Pack.Condition(family)
		for i := range Pack.Dials {
			c.Levels[i] = uint8(len(Pack.Dials[i].Levels) - 1)
		}
		for pages := range Pack.Dials[2].Levels {
			c, _ := c.With("page_size", pages)
			for seed := range uint64(4 * *seeds) {
				ep := start(t, c, seed, gym.Structured)
				if run(t, ep, "pc2_permuted", 0); !ep.Success() {
					t.Errorf("%s: %s after %d of %d calls, %+v", ep.Task().ID(), ep.Outcome(), ep.Calls(), ep.Limits().Calls, ep.Components())
				}
			}
		}
	}
}

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
		for _, family := range Pack.FamilyNames() {
			c, _ := Pack.Preset(family, "L2")
			for seed := range uint64(*seeds) {
				for variant := range a.Variants(start(t, c, seed, gym.Text).Evidence()) {
					ep := start(t, c, seed, gym.Text)
					run(t, ep, tc.agent, variant)
					got := ep.Components()
					got.Path = got.Path || !tc.want.Collateral // an early write may also come before what has to be read first
					if got != tc.want {
						t.Errorf("%+v, want %+v\nrerun: %s", got, tc.want, control.Rerun(ep.Task(), tc.agent, variant, gym.Text))
					}
				}
			}
		}
	}
}

// TestFinishIsExact: after right work, every finish but the right one fails, and fails by the finish alone.
func TestFinishIsExact(t *testing.T) {
	for _, family := range Pack.FamilyNames() {
		c, _ := Pack.Condition(family)
		for seed := range uint64(3) {
			ep := start(t, c, seed, gym.Text)
			plan := planOf(ep.Evidence())
			for range len(plan.steps) - 1 {
				var next gym.Call
				plan.Act(ep, &next)
				if err := ep.StepCall(&next); err != nil {
					t.Fatal(err)
				}
			}
			var worked gym.Snapshot
			if err := ep.Snapshot(&worked); err != nil {
				t.Fatal(err)
			}
			s, w := specOf(ep.Evidence()), lastWorld(ep.Evidence())
			right := s.Evidence(w)
			stale := w.OrderRevAt(int(s.Orders[0]), w.Orders.Ver(int(s.Orders[0]))+1)
			for outcome := range len(desk.Types[desk.TOutcome].Enum) {
				for code := range desk.NumCodes {
					for i, evidence := range [][]gym.Value{right, right[1:], append(slices.Clone(right), w.CustomerID(owner)), append(slices.Clone(right[1:]), stale)} {
						want := gym.Components{Goals: s.Act != check.Refuse || outcome == desk.Refused, Path: true, Collateral: true,
							Commit: outcome == int(s.Outcome()) && code == int(s.Code) && i == 0}
						if i == 2 {
							evidence[len(evidence)-1] = w.OrderID(s.Decoys.Own)
						}
						if err := ep.Restore(&worked, gym.Options{}); err != nil {
							t.Fatal(err)
						}
						f := finishWith(outcome, code, evidence...)
						if err := ep.StepCall(&f); err != nil {
							t.Fatal(err)
						}
						if ep.Components() != want {
							t.Errorf("%s: finish %d %d with evidence %d: %+v, want %+v", ep.Task().ID(), outcome, code, i, ep.Components(), want)
						}
					}
				}
			}
		}
	}
}

// TestOtherActsFail: the same way, with another write or with the right write in another word, ends in failure.
func TestOtherActsFail(t *testing.T) {
	for _, family := range []string{"resolve-act", "branch", "refusal"} {
		c, _ := Pack.Condition(family)
		for seed := range uint64(*seeds) {
			ep := start(t, c, seed, gym.Text)
			right := *specOf(ep.Evidence())
			for _, act := range []check.Act{check.Cancel, check.Readdress, check.Exchange, check.Escalate} {
				for word := range uint8(desk.NumReasons) {
					other := right
					other.Act, other.Reason, other.Queue = act, word, word
					if act == right.Act && (act == check.Readdress || act == check.Exchange || act == check.Cancel && word == right.Reason ||
						act == check.Escalate && word == right.Queue) {
						continue
					}
					ep := start(t, c, seed, gym.Text)
					e := ep.Evidence()
					w, o := e.First.(*desk.World), right.Orders[0]
					steps := append(reads(e), getCustomerCall(w, owner), write(&other, w, o), getOrderCall(w, o), finishCall(&right))
					if err := control.Play(ep, &script{steps: steps}); err != nil {
						t.Fatal(err)
					}
					if got := ep.Components(); ep.Outcome() != gym.Scored || got.Goals && right.Act != check.Refuse || got.Collateral {
						t.Errorf("%s: act %d with word %d: %s, %+v", ep.Task().ID(), act, word, ep.Outcome(), got)
					}
				}
			}
		}
	}
}

// TestTwiceFails: the right write, made again, is one write too many.
func TestTwiceFails(t *testing.T) {
	c, _ := Pack.Condition("resolve-act")
	tried := 0
	for seed := range uint64(4 * *seeds) {
		ep := start(t, c, seed, gym.Text)
		e := ep.Evidence()
		s, w := specOf(e), e.First.(*desk.World)
		if s.Act != check.Readdress {
			continue
		}
		tried++
		a := planOf(e)
		a.steps = slices.Insert(a.steps, len(a.steps)-1, write(s, w, s.Orders[0]), getOrderCall(w, s.Orders[0]))
		if err := control.Play(ep, a); err != nil {
			t.Fatal(err)
		}
		if want := (gym.Components{Goals: true, Path: true, Commit: true}); ep.Components() != want {
			t.Errorf("%s: %+v, want %+v", ep.Task().ID(), ep.Components(), want)
		}
	}
	if tried == 0 {
		t.Error("no seed has an order to send elsewhere")
	}
}

// TestRefusalReadsTheCase: a refusal that guessed what the order would have shown fails by the path alone.
func TestRefusalReadsTheCase(t *testing.T) {
	c, _ := Pack.Condition("refusal")
	c, _ = c.With("indirection", byID)
	for seed := range uint64(*seeds) {
		ep := start(t, c, seed, gym.Text)
		a := planOf(ep.Evidence())
		a.steps = slices.Delete(a.steps, 0, 1)
		if err := control.Play(ep, a.byMagic()); err != nil {
			t.Fatal(err)
		}
		if want := (gym.Components{Goals: true, Collateral: true, Commit: true}); ep.Components() != want {
			t.Errorf("%s: %+v, want %+v", ep.Task().ID(), ep.Components(), want)
		}
	}
}

// TestBudgets: no plan is longer than the bound that budgets rest on, and some plan comes near it.
func TestBudgets(t *testing.T) {
	each(t, func(t *testing.T, c gym.Condition) {
		set, most := settingOf(&c), 0
		bound := longest(c.Family, &set)
		for seed := range uint64(10 * *seeds) {
			b, err := Pack.Build(gym.Task{Condition: c, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, len(b.Plan))
		}
		if most > bound || most < bound-2 {
			t.Errorf("%s: plans have up to %d steps, the bound is %d", c.ID(), most, bound)
		}
	})
}

// rows spells the rows of a world, each with the kind that it belongs to.
func rows(w *desk.World) map[string]bool {
	out := map[string]bool{}
	for i := range w.Customers.Len() {
		r := *w.Customers.At(i)
		r.Sponsor = uint32(w.Customers.At(int(r.Sponsor)).ID) // rows shift as blocks grow, ids do not
		out[fmt.Sprintf("customer %+v", r)] = true
	}
	for i := range w.Orders.Len() {
		r := *w.Orders.At(i)
		of, to := w.Customers.At(int(r.Customer)).ID, w.Addresses.At(int(r.Address)).ID
		r.Customer, r.Address = 0, 0
		out[fmt.Sprintf("order %+v of %x to %x", r, of, to)] = true
	}
	for i := range w.Lines.Len() {
		r := *w.Lines.At(i)
		out[fmt.Sprintf("line %x %d %d of %x", r.ID, r.Item, r.Variant, w.Orders.At(int(r.Order)).ID)] = true
	}
	for i := range w.Policies.Len() {
		out[fmt.Sprintf("policy %+v", *w.Policies.At(i))] = true
	}
	return out
}

// TestDialsAreIndependent: turning a dial up keeps every row of the world that was there. What the dial does not own is the
// same, word for word.
func TestDialsAreIndependent(t *testing.T) {
	for _, family := range Pack.FamilyNames() {
		base, _ := Pack.Condition(family)
		for i, dial := range Pack.Dials {
			if dial.Name == "indirection" {
				continue // see TestIndirectionKeepsTheCase
			}
			for seed := range uint64(min(*seeds, 10)) {
				var before *gym.Built
				for level := range dial.Levels {
					c := base
					c.Levels[i] = uint8(level)
					now, err := Pack.Build(gym.Task{Condition: c, Seed: seed})
					if err != nil {
						t.Fatal(err)
					}
					if before != nil {
						compare(t, fmt.Sprintf("%s seed %d", c.ID(), seed), dial.Name, before, now)
					}
					before = now
				}
			}
		}
	}
}

func compare(t *testing.T, where, dial string, before, now *gym.Built) {
	t.Helper()
	a, b := before.World.(*desk.World), now.World.(*desk.World)
	had, has := rows(a), rows(b)
	for r := range had {
		if !has[r] {
			t.Errorf("%s: turning %s up lost %s", where, dial, r)
		}
	}
	if dial != "fanout" && dial != "near_duplicates" && len(has) != len(had) {
		t.Errorf("%s: turning %s changed the number of rows from %d to %d", where, dial, len(had), len(has))
	}
	if dial == "extra_tools" {
		if before.Tools&^now.Tools != 0 {
			t.Errorf("%s: turning extra_tools up took tools away", where)
		}
	} else if before.Tools != now.Tools {
		t.Errorf("%s: turning %s changed the tools", where, dial)
	}
	if before.Instruction != now.Instruction || before.Goal != now.Goal {
		t.Errorf("%s: turning %s changed the instruction:\n%s\n%s", where, dial, before.Instruction, now.Instruction)
	}
	if s, u := before.Spec.(*check.Spec), now.Spec.(*check.Spec); s.Act != u.Act || s.Code != u.Code || s.Reason != u.Reason || s.Queue != u.Queue {
		t.Errorf("%s: turning %s changed the task: %+v, %+v", where, dial, s, u)
	}
}

// TestIndirectionKeepsTheCase: how the order is described changes neither which order it is nor what is asked, nor any row but
// those of near-duplicates, which resemble what is described.
func TestIndirectionKeepsTheCase(t *testing.T) {
	for _, family := range Pack.FamilyNames() {
		for seed := range uint64(*seeds) {
			var first *gym.Built
			for level := range 4 {
				c, _ := Pack.Condition(family)
				c, _ = c.With("indirection", level)
				b, err := Pack.Build(gym.Task{Condition: c, Seed: seed})
				if err != nil {
					t.Fatal(err)
				}
				if first == nil {
					first = b
				}
				s, u := first.Spec.(*check.Spec), b.Spec.(*check.Spec)
				v, w := first.World.(*desk.World), b.World.(*desk.World)
				if s.Act != u.Act || s.Code != u.Code || !slices.Equal(s.Orders, u.Orders) || *v.Orders.At(int(s.Orders[0])) != *w.Orders.At(int(u.Orders[0])) {
					t.Errorf("%s seed %d: %+v, then %+v", c.ID(), seed, s, u)
				}
				set := settingOf(&c)
				had, has, lost := rows(v), rows(w), 0
				for r := range had {
					lost += applies(!has[r])
				}
				if most := 4*set.decoyCustomers + 3*set.decoyOrders; lost > most {
					t.Errorf("%s seed %d: %d rows changed, more than the near-duplicates have", c.ID(), seed, lost)
				}
			}
		}
	}
}

// TestSecrets: what an agent sees holds no id or rev that the call did not mean to show, whatever it plays.
func TestSecrets(t *testing.T) {
	for _, family := range Pack.FamilyNames() {
		for _, preset := range []string{"L0", "L1", "L3"} {
			c, _ := Pack.Preset(family, preset)
			for seed := range uint64(3 * *seeds) {
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

// Errors say the same of an id that was never issued and of one that is somebody else's.
func TestErrorsTellNothing(t *testing.T) {
	c, _ := Pack.Condition("resolve-act")
	ep := start(t, c, 1, gym.Text)
	w := ep.Evidence().Last.(*desk.World)
	s := specOf(ep.Evidence())
	rev := w.OrderRev(int(s.Orders[0]))
	foreign := w.AddressID(perCustomer*referred + 1)
	var texts []string
	for _, a := range []gym.Value{foreign, {Type: desk.TAddress, Bits: 1}} {
		c := call(toolReaddress, w.OrderID(int(s.Orders[0])), a, rev)
		if err := ep.StepCall(&c); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(ep.Result()))
	}
	if texts[0] != texts[1] || !strings.Contains(texts[0], "not_found") {
		t.Errorf("the errors differ: %q", texts)
	}
}

// Every refusal code occurs, so that no constant can be right often.
func TestRefusalCodesVary(t *testing.T) {
	c, _ := Pack.Condition("refusal")
	var seen [desk.NumCodes]int
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

// branch and refusal read alike: only the world tells them apart.
func TestRefusalReadsLikeBranch(t *testing.T) {
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
}

func TestProvenanceAudit(t *testing.T) {
	c, _ := Pack.Condition("resolve-act")
	ep := start(t, c, 1, gym.Text)
	e := ep.Evidence()
	get := call(toolGetOrder, e.Last.(*desk.World).OrderID(int(specOf(e).Orders[0])))
	if err := ep.StepCall(&get); err != nil {
		t.Fatal(err)
	}
	if a := ep.Audits(); len(a) != 1 {
		t.Errorf("an order that nothing had shown was read, and the audits say %v", a)
	}
}

func TestChecksDoNotImportAudits(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "./check", "./desk").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if strings.Contains(string(out), "packs/tooluse/audit") {
		t.Error("the checks depend on the audits")
	}
}

func BenchmarkReset(b *testing.B) {
	for _, family := range Pack.FamilyNames() {
		for _, preset := range []string{"L1", "L4"} {
			for _, v := range []gym.View{gym.Text, gym.Structured} {
				b.Run(fmt.Sprintf("%s/%s/%s", family, preset, v), func(b *testing.B) {
					c, _ := Pack.Preset(family, preset)
					ep := &gym.Episode{}
					for i := range b.N {
						if err := ep.Start(gym.Task{Condition: c, Seed: uint64(i)}, gym.Options{View: v}); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// BenchmarkCall measures a call of the oracle: time of whole episodes without their reset, over their calls.
func BenchmarkCall(b *testing.B) {
	for _, family := range Pack.FamilyNames() {
		for _, preset := range []string{"L1", "L4"} {
			for _, v := range []gym.View{gym.Text, gym.Structured} {
				b.Run(fmt.Sprintf("%s/%s/%s", family, preset, v), func(b *testing.B) {
					c, _ := Pack.Preset(family, preset)
					ep := start(b, c, 1, v)
					run(b, ep, "oracle", 0)
					var calls []gym.Call
					for i := range ep.Evidence().Log.Len() {
						r := ep.Evidence().Log.At(i)
						calls = append(calls, clone(Pack, &r.Call))
					}
					var at gym.Snapshot
					ep = start(b, c, 1, v)
					if err := ep.Snapshot(&at); err != nil {
						b.Fatal(err)
					}
					b.ResetTimer()
					for i := 0; i < b.N; {
						b.StopTimer()
						if err := ep.Restore(&at, gym.Options{View: v}); err != nil {
							b.Fatal(err)
						}
						b.StartTimer()
						for k := 0; k < len(calls) && i < b.N; k++ {
							if err := ep.StepCall(&calls[k]); err != nil {
								b.Fatal(err)
							}
							i++
						}
					}
				})
			}
		}
	}
}

// TestComplaintsAreAlike: nothing that the agent is told before it reads says whether the policy will refuse. The budgets are
// equal, and with the policy's and the order's facts taken out the instructions come from the same frames.
func TestComplaintsAreAlike(t *testing.T) {
	frames := map[string]map[string]bool{}
	for _, preset := range Pack.PresetNames() {
		var limits [2]gym.Limits
		for i, family := range []string{"branch", "refusal"} {
			c, err := Pack.Preset(family, preset)
			if err != nil {
				t.Fatal(err)
			}
			limits[i] = Pack.Limits(c)
			if frames[family] == nil {
				frames[family] = map[string]bool{}
			}
			for seed := range uint64(40) {
				b, err := Pack.Build(gym.Task{Condition: c, Seed: seed})
				if err != nil {
					t.Fatal(err)
				}
				if b.Goal[goalWant] != wantPolicy {
					t.Errorf("%s seed %d: the goal asks for %v", family, seed, b.Goal[goalWant])
				}
				about, _, _ := strings.Cut(b.Instruction, "order")
				frames[family][about] = true
			}
		}
		if limits[0] != limits[1] {
			t.Errorf("%s: the budget of a complaint is %+v, of one that is refused %+v", preset, limits[0], limits[1])
		}
	}
	if !maps.Equal(frames["branch"], frames["refusal"]) {
		t.Errorf("a complaint begins %v, one that is refused %v", frames["branch"], frames["refusal"])
	}
}
