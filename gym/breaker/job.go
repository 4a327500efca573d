package breaker

import (
	"slices"

	"provegym/gym"
)

// jobKind is where a candidate came from.
type jobKind string

const (
	candidate jobKind = "candidate" // a failing search episode: screen, minimise, confirm
	reference jobKind = "reference" // the nominal cell of a family: screen, confirm
	recheck   jobKind = "recheck"   // a cause of an earlier checkpoint: confirm
)

// stageWait is a candidate that screened as failing while another one is being minimised.
const stageWait Stage = "wait"

// maxJobLost is how many episodes lost in a row end a candidate: what the infrastructure cannot run is not evidence.
const maxJobLost = 10

// manyItems is the number of items above which minimisation first drops whole chunks.
const manyItems = 12

// job is one candidate on its way to become a cause. It runs one sequential test at a time; Trial numbers the tests, so
// that a result which comes after its test has ended is told apart.
type job struct {
	ID     int     `json:"id"`
	Kind   jobKind `json:"kind"`
	Stage  Stage   `json:"stage"`
	Origin Cell    `json:"origin,omitempty"` // the cell that failed
	Floor  bool    `json:"floor,omitempty"`  // the uniform floor found it
	Epoch  int     `json:"epoch"`            // causes known when it was found
	Set    Pattern `json:"set"`              // what is believed to be needed

	Trial   int            `json:"trial"`
	Drop    []int          `json:"drop,omitempty"` // factors left out in this trial
	Count   Counter        `json:"count"`
	Open    int            `json:"open"` // asked in this trial, not told
	Spent   int            `json:"spent"`
	Lost    int            `json:"lost"`              // in a row
	Modes   map[string]int `json:"modes"`             // of the discovery and the screen
	Last    map[string]int `json:"last"`              // of the trial that runs
	Replay  []Replay       `json:"replay,omitempty"`  // of the confirmation
	Items   []int          `json:"items,omitempty"`   // factors still in question, least suspicious first
	Pos     int            `json:"pos"`               // the item under test
	Chunk   int            `json:"chunk,omitempty"`   // items dropped together; 0 or 1 in the passes
	Dropped bool           `json:"dropped,omitempty"` // this pass dropped something
	Clean   bool           `json:"clean,omitempty"`   // the last pass dropped nothing: 1-minimal
	Kept    []removal      `json:"kept,omitempty"`    // the last test of each kept item
	Old     *Cause         `json:"old,omitempty"`     // for a recheck
}

type removal struct {
	Factor  int     `json:"factor"`
	Count   Counter `json:"count"`
	Verdict Verdict `json:"verdict"`
	Set     Pattern `json:"set"` // what it was removed from
}

func (s *Search) rule(j *job) Rule {
	switch j.Stage {
	case StageScreen:
		return s.rules.screen
	case StageMinimise:
		return s.rules.inner
	}
	return s.rules.confirm
}

// want is how many more episodes j's test takes now.
func (s *Search) want(j *job) int {
	if j.Stage == stageWait || s.held(j) {
		return 0
	}
	r := s.rule(j)
	if s.opts.Eager {
		return r.Cap - j.Count.N() - j.Open
	}
	return r.Need(j.Count) - j.Open
}

// held reports whether candidate j waits for an older one which, as far as it has been reduced, explains j's cell too. Without
// this, parallel candidates would be minimised to one cause several times over.
func (s *Search) held(j *job) bool {
	return j.Kind == candidate && slices.ContainsFunc(s.st.Jobs, func(k *job) bool {
		return k.ID < j.ID && k.reducing() && k.Set.Match(j.Origin)
	})
}

// reducing reports whether j is a candidate being minimised or confirmed.
func (j *job) reducing() bool {
	return j.Kind == candidate && (j.Stage == StageMinimise || j.Stage == StageConfirm)
}

// trial is the pattern under test.
func (j *job) trial() Pattern { return without(j.Set, j.Drop) }

