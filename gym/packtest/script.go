package packtest

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"provegym/gym"
	"provegym/gym/control"
)

// script is a recorded episode: its actions, and a digest of everything that could be seen or told after each.
type script struct {
	name  string // for messages: agent, view and task
	first bool   // of the first seed: examined at every step
	agent *gym.Agent
	task  gym.Task
	view  gym.View
	steps []gym.StepRec
	trail []gym.Digest // trail[0] is of the start
	log   gym.Digest
	calls []gym.Call
	tools gym.ToolSet
}

// tape is a recorder that keeps the actions of one episode.
type tape struct {
	view  gym.View
	steps []gym.StepRec
}

func (t *tape) Begin(s gym.EpisodeStart) uint64 { t.view = s.View; return 1 }

func (t *tape) Segment(_ uint64, _, steps int, raw []byte) []byte {
	for range steps {
		r, rest, err := gym.NextStep(t.view, raw)
		if err != nil {
			panic(err) // the core wrote it
		}
		r.Text = slices.Clone(r.Text)
		t.steps, raw = append(t.steps, r), rest
	}
	return nil
}

func (t *tape) End(uint64, gym.EpisodeEnd) {}

// record plays the oracle and random valid play in both views and looks at everything that they are shown.
func (x *exam) record() {
	x.families(func(c gym.Condition) {
		var asked []string
		for i := range x.opts.Seeds {
			task := x.task(c, i)
			for _, name := range []string{"pc1_oracle", "nc2_random_valid"} {
				for _, v := range x.pack.Views() {
					s := &script{task: task, view: v, first: i == 0, name: fmt.Sprintf("%s, %s view, %s", task.ID(), v, name)}
					x.guard(BuildFails, task.ID(), func() { x.tape(s, name) })
					if s.trail == nil {
						continue
					}
					x.scripts = append(x.scripts, s)
					if v == gym.Text && name == "pc1_oracle" {
						spelled := ""
						for k := range s.calls {
							spelled += string(x.pack.AppendCall(nil, &s.calls[k]))
						}
						if slices.Contains(asked, spelled) {
							x.say(SeedsAlike, task.ID(), "the oracle's calls are those of another seed: replaying them would pass")
						}
						asked = append(asked, spelled)
					}
				}
			}
		}
	})
}

func (x *exam) tape(s *script, agent string) {
	t := &tape{}
	var err error
	if s.agent, err = control.Agent(x.pack, agent); err != nil {
		panic(err) // a general control
	}
	var ep gym.Episode
	if err := ep.Start(s.task, gym.Options{View: s.view, Recorder: t}); err != nil {
		x.say(BuildFails, s.task.ID(), "%v", err)
		return
	}
	actor, err := control.New(&ep, s.agent, 0, control.Key(s.task, agent))
	if err == nil {
		err = control.Play(&ep, gym.ActorFunc(func(ep *gym.Episode, call *gym.Call) bool {
			ok := actor.Act(ep, call)
			if ok {
				s.calls = append(s.calls, *call)
			}
			return ok
		}))
	}
	if err != nil {
		x.say(BuildFails, s.task.ID(), "%v", err)
		return
	}
	s.steps, s.tools = t.steps, ep.ToolSet()
	x.play(s)
}

// offers looks whether the tools on offer tell one task of a condition from another: whatever the oracle needs for one seed is
// on offer for all.
func (x *exam) offers() {
	used := map[string]gym.ToolSet{}
	for _, s := range x.scripts {
		for i := range s.calls {
			if s.agent.Name == "pc1_oracle" {
				used[s.task.Family] = used[s.task.Family].With(s.calls[i].Tool)
			}
		}
	}
	for _, s := range x.scripts {
		for i := range x.pack.Tools {
			if used[s.task.Family].Has(i) && !s.tools.Has(i) {
				x.say(ToolsTell, s.task.ID(), "%s is not on offer, and other seeds need it", x.pack.Tools[i].Name)
			}
		}
	}
}

