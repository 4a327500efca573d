package gym

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestEpisode_happyPath(t *testing.T) {
	ep := start(t, deskPack(t, nil), Text)
	if got := string(ep.Result()); got != ep.Instruction() || ep.Outcome() != Running {
		t.Errorf("the first observation is %s, the outcome %s", got, ep.Outcome())
	}
	say(t, ep, list, set7)
	if ep.Reward() != 0 || ep.Outcome() != Running {
		t.Errorf("before the finish: reward %v, %s", ep.Reward(), ep.Outcome())
	}
	say(t, ep, green)
	if !ep.Success() || ep.Reward() != 1 || ep.Outcome() != Scored || ep.Limit() != NoLimit || ep.Calls() != 3 || ep.Steps() != 3 {
		t.Errorf("at the end: %v %v %s %s, %d calls", ep.Success(), ep.Reward(), ep.Outcome(), ep.Limit(), ep.Calls())
	}
}

func TestEpisode_stepsAtTheWrongTime(t *testing.T) {
	var ep Episode
	for name, f := range map[string]func() error{
		"StepText":   func() error { return ep.StepText(nil) },
		"StepAction": func() error { return ep.StepAction(0) },
		"StepCall":   func() error { return ep.StepCall(&Call{}) },
		"Stop":       func() error { return ep.Stop(Truncated, LimitTokens, "") },
		"Snapshot":   func() error { return ep.Snapshot(&Snapshot{}) },
		"Export":     func() error { _, err := ep.Export(); return err },
	} {
		if err := f(); !errors.Is(err, ErrNotReset) {
			t.Errorf("%s before the start: %v", name, err)
		}
	}
	ep = Episode{}
	if err := ep.Restore(&Snapshot{}, Options{}); !errors.Is(err, ErrSnapshot) {
		t.Errorf("restoring nothing: %v", err)
	}
	if err := ep.Start(deskTask(t, deskPack(t, nil), 1), Options{}); err != nil {
		t.Fatal(err)
	}
	say(t, &ep, green)
	before := ep.Digest()
	for name, err := range map[string]error{"StepText": ep.StepText([]byte(list)), "StepAction": ep.StepAction(1), "StepCall": ep.StepCall(&Call{}),
		"Stop": ep.Stop(Invalid, NoLimit, "late")} {
		if !errors.Is(err, ErrEpisodeOver) {
			t.Errorf("%s after the end: %v", name, err)
		}
	}
	if ep.Digest() != before {
		t.Error("a step after the end changed the episode")
	}
}