func without(p Pattern, drop []int) Pattern {
	q := slices.Clone(p)
	for _, f := range drop {
		q[f] = -1
	}
	return q
}

// start begins a test of j with some factors left out.
func (j *job) start(stage Stage, drop ...int) {
	j.Stage, j.Drop = stage, drop
	j.Trial++
	j.Count, j.Open, j.Last = Counter{}, 0, map[string]int{}
}

// cellOf draws the cell of one episode for p: open factors at nominal, a family drawn uniformly among those that the space
// allows and no cause explains. It reports false where the space allows none.
func (s *Search) cellOf(rng *gym.Stream, p Pattern) (Cell, bool) {
	q := s.space.plain(p)
	if c, ok := s.space.Draw(rng, q, s.masked); ok {
		return c, true
	}
	return s.space.Draw(rng, q, nil)
}

// allows reports whether p has a cell that may be run.
func (s *Search) allows(p Pattern) bool {
	rng := s.key.Sub("allows").Stream() // which cell does not matter
	_, ok := s.space.Draw(&rng, s.space.plain(p), nil)
	return ok
}

// decide takes the verdict of j's test and moves it on. Jobs that end are removed.
func (s *Search) decide(j *job, v Verdict) {
	switch {
	case j.Stage == StageScreen && v != Fails:
		s.close(j)
	case j.Stage == StageScreen:
		s.st.ScreenedFailing++
		if j.Kind == reference {
			j.start(StageConfirm)
			s.st.Confirmations++
			return
		}
		if j.Floor && j.Epoch == len(s.st.Causes) {
			s.st.FloorHits++
		}
		for m, n := range j.Last {
			j.Modes[m] += n
		}
		j.Stage = stageWait
	case j.Stage == StageMinimise && v == Fails:
		j.Set, j.Dropped = j.trial(), true
		at := j.Pos + len(j.Drop)
		j.Items = slices.Delete(j.Items, j.Pos, at)
		s.next(j)
	case j.Stage == StageMinimise:
		if len(j.Drop) == 1 {
			j.keep(removal{j.Drop[0], j.Count, v, slices.Clone(j.Set)})
		}
		j.Pos += len(j.Drop)
		s.next(j)
	default:
		s.conclude(j, v)
	}
}

func (j *job) keep(r removal) {
	j.Kept = slices.DeleteFunc(j.Kept, func(k removal) bool { return k.Factor == r.Factor })
	j.Kept = append(j.Kept, r)
}