// play runs the script once, fills its trail, and looks at every observation on the way.
func (x *exam) play(s *script) {
	var ep gym.Episode
	if err := ep.Start(s.task, gym.Options{View: s.view}); err != nil {
		x.say(BuildFails, s.task.ID(), "%v", err)
		return
	}
	lens := newLens(x, &ep, s.rerun())
	s.trail = append(s.trail, state(&ep, true))
	for i := range s.steps {
		calls := ep.Calls()
		if err := step(&ep, s.steps[i]); err != nil {
			// The first play got further: the world or the tools are not a function of the actions.
			x.say(StepVaries, s.rerun(), "step %d of %d was refused when played again: %v", i+1, len(s.steps), err)
			return
		}
		if ep.Calls() > calls {
			lens.look(&ep, s.steps[i].Text)
		}
		if s.view == gym.Structured {
			lens.table(&ep)
		}
		s.trail = append(s.trail, state(&ep, ep.Calls() > calls))
	}
	s.log = ep.LogDigest(nil)
}

func (s *script) rerun() string { return control.Rerun(s.task, s.agent.Name, 0, s.view) }

func step(ep *gym.Episode, r gym.StepRec) error {
	if r.View == gym.Text {
		return ep.StepText(r.Text)
	}
	return ep.StepAction(r.Action)
}

// state digests what can be seen or told of an episode now; with its world and log if deep.
func state(ep *gym.Episode, deep bool) gym.Digest {
	d := gym.NewDigester("state")
	d.Int(int64(ep.ObsCRC()))
	d.Bytes(ep.Result())
	for _, n := range []int{int(ep.Outcome()), int(ep.Limit()), ep.Calls(), ep.Steps()} {
		d.Int(int64(n))
	}
	d.Int(int64(math.Float64bits(ep.Reward())))
	d.Text(fmt.Sprint(ep.Components()))
	if deep {
		w, l := gym.DigestWorld(ep.Evidence().Last), ep.LogDigest(nil)
		d.Bytes(w[:])
		d.Bytes(l[:])
	}
	return d.Sum()
}

// follow plays the rest of the script in ep, which stands after step number from, and returns where it first differs.
func (s *script) follow(ep *gym.Episode, from int) error {
	if got := state(ep, from == 0); from == 0 && got != s.trail[0] {
		return fmt.Errorf("%s: the start differs", s.name)
	}
	for i := from; i < len(s.steps); i++ {
		if err := s.step(ep, i); err != nil {
			return err
		}
	}
	return nil
}

// step plays step i and compares.
func (s *script) step(ep *gym.Episode, i int) error {
	calls := ep.Calls()
	if err := step(ep, s.steps[i]); err != nil {
		return fmt.Errorf("%s: step %d of %d: %w", s.name, i+1, len(s.steps), err)
	}
	if state(ep, ep.Calls() > calls) != s.trail[i+1] {
		return fmt.Errorf("%s: step %d of %d gave something else; result %s", s.name, i+1, len(s.steps), clip(ep.Result()))
	}
	return nil
}

func clip(b []byte) string {
	if len(b) > 300 {
		return string(b[:300]) + "…"
	}
	return string(b)
}

// lens looks at what an agent is shown in one episode.
type lens struct {
	x       *exam
	rerun   string
	names   []string // that must not be shown
	secrets []secret // what only the check and the oracle know at the start
	text    strings.Builder
	seen    map[gym.Value]bool
	world   gym.Digest
}

func newLens(x *exam, ep *gym.Episode, rerun string) *lens {
	e := ep.Evidence()
	l := &lens{x: x, rerun: rerun, names: x.taskNames(e.Built), seen: map[gym.Value]bool{}, world: gym.DigestWorld(e.Last)}
	l.text.WriteString(ep.Instruction())
	for _, pin := range e.Built.Pins {
		l.seen[pin.Value] = true
	}
	return l
}