// Each row is one way to end; terminated and truncated follow from the outcome, a reward from success alone.
func TestEpisode_outcomes(t *testing.T) {
	reward := func(r float64) func(p *Pack) {
		return func(p *Pack) {
			build := p.Build
			p.Build = func(task Task) (*Built, error) {
				b, err := build(task)
				b.Check.Reward = func(*Evidence, Components) float64 { return r }
				return b, err
			}
		}
	}
	limits := func(l Limits) func(p *Pack) {
		return func(p *Pack) { p.Limits = func(Condition) Limits { return l } }
	}
	for name, c := range map[string]struct {
		change  func(p *Pack)
		actions []string
		outcome Outcome
		limit   Limit
		reward  float64
		why     string
	}{
		"success":                        {nil, []string{set7, green}, Scored, NoLimit, 1, ""},
		"wrong answer":                   {nil, []string{set7, `{"tool":"finish","args":{"word":"red"}}`}, Scored, NoLimit, 0, ""},
		"nothing done":                   {nil, []string{green}, Scored, NoLimit, 0, ""},
		"collateral taken back":          {nil, []string{set7, strings.Replace(set7, "1\"", "2\"", 1), strings.Replace(strings.Replace(set7, "1\"", "2\"", 1), "7", "0", 1), green}, Scored, NoLimit, 0, ""},
		"refused finish does not commit": {limits(Limits{2, time.Minute, 1000}), []string{set7, `{"tool":"finish"}`}, Truncated, LimitCalls, 0, ""},
		"calls":                          {limits(Limits{3, time.Minute, 1000}), []string{set7, list, list}, Truncated, LimitCalls, 0, ""},
		"finish as the last call":        {limits(Limits{2, time.Minute, 1000}), []string{set7, green}, Scored, NoLimit, 1, ""},
		"bad calls cost":                 {limits(Limits{2, time.Minute, 1000}), []string{"x", "y"}, Truncated, LimitCalls, 0, ""},
		"bytes":                          {limits(Limits{9, time.Minute, 100}), []string{list}, Truncated, LimitBytes, 0, ""},
		"infrastructure":                 {hook(func(*Turn) error { return errBoom }), []string{hooked}, Invalid, NoLimit, 0, "boom"},
		"panic":                          {hook(func(*Turn) error { panic("oops") }), []string{hooked}, Invalid, NoLimit, 0, "oops"},
		"refusal after a write":          {hook(func(t *Turn) error { t.Write(Entity{1, 0}, 0, 2, 0, 1); return Refuse("no", "no") }), []string{hooked}, Invalid, NoLimit, 0, "after it had written"},
		"refusal after waiting":          {hook(func(t *Turn) error { t.Wait(5); return Refuse("no", "no") }), []string{hooked}, Invalid, NoLimit, 0, "after it had written"},
		"open object":                    {hook(func(t *Turn) error { t.Open("x"); return nil }), []string{hooked}, Invalid, NoLimit, 0, "left an object open"},
		"NaN":                            {reward(math.NaN()), []string{set7, green}, CheckError, NoLimit, 0, "NaN"},
		"infinite":                       {reward(math.Inf(1)), []string{set7, green}, CheckError, NoLimit, 0, "+Inf"},
		"negative":                       {reward(-.1), []string{set7, green}, CheckError, NoLimit, 0, "-0.1"},
		"above one":                      {reward(1.1), []string{set7, green}, CheckError, NoLimit, 0, "1.1"},
		"own reward":                     {reward(.5), []string{set7, green}, Scored, NoLimit, .5, ""},
		"check panics": {func(p *Pack) {
			build := p.Build
			p.Build = func(task Task) (*Built, error) {
				b, err := build(task)
				b.Check.Commit.Holds = func(e *Evidence) bool { panic("bad check") }
				return b, err
			}
		}, []string{set7, green}, CheckError, NoLimit, 0, "bad check"},
	} {
		t.Run(name, func(t *testing.T) {
			ep := start(t, deskPack(t, c.change), Text)
			say(t, ep, c.actions...)
			if ep.Outcome() != c.outcome || ep.Limit() != c.limit || ep.Reward() != c.reward || !strings.Contains(ep.Why(), c.why) {
				t.Errorf("got %s %q reward %v why %q", ep.Outcome(), ep.Limit(), ep.Reward(), ep.Why())
			}
			if c.outcome != Scored && (ep.Success() || ep.Components() != (Components{})) {
				t.Errorf("an episode that was not scored has components %+v", ep.Components())
			}
			if !json.Valid(ep.Result()) || strings.Contains(string(ep.Result()), "boom") || strings.Contains(string(ep.Result()), "oops") {
				t.Errorf("the agent sees %s", ep.Result())
			}
		})
	}
}