// minimise begins the minimisation of j: its items are the factors off nominal and the family, least suspicious first.
func (s *Search) minimise(j *job) {
	j.Set = s.space.off(j.Origin)
	for f, l := range j.Set {
		if l >= 0 {
			j.Items = append(j.Items, f)
		}
	}
	slices.SortStableFunc(j.Items, func(a, b int) int {
		x, y := s.seen.suspicion(a, j.Set[a]), s.seen.suspicion(b, j.Set[b])
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	if len(j.Items) > manyItems {
		j.Chunk = len(j.Items) / 2
	}
	s.next(j)
}

// next starts the next test of the minimisation, or the confirmation when nothing is left to try. Chunks halve down to one
// item (Zeller and Hildebrandt 2002, complements only); then passes over single items repeat until one drops nothing. An item
// that was kept against the very set that is left is not tested again.
func (s *Search) next(j *job) {
	for {
		if j.Pos >= len(j.Items) {
			switch {
			case j.Chunk > 1:
				j.Chunk = min(j.Chunk, len(j.Items)) / 2
				j.Dropped = false
			case j.Dropped && !s.opts.Quick && len(j.Items) > 0:
				j.Dropped = false
			default:
				j.Clean = !j.Dropped || len(j.Items) == 0
				j.start(StageConfirm)
				s.st.Confirmations++
				return
			}
			j.Pos = 0
			continue
		}
		if j.Chunk <= 1 && slices.ContainsFunc(j.Kept, func(r removal) bool { return r.Factor == j.Items[j.Pos] && slices.Equal(r.Set, j.Set) }) {
			j.Pos++
			continue
		}
		drop := slices.Clone(j.Items[j.Pos:min(j.Pos+max(j.Chunk, 1), len(j.Items))])
		if !s.allows(without(j.Set, drop)) {
			if len(drop) == 1 {
				j.keep(removal{drop[0], Counter{}, Boundary, nil})
			}
			j.Pos += len(drop)
			continue
		}
		j.start(StageMinimise, drop...)
		return
	}
}

// conclude takes the verdict of the confirmation.
func (s *Search) conclude(j *job, v Verdict) {
	if j.Kind == recheck && v != Fails {
		s.st.Retired = append(s.st.Retired, Retired{*j.Old, j.Count.rate(), v})
		s.close(j)
		return
	}
	c := s.causeOf(j)
	c.Q = j.Count.rate()
	c.Mode, c.Modes, c.Replay = majority(j.Last), modesOf(j.Last), j.Replay
	if v != Fails {
		if j.Kind == candidate {
			c.Status, c.Reason = Unconfirmed, "the confirmation on fresh seeds said "+string(v)
			s.st.Open = append(s.st.Open, c)
		}
		s.close(j)
		return
	}
	c.Status = Confirmed
	if was := majority(j.Modes); j.Kind == candidate && was != "" && c.Mode != "" && was != c.Mode {
		o := Cause{Settings: s.space.Settings(s.space.off(j.Origin)), Status: Unminimised, Mode: was, Modes: modesOf(j.Modes)}
		o.ID, o.Checkpoint, o.Other, o.FoundAt = causeID(o.Settings), s.opts.Checkpoint, c.ID, s.told
		o.Reason = "its minimal cause fails in another way"
		o.Without, o.Replay = []Removal{}, []Replay{}
		c.Other = o.ID
		s.st.Open = append(s.st.Open, o)
	}
	s.close(j)
	s.admit(c)
}

// causeOf describes j as it stands.
func (s *Search) causeOf(j *job) Cause {
	set := j.Set
	c := Cause{
		Settings: s.space.Settings(set), Spent: j.Spent, FoundAt: s.told, Checkpoint: s.opts.Checkpoint,
		Without: []Removal{}, Modes: modesOf(j.Modes), Mode: majority(j.Modes), Replay: []Replay{}, pattern: set,
	}
	c.ID = causeID(c.Settings)
	switch j.Kind {
	case recheck:
		c.Rechecked = true
	case reference:
		c.Minimal = true
	default:
		c.Minimal = j.Clean
		for f, l := range set {
			i := slices.IndexFunc(j.Kept, func(r removal) bool { return r.Factor == f })
			if l < 0 || i < 0 {
				continue
			}
			r := j.Kept[i]
			set := Setting{s.space.Factors[f].Name, s.space.Factors[f].Levels[l]}
			c.Without = append(c.Without, Removal{set, r.Count.rate(), r.Verdict})
			c.Minimal = c.Minimal && r.Verdict != Boundary
		}
	}
	return c
}

// close removes j; what is still out for it will be ignored.
func (s *Search) close(j *job) {
	s.st.Jobs = slices.DeleteFunc(s.st.Jobs, func(k *job) bool { return k == j })
}

// giveUp closes j without a verdict and records what was known.
func (s *Search) giveUp(j *job, reason string) {
	if j.Kind == candidate && j.Stage != StageScreen {
		if j.Stage == stageWait {
			j.Set = s.space.off(j.Origin)
		}
		c := s.causeOf(j)
		c.Status, c.Reason, c.Minimal = Unfinished, reason, false
		if j.Stage == StageConfirm {
			c.Q = j.Count.rate()
		}
		s.st.Open = append(s.st.Open, c)
	}
	if j.Kind == recheck {
		s.st.Retired = append(s.st.Retired, Retired{*j.Old, j.Count.rate(), Untested})
	}
	s.close(j)
}