// opaque returns what spells an opaque value of the pack in a text: with its prefix, or bare digits of which one at least is a
// letter. A plain number is none.
func (x *exam) opaque(text string) []string {
	if x.ids == nil {
		var prefixes []string
		for _, t := range x.pack.Types {
			if t.Form == gym.FormOpaque {
				prefixes = append(prefixes, regexp.QuoteMeta(t.Prefix))
			}
		}
		x.ids = regexp.MustCompile(`\b(?:` + strings.Join(prefixes, "|") + `)[0-9a-f]{10}\b|\b[0-9a-f]{10}\b`)
	}
	return slices.DeleteFunc(x.ids.FindAllString(text, -1), func(token string) bool {
		return len(token) == 10 && !strings.ContainsAny(token, "abcdef")
	})
}

// look examines the result of the last call; action is its text, or nil in the structured view.
func (l *lens) look(ep *gym.Episode, action []byte) {
	e := ep.Evidence()
	rec := e.Log.At(e.Log.Len() - 1)
	x, tool := l.x, l.x.toolOf(rec)
	x.outcome(ep, l.rerun)
	l.read(ep, rec, string(action))
	world := gym.DigestWorld(e.Last)
	if rec.Err != "" && world != l.world {
		x.say(RefusalWrites, l.rerun, "%s refused with %s, but the world changed", tool, rec.Err)
	}
	l.world = world
}

// read looks at what one call showed.
func (l *lens) read(ep *gym.Episode, rec gym.CallRec, action string) {
	x, tool, result := l.x, l.x.toolOf(rec), string(rec.Result)
	if !json.Valid([]byte(result)) {
		x.say(BadResult, l.rerun, "%s: %s", tool, clip([]byte(result)))
	}
	if len(result) > ep.Limits().Bytes {
		x.say(Oversize, l.rerun, "a result of %s has %d bytes, the budget is %d", tool, len(result), ep.Limits().Bytes)
	}
	x.shown(l.rerun, "a result of "+tool, result, l.names)
	l.result(rec, result, action)
	for _, v := range rec.Shown {
		l.seen[v] = true
	}
	l.text.WriteString(result)
}

// outcome looks at how an episode has ended, if it has.
func (x *exam) outcome(ep *gym.Episode, rerun string) {
	switch {
	case ep.Outcome() == gym.Invalid && strings.Contains(ep.Why(), "panicked"):
		x.say(ToolPanics, rerun, "%s", ep.Why())
	case ep.Outcome() == gym.Invalid && strings.Contains(ep.Why(), "refused a call after"):
		x.say(RefusalWrites, rerun, "%s", ep.Why())
	case ep.Outcome() == gym.Invalid:
		x.say(ToolFails, rerun, "%s", ep.Why())
	case ep.Outcome() == gym.CheckError:
		x.say(CheckFails, rerun, "%s", ep.Why())
	case ep.Reward() > 0 && !ep.Success():
		x.say(RewardNoSuccess, rerun, "reward %v with %+v", ep.Reward(), ep.Components())
	}
}

func (x *exam) toolOf(rec gym.CallRec) string { return x.pack.Tools[rec.Call.Tool].Name }

// result looks for values in a result that the agent should not have from it.
func (l *lens) result(rec gym.CallRec, result, action string) {
	tool := l.x.toolOf(rec)
	for _, token := range l.x.opaque(result) {
		spelled := func(v gym.Value) bool { return strings.Contains(l.x.pack.Spell(v), token) }
		known := strings.Contains(action, token) || slices.ContainsFunc(rec.Shown, spelled)
		for k := range l.x.pack.Tools[rec.Call.Tool].Params {
			known = known || slices.ContainsFunc(rec.Call.Arg(k), spelled)
		}
		switch {
		case known:
		case rec.Err == "":
			l.x.say(SecretInResult, l.rerun, "a result of %s spells %s, which it did not show as a value: %s", tool, token, clip([]byte(result)))
		case !strings.Contains(l.text.String(), token):
			l.x.say(SecretInError, l.rerun, "%s refused and spelled %s: %s", tool, token, clip([]byte(result)))
		}
	}
	if rec.Err == "" {
		return
	}
	for _, s := range l.secrets {
		if mentions(result, s.text) && !mentions(action, s.text) && !mentions(l.text.String(), s.text) && !s.listed(result) {
			l.x.say(SecretInError, l.rerun, "%s refused and spelled %q, which the agent was to find out: %s", tool, s.text, clip([]byte(result)))
		}
	}
}