// An episode that the trainer stops ends like any other: typed, without reward, with a digest that says how it ended.
func TestEpisode_stop(t *testing.T) {
	p := registered()
	for v := range View(2) {
		digests := map[Digest]bool{}
		for _, c := range []struct {
			outcome Outcome
			limit   Limit
			why     string
		}{{Truncated, LimitTokens, ""}, {Truncated, LimitWall, ""}, {Invalid, NoLimit, "the server is gone"}} {
			rec := &counts{}
			var ep Episode
			if err := ep.Start(deskTask(t, p, 3), Options{View: v, Recorder: rec}); err != nil {
				t.Fatal(err)
			}
			if v == Text {
				say(t, &ep, list)
			} else if err := errors.Join(ep.StepAction(1), ep.StepAction(-1)); err != nil {
				t.Fatal(err)
			}
			shown, running, calls := ep.ObsCRC(), ep.Digest(), ep.Calls()
			if err := ep.Stop(c.outcome, c.limit, c.why); err != nil {
				t.Fatal(err)
			}
			if ep.Outcome() != c.outcome || ep.Limit() != c.limit || ep.Why() != c.why || ep.Reward() != 0 || ep.Success() || ep.Calls() != calls {
				t.Errorf("%s view: stopped as %s %q %q, reward %v", v, ep.Outcome(), ep.Limit(), ep.Why(), ep.Reward())
			}
			if ep.ObsCRC() != shown || ep.Digest() == running {
				t.Errorf("%s view, %s: the observation changed, or the digest did not", v, c.outcome)
			}
			if *rec != (counts{begun: 1, steps: ep.Steps(), ended: 1}) || ep.RecordID() != 1 {
				t.Errorf("%s view, %s: recorded as %+v", v, c.outcome, *rec)
			}
			if err := ep.StepText([]byte(list)); !errors.Is(err, ErrEpisodeOver) {
				t.Errorf("a step after the stop: %v", err)
			}
			digests[ep.Digest()] = true

			b, err := ep.Export()
			if err != nil {
				t.Fatal(err)
			}
			var other Episode
			if err := other.Import(b, Options{View: v}); err != nil || other.Outcome() != c.outcome || other.Limit() != c.limit || other.Why() != c.why ||
				other.Digest() != ep.Digest() || other.ObsCRC() != shown {
				t.Errorf("%s view, %s: the import is %s: %v", v, c.outcome, other.Outcome(), err)
			}
			cut := strings.Replace(string(b), `"stop":`, `"halt":`, 1)
			if err := other.Import([]byte(cut), Options{View: v}); !errors.Is(err, ErrSnapshot) {
				t.Errorf("%s view, %s: an import without the stop: %v", v, c.outcome, err)
			}
			if err := ep.Start(deskTask(t, p, 3), Options{View: v}); err != nil || ep.Outcome() != Running || ep.Why() != "" {
				t.Errorf("%s view: started anew as %s %q: %v", v, ep.Outcome(), ep.Why(), err)
			}
		}
		if len(digests) != 2 { // the outcome is in it, the limit is not
			t.Errorf("%s view: %d digests", v, len(digests))
		}
	}
}

func TestEpisode_stopRefusesWhatIsNoEnd(t *testing.T) {
	ep := start(t, deskPack(t, nil), Text)
	before := ep.Digest()
	for _, c := range []struct {
		outcome Outcome
		limit   Limit
		why     string
		says    string
	}{
		{Running, NoLimit, "x", "not as"}, {Scored, NoLimit, "x", "scored"}, {CheckError, NoLimit, "x", "check_error"}, {77, NoLimit, "x", "77"},
		{Truncated, NoLimit, "", "limit"}, {Truncated, 9, "", "9"}, {Truncated, LimitTokens, "x", "no other reason"},
		{Invalid, NoLimit, "", "why"}, {Invalid, LimitTokens, "x", "no limit"},
	} {
		if err := ep.Stop(c.outcome, c.limit, c.why); !errors.Is(err, ErrBadInput) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if ep.Outcome() != Running || ep.Digest() != before {
		t.Error("a refused stop changed the episode")
	}
}

func TestEpisode_brokenTasksDoNotStart(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *Built)
		text   string
	}{
		"no goals":       {func(b *Built) { b.Check.Goals = nil }, "no goals"},
		"no collateral":  {func(b *Built) { b.Check.Collateral.Holds = nil }, "lacks collateral"},
		"no commit":      {func(b *Built) { b.Check.Commit.Holds = nil }, "lacks collateral or commit"},
		"goals at start": {func(b *Built) { b.Check.Goals[0].Holds = func(*Evidence) bool { return true } }, "holds at the start"},
	} {
		p := deskPack(t, func(p *Pack) {
			build := p.Build
			p.Build = func(task Task) (*Built, error) { b, err := build(task); c.change(b); return b, err }
		})
		ep, err := NewEpisode(deskTask(t, p, 1), Options{})
		if !errors.Is(err, ErrPack) || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), "#seed=1") {
			t.Errorf("%s: %v", name, err)
		}
		if err := ep.StepText([]byte(green)); !errors.Is(err, ErrEpisodeOver) {
			t.Errorf("%s: a step gave %v", name, err)
		}
	}
	p := deskPack(t, func(p *Pack) { p.Limits = func(Condition) Limits { return Limits{} } })
	if _, err := NewEpisode(deskTask(t, p, 1), Options{}); !errors.Is(err, ErrPack) {
		t.Errorf("no limits: %v", err)
	}
}

