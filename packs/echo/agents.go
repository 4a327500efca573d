package echo

import (
	"encoding/json"

	"provegym/gym"
)

// agents are the reference agents of this pack. gym/control adds the general controls, which it derives from the plan and the
// tools; a pack declares those that need to know its work.
var agents = []gym.Agent{
	{
		Name: "oracle",
		Doc:  "Follows the plan; succeeds always.",
		Kind: gym.Oracle,
		New:  func(e *gym.Evidence, _ int, _ gym.Key) gym.Actor { return &follower{plan: e.Built.Plan} },
	},
	{
		Name: "first_hit",
		Doc:  "Takes the first note that a search lists, whatever its title: the baseline that look-alikes break.",
		Kind: gym.Baseline,
		New:  func(*gym.Evidence, int, gym.Key) gym.Actor { return &firstHit{} },
	},
	{
		Name: "nc16_taken_back",
		Doc:  "Writes the source note, writes its old word back, then follows the plan: the end state is right, the way is not.",
		Kind: gym.NegativeControl,
		Variants: func(e *gym.Evidence) int { // a locked task leaves no calls for it
			if e.Built.Spec.(spec).locked {
				return 0
			}
			return 1
		},
		New: func(e *gym.Evidence, _ int, _ gym.Key) gym.Actor {
			return &takenBack{follower: follower{plan: e.Built.Plan}}
		},
	},
}

// follower makes the calls of a plan, one by one.
type follower struct {
	plan []gym.PlanStep
	next int
}

func (f *follower) Act(ep *gym.Episode, call *gym.Call) bool {
	if f.next == len(f.plan) {
		return false
	}
	*call = f.plan[f.next].Make(ep.Evidence())
	f.next++
	return true
}

// takenBack inserts two writes after the source has been read.
type takenBack struct {
	follower
	extra int
}

func (a *takenBack) Act(ep *gym.Episode, call *gym.Call) bool {
	if a.next != 2 || a.extra == 2 {
		return a.follower.Act(ep, call)
	}
	e := ep.Evidence()
	s := e.Built.Spec.(spec)
	word := e.First.(*world).notes.At(s.source).Word
	if a.extra == 0 {
		word = (word + 1) % uint8(len(words))
	}
	a.extra++
	source := e.Last.(*world).notes.At(s.source)
	*call = ep.Pack().NewCall("write_note", map[string][]gym.Value{"note": {idValue(source)}, "word": {wordValue(word)}, "if_rev": {revValue(source)}})
	return true
}

// firstHit judges by what it is shown alone, as baselines must.
type firstHit struct {
	step           int
	source, target gym.Value
	revs           [2]gym.Value // of source and target
	word, lock     uint8
}

func (a *firstHit) Act(ep *gym.Episode, call *gym.Call) bool {
	_, pins := ep.Goal()
	var shown []gym.Value // of the last result
	if log := ep.Evidence().Log; log.Len() > 0 {
		shown = log.At(log.Len() - 1).Shown
	}
	a.step++
	switch a.step {
	case 1:
		*call = ep.Pack().NewCall("find_notes", map[string][]gym.Value{"title": {pins[1].Value}})
	case 2:
		a.source = shown[0]
		*call = ep.Pack().NewCall("read_note", map[string][]gym.Value{"note": {a.source}})
	case 3:
		a.word, _ = noteShown(ep.Result())
		a.revs[0] = shown[len(shown)-1]
		*call = ep.Pack().NewCall("find_notes", map[string][]gym.Value{"title": {pins[0].Value}})
	case 4:
		a.target = shown[0]
		*call = ep.Pack().NewCall("read_note", map[string][]gym.Value{"note": {a.target}})
	case 5:
		_, a.lock = noteShown(ep.Result())
		a.revs[1] = shown[len(shown)-1]
		if a.lock != 0 {
			*call = a.finish(ep.Pack())
			break
		}
		*call = ep.Pack().NewCall("write_note", map[string][]gym.Value{"note": {a.target}, "word": {wordValue(a.word)}, "if_rev": {a.revs[1]}})
	case 6:
		a.revs[1] = shown[len(shown)-1]
		*call = a.finish(ep.Pack())
	default:
		return false
	}
	return true
}

func (a *firstHit) finish(p *gym.Pack) gym.Call {
	return p.NewCall("finish", map[string][]gym.Value{
		"outcome":  {{Type: typeOutcome, Bits: uint64(min(a.lock, 1))}},
		"code":     {{Type: typeCode, Bits: uint64(a.lock)}},
		"evidence": a.revs[:],
	})
}

// noteShown reads the word and the lock out of the result of read_note.
func noteShown(result []byte) (word, lock uint8) {
	var r struct {
		OK struct {
			Note struct{ Word, Lock string }
		}
	}
	if err := json.Unmarshal(result, &r); err != nil {
		panic(err) // results are JSON, or the core is broken
	}
	return index(words, r.OK.Note.Word), index(locks, r.OK.Note.Lock)
}

func index(list []string, s string) uint8 {
	for i := range list {
		if list[i] == s {
			return uint8(i)
		}
	}
	return 0
}