// secret is the spelling of a value and, if it is a word of a list, that list.
type secret struct {
	text string
	list []string
}

// listed reports whether the text names every word of the list: then it tells nothing.
func (s secret) listed(text string) bool {
	return len(s.list) > 0 && !slices.ContainsFunc(s.list, func(w string) bool { return !mentions(text, w) })
}

// table examines the slots and the mask of the structured view.
func (l *lens) table(ep *gym.Episode) {
	obs := ep.Obs()
	for i := range obs.Slots {
		if v := ep.SlotValue(i); obs.Slots[i][0] != 0 && !l.seen[v] {
			l.x.say(SecretInResult, l.rerun, "slot %d holds %s, which no result has shown", i, l.x.pack.Spell(v))
		}
	}
	if ep.Outcome() == gym.Running && !slices.Contains(obs.Mask[:], 1) {
		l.x.say(NoLegalAction, l.rerun, "after %d calls the mask allows nothing", ep.Calls())
	}
	if k := l.x.maskTells(ep); k >= 0 {
		l.x.say(MaskTells, l.rerun, "after %d calls, in phase %v, action %d is %d: what is shown says otherwise", ep.Calls(), obs.Phase, k, obs.Mask[k])
	}
}

// maskTells computes the mask anew from what the structured view shows, and returns the first action that differs, or -1. Only
// members that a list argument has already may differ: the view does not show them.
func (x *exam) maskTells(ep *gym.Episode) int {
	obs := ep.Obs()
	if ep.Outcome() != gym.Running {
		return -1
	}
	onTable := func(q *gym.Param, i int) bool {
		t := obs.Slots[i][0]
		return t != 0 && slices.Contains(q.Types, gym.TypeID(t-1))
	}
	var want [gym.Actions]uint8
	allow := func(k int, ok bool) {
		if ok {
			want[k] = 1
		}
	}
	tool, k := int(obs.Phase[0])-1, int(obs.Phase[1])-1
	if tool < 0 {
		for i := range x.pack.Tools {
			legal := ep.ToolSet().Has(i)
			for p := range x.pack.Tools[i].Params {
				q, some := &x.pack.Tools[i].Params[p], false
				for s := range obs.Slots {
					some = some || onTable(q, s)
				}
				f := x.pack.Types[q.Types[0]].Form
				legal = legal && (q.Optional || f == gym.FormEnum || f == gym.FormInt || some)
			}
			allow(i+1, legal)
		}
	} else {
		q := &x.pack.Tools[tool].Params[k]
		allow(0, q.Optional || q.List && obs.Phase[2] > 0)
		switch typ := &x.pack.Types[q.Types[0]]; typ.Form {
		case gym.FormEnum:
			for i := range typ.Enum {
				allow(i+1, true)
			}
		case gym.FormInt:
			for n := q.Min; n <= q.Max; n++ {
				allow(int(n-q.Min)+1, true)
			}
		default:
			for i := range obs.Slots {
				given := q.List && obs.Phase[2] > 0 && obs.Mask[i+1] == 0
				allow(i+1, onTable(q, i) && !given)
			}
		}
	}
	for i := range want {
		if want[i] != obs.Mask[i] {
			return i
		}
	}
	return -1
}