// A tool that loops for ever ends by its wall budget at its next touch of the turn, whatever it touches.
func TestEpisode_wallEndsAPollingTool(t *testing.T) {
	for name, touch := range map[string]func(t *Turn){
		"Read": func(t *Turn) { t.Read(Entity{1, 0}, 0, 1); t.ep.log.reads = t.ep.log.reads[:0] },
		"Int":  func(t *Turn) { t.Int("n", 1); t.ep.log.bytes, t.shows = t.ep.log.bytes[:0], t.shows[:0] },
		"Say":  func(t *Turn) { t.Say("n", "x"); t.ep.log.bytes = t.ep.log.bytes[:0] },
	} {
		p := deskPack(t, func(p *Pack) {
			p.Limits = func(Condition) Limits { return Limits{5, 5 * time.Millisecond, 1000} }
			hook(func(t *Turn) error {
				for {
					touch(t)
				}
			})(p)
		})
		ep := start(t, p, Text)
		say(t, ep, hooked)
		if ep.Outcome() != Truncated || ep.Limit() != LimitWall || ep.Reward() != 0 || string(ep.Result()) != WallResult {
			t.Errorf("%s: %s %s, the agent sees %s", name, ep.Outcome(), ep.Limit(), ep.Result())
		}
	}
}

func TestEpisode_abandon(t *testing.T) {
	inside := make(chan bool)
	p := deskPack(t, hook(func(t *Turn) error {
		inside <- true
		for {
			t.Read(Entity{1, 0}, 0, 1)
			t.ep.log.reads = t.ep.log.reads[:0]
		}
	}))
	ep := start(t, p, Text)
	if ep.Abandon() {
		t.Error("an episode at rest was abandoned")
	}
	done := make(chan error)
	go func() { done <- ep.StepText([]byte(hooked)) }()
	<-inside
	if !ep.Abandon() {
		t.Error("an episode inside a tool was not abandoned")
	}
	<-done
}

func TestEpisode_doors(t *testing.T) {
	p := registered()
	task := deskTask(t, p, 1)
	free, err := NewEpisode(task, Options{})
	if err != nil {
		t.Fatal(err)
	}
	say(t, free, list)
	var snap Snapshot
	if err := free.Snapshot(&snap); err != nil {
		t.Fatal(err)
	}
	exported, err := free.Export()
	if err != nil {
		t.Fatal(err)
	}
	doors := map[string]func(o Options) error{
		"NewEpisode": func(o Options) error { _, err := NewEpisode(task, o); return err },
		"Start":      func(o Options) error { return new(Episode).Start(task, o) },
		"Restore":    func(o Options) error { return new(Episode).Restore(&snap, o) },
		"Import":     func(o Options) error { return new(Episode).Import(exported, o) },
	}
	held := func(is func(c Condition, graph string, mechanisms []string) bool) Split {
		return splitFunc(func(mode Mode, c Condition, graph string, mechanisms []string) error {
			if mode != Test && is(c, graph, mechanisms) {
				return fmt.Errorf("%w: %s", ErrHeldOut, c.ID())
			}
			return nil
		})
	}
	for by, split := range map[string]Split{
		"family":    held(func(c Condition, _ string, _ []string) bool { return c.Family == "plain" }),
		"graph":     held(func(_ Condition, graph string, _ []string) bool { return graph == "g" }),
		"mechanism": held(func(_ Condition, _ string, m []string) bool { return len(m) > 0 && m[0] == "m" }),
	} {
		for door, open := range doors {
			for _, mode := range []Mode{Train, Eval} {
				if err := open(Options{Mode: mode, Split: split}); !errors.Is(err, ErrHeldOut) {
					t.Errorf("%s, held out by %s, mode %s: %v", door, by, mode, err)
				}
				if err := open(Options{Mode: mode}); !errors.Is(err, ErrBadInput) {
					t.Errorf("%s in mode %s without a split: %v", door, mode, err)
				}
			}
			if err := open(Options{Mode: Test, Split: split}); err != nil {
				t.Errorf("%s in mode test: %v", door, err)
			}
			if err := open(Options{}); err != nil {
				t.Errorf("%s in mode free: %v", door, err)
			}
		}
	}
}

func TestEpisode_exportImport(t *testing.T) {
	p := registered()
	for v := range View(2) {
		ep, err := NewEpisode(deskTask(t, p, 3), Options{View: v})
		if err != nil {
			t.Fatal(err)
		}
		play := func(ep *Episode, n int) {
			for range n {
				if v == Text {
					say(t, ep, list, "nonsense")
				} else if err := errors.Join(ep.StepAction(1), ep.StepAction(-1), ep.StepAction(3)); err != nil {
					t.Fatal(err)
				}
			}
		}
		play(ep, 3)
		b, err := ep.Export()
		if err != nil {
			t.Fatal(err)
		}
		var other Episode
		if err := other.Import(b, Options{View: v}); err != nil {
			t.Fatal(err)
		}
		play(ep, 2)
		play(&other, 2)
		if ep.Digest() != other.Digest() || ep.ObsCRC() != other.ObsCRC() {
			t.Errorf("%s view: the imported episode went another way", v)
		}
		if err := other.Import(b, Options{View: 1 - v}); !errors.Is(err, ErrSnapshot) {
			t.Errorf("import into the other view: %v", err)
		}
		for name, c := range map[string]struct {
			from, to string
			want     error
		}{
			"not JSON":       {`{`, `[`, ErrBadInput},
			"another digest": {`"digest":"`, `"digest":"0`, ErrSnapshot},
			"another pack":   {`"pack_hash":"`, `"pack_hash":"0`, ErrSnapshot},
			"another seed":   {`#seed=3`, `#seed=4`, ErrSnapshot},
			"cut actions":    {`"actions":"`, `"actions":"AAAA`, ErrBadInput},
		} {
			rec := &counts{}
			if err := other.Import([]byte(strings.Replace(string(b), c.from, c.to, 1)), Options{View: v, Recorder: rec}); !errors.Is(err, c.want) {
				t.Errorf("%s view, %s: %v", v, name, err)
			}
			if *rec != (counts{}) {
				t.Errorf("%s view, %s: a refused import was recorded: %+v", v, name, rec)
			}
		}
		// What is imported begins once, with its past as the steps before, and none of them are recorded again.
		rec := &counts{}
		if err := other.Import(b, Options{View: v, Recorder: rec}); err != nil {
			t.Fatal(err)
		}
		other.Flush()
		if rec.begun != 1 || rec.steps != 0 || rec.from != other.Steps() || rec.past != len(other.actions) {
			t.Errorf("%s view: the import was recorded as %+v", v, rec)
		}
	}
	p = deskPack(t, func(p *Pack) { p.Deterministic = false })
	if _, err := start(t, p, Text).Export(); !errors.Is(err, ErrSnapshot) {
		t.Errorf("exporting an episode that does not replay: %v", err)
	}
}

// A pack whose arguments are free text has one view, and no door leads to the other.
func TestPack_ofTextOnly(t *testing.T) {
	p := deskPack(t, func(p *Pack) { p.TextOnly = true })
	if v := p.Views(); len(v) != 1 || v[0] != Text {
		t.Errorf("its views are %v", v)
	}
	ep := start(t, p, Text)
	if _, err := NewEpisode(ep.Task(), Options{View: Structured}); !errors.Is(err, ErrBadInput) {
		t.Errorf("the structured view gave %v", err)
	}
	if v := deskPack(t, nil).Views(); len(v) != 2 {
		t.Errorf("the views of another pack are %v", v)
	}
}

// Texts travel with a step where they are given, and what is cut short or of a later version is refused.
func TestStepRec_texts(t *testing.T) {
	for i, r := range []StepRec{{}, {Ended: true}, {Shown: []byte("seen")}, {Told: []byte("do"), Shown: []byte{}, Ended: true}, {Told: []byte("do"), Reward: 1}} {
		for v := range View(2) {
			if r.View, r.Text, r.Action = v, nil, 0; v == Text {
				r.Text = []byte("act")
			} else {
				r.Action = -3
			}
			b := AppendStep(nil, r)
			got, rest, err := NextStep(v, append(slices.Clone(b), 7))
			if err != nil || len(rest) != 1 || got.Ended != r.Ended || got.Reward != r.Reward || string(got.Text) != string(r.Text) || got.Action != r.Action ||
				string(got.Told) != string(r.Told) || string(got.Shown) != string(r.Shown) || (got.Shown == nil) != (r.Shown == nil) {
				t.Errorf("%d, %s view: %+v came back as %+v, %v", i, v, r, got, err)
			}
			for n := range len(b) {
				if _, _, err := NextStep(v, b[:n]); !errors.Is(err, ErrBadInput) {
					t.Errorf("%d, %s view: %d of %d bytes gave %v", i, v, n, len(b), err)
				}
			}
			if r.Told == nil && r.Shown == nil {
				b[len(b)-1] |= 8
				if _, _, err := NextStep(v, b); !errors.Is(err, ErrBadInput) {
					t.Errorf("unknown flags gave %v", err)
				}
			}
		}
	}
}

// counts is a recorder that counts what it is told.
type counts struct{ begun, from, past, steps, ended int }

func (c *counts) Begin(s EpisodeStart) uint64 {
	c.begun++
	c.from, c.past = s.ParentStep, len(s.Actions)
	return uint64(c.begun)
}

func (c *counts) Segment(_ uint64, _, steps int, raw []byte) []byte { c.steps += steps; return raw }
func (c *counts) End(uint64, EpisodeEnd)                            { c.ended++ }

// What an episode's memory held before must not reach the next one: not even the tool of a call that names none.
func TestEpisode_usedMemoryIsLikeFresh(t *testing.T) {
	p := deskPack(t, nil)
	for v := range View(2) {
		bad := func(ep *Episode) Digest {
			if v == Text {
				say(t, ep, "nonsense")
			} else if err := ep.StepAction(-1); err != nil {
				t.Fatal(err)
			}
			return ep.Digest()
		}
		want := bad(start(t, p, v))
		used := start(t, p, v)
		if err := used.StepCall(&Call{Tool: p.Tool("list")}); err != nil {
			t.Fatal(err)
		}
		set := p.NewCall("set", map[string][]Value{"thing": {thingID(2)}, "n": {{Type: tNumber, Bits: 3}}})
		if err := used.StepCall(&set); err != nil {
			t.Fatal(err)
		}
		if err := used.Start(deskTask(t, p, 1), Options{View: v}); err != nil {
			t.Fatal(err)
		}
		if bad(used) != want {
			t.Errorf("%s view: a bad call is logged otherwise in used memory", v)
		}
	}
}

// Both views compile to the same calls, so the same calls give the same log, whichever way they came.
func TestEpisode_viewsGiveOneLog(t *testing.T) {
	p := deskPack(t, nil)
	text, structured := start(t, p, Text), start(t, p, Structured)
	calls := []Call{
		{Tool: p.Tool("list")},
		p.NewCall("set", map[string][]Value{"thing": {thingID(0)}, "n": {{Type: tNumber, Bits: 7}}, "word": {{Type: tWord, Bits: 2}}}),
		p.NewCall("cite", map[string][]Value{"refs": {thingID(1), {Type: tName, Text: "it"}, thingID(0)}, "more": {{Type: tWord}, {Type: tWord}}}),
		p.NewCall("finish", map[string][]Value{"word": {{Type: tWord, Bits: 1}}, "note": {{Type: tName, Text: "it"}}}),
	}
	for i := range calls {
		if err := errors.Join(text.StepCall(&calls[i]), structured.StepCall(&calls[i])); err != nil {
			t.Fatal(err)
		}
		if text.LogDigest(nil) != structured.LogDigest(nil) || string(text.Result()) != string(structured.Result()) {
			t.Errorf("after call %d the logs differ", i)
		}
	}
	if text.Digest() != structured.Digest() || !structured.Success() {
		t.Errorf("the ends differ: %s and %s", text.Outcome(), structured.Outcome())
	}
	unseen := p.NewCall("set", map[string][]Value{"thing": {{Type: tThing, Bits: 99}}, "n": {{Type: tNumber}}})
	if err := start(t, p, Structured).StepCall(&unseen); !errors.Is(err, ErrBadInput) {
		t.Errorf("a value in no slot: %v", err)
	}
}

// The log's chain covers everything: each change of one call gives another digest from there on.
func TestEpisode_logChain(t *testing.T) {
	p := deskPack(t, nil)
	chain := func(actions ...string) []Digest {
		ep := start(t, p, Text)
		say(t, ep, actions...)
		var out []Digest
		ep.LogDigest(func(_ int, h Digest) { out = append(out, h) })
		return out
	}
	a, b := chain(list, set7, list), chain(list, strings.Replace(set7, "7", "6", 1), list)
	if a[0] != b[0] || a[1] == b[1] || a[2] == b[2] {
		t.Error("the chain does not part at the call that differs")
	}
	// Same result, same writes: only an argument differs.
	const cite = `{"tool":"cite","args":{"refs":["t-0000000001"],"more":["red"]}}`
	want := chain(cite)[0]
	for _, other := range []string{strings.Replace(cite, "01", "02", 1), strings.Replace(cite, "red", "blue", 1), strings.Replace(cite, "t-", "m-", 1),
		strings.Replace(cite, "t-0000000001", "it", 1), strings.Replace(cite, `["red"]`, "[]", 1)} {
		if chain(other)[0] == want {
			t.Errorf("the chain does not tell %s from %s", other, cite)
		}
	}
}

// Steps of the hot path allocate nothing once the log has its size.
func TestEpisode_hotPathAllocatesNothing(t *testing.T) {
	p := deskPack(t, func(p *Pack) {
		p.Limits = func(Condition) Limits { return Limits{1 << 30, time.Hour, 1 << 30} }
	})
	ep := start(t, p, Text)
	actions := [][]byte{[]byte(list), []byte(set7)}
	warm := func(step func()) float64 {
		for range 2000 {
			step()
		}
		if err := ep.Start(deskTask(t, p, 1), Options{View: ep.View()}); err != nil {
			t.Fatal(err)
		}
		return testing.AllocsPerRun(500, step)
	}
	n := warm(func() {
		for _, a := range actions {
			if err := ep.StepText(a); err != nil {
				t.Fatal(err)
			}
		}
	})
	if n != 0 {
		t.Errorf("two text calls allocate %v times", n)
	}
	ep = start(t, p, Structured)
	n = warm(func() {
		for _, a := range []int{1, 2, 2, 8, 0} { // list; set the thing in slot 2 to 7
			if err := ep.StepAction(a); err != nil {
				t.Fatal(err)
			}
		}
	})
	if n != 0 || ep.Evidence().Log.At(1).Err != "" {
		t.Errorf("two structured calls allocate %v times (%s)", n, ep.Result())
	}
}
