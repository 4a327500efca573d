package prove

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"provegym/gym"
	"provegym/gym/prove/stats"
)

// Freeze checks a draft, fills in what it leaves out, commits to the seeds of every block below key, and hashes it. The key
// is not in the plan: whoever trains must not learn the sealed seeds from it.
//
// The split decides what is held out. A condition that training may see is descriptive, so it cannot be confirmatory; and at
// least one confirmatory condition must be of a whole family that sealed looks alone may see.
//
// Errors: gym.ErrBadInput and gym.ErrUnknown, all problems at once.
func Freeze(d Plan, key gym.Key, s gym.Split) (Plan, error) {
	demoted := d.Overall.Demoted || slices.ContainsFunc(d.Conditions, func(c Condition) bool { return c.Demoted })
	if d.Hash != "" || len(d.Amendments) > 0 || demoted {
		return Plan{}, badInput("this plan is frozen already: amend it, or take its hash and amendments out to draft another")
	}
	p, err := freeze(d, key, s)
	if err == nil && !slices.ContainsFunc(p.Conditions, func(c Condition) bool { return c.Family == Confirmatory }) {
		err = badInput("no condition is confirmatory: such a plan could reach no verdict")
	}
	if err != nil {
		return Plan{}, err
	}
	return p, nil
}

func freeze(d Plan, key gym.Key, s gym.Split) (Plan, error) {
	p, bad := d.complete()
	if s == nil {
		bad.say("a plan needs the split that holds its conditions out")
	} else {
		p.holdOut(s, &bad)
	}
	if err := bad.err(); err != nil {
		return Plan{}, err
	}
	p.Warnings = p.warnings()
	for i := range p.Looks {
		p.Looks[i].Seeds = p.commitment(key, p.Looks[i].ID)
	}
	if p.Monitor != nil {
		p.Monitor.Seeds = p.commitment(key, MonitorLook)
	}
	p.Hash = p.hash()
	return p, nil
}

func (p Plan) commitment(key gym.Key, look string) string {
	slots, _, err := p.slots(key, look)
	if err != nil {
		panic(err) // complete has just made sure that the look is there
	}
	block, _, _, _, _ := p.block(look)
	return commit(block, slots)
}

// problems collects what is wrong, so that a caller sees all of it at once.
type problems []error

func (b *problems) say(format string, args ...any) { *b = append(*b, fmt.Errorf(format, args...)) }

func (b *problems) err() error {
	if len(*b) == 0 {
		return nil
	}
	known := gym.ErrBadInput
	if slices.ContainsFunc(*b, func(e error) bool { return errors.Is(e, gym.ErrUnknown) }) {
		known = gym.ErrUnknown
	}
	texts := make([]string, len(*b))
	for i, e := range *b {
		texts[i] = strings.TrimPrefix(strings.TrimPrefix(e.Error(), gym.ErrBadInput.Error()+": "), gym.ErrUnknown.Error()+": ")
	}
	return fmt.Errorf("prove: %w: %s", known, strings.Join(texts, "; "))
}

// orElse returns v, or def where v was left out.
func orElse[T comparable](v, def T) T {
	if v == *new(T) {
		return def
	}
	return v
}

// complete returns d with what it left out, and everything that is wrong with it that needs no split.
func (d Plan) complete() (Plan, problems) {
	var bad problems
	p := d
	p.Conditions, p.Looks, p.Exclude = slices.Clone(d.Conditions), slices.Clone(d.Looks), slices.Clone(d.Exclude)
	p.Schema, p.Analysis = orElse(p.Schema, PlanSchema), orElse(p.Analysis, Analysis)
	if p.Schema != PlanSchema || p.Analysis != Analysis {
		bad.say("schema %q under the rules %q is not %q under %q", p.Schema, p.Analysis, PlanSchema, Analysis)
	}
	if (p.Base.Hash == "") == (p.Base.Rule == "") {
		bad.say("base needs either the hash of the starting checkpoint or the rule that makes it")
	}
	for _, n := range []int{p.Budget.Train, p.Budget.Break, p.Budget.Monitor, p.Budget.Baseline} {
		if n < 0 {
			bad.say("budget: %d episodes", n)
		}
	}
	p.completePack(&bad)
	p.completeTerms(&bad)
	if len(bad) == 0 { // an MDE of a broken design says nothing
		p.completeMDE()
	}
	p.completeOverall(&bad)
	p.Budget.Sealed = 0
	for i := range p.Conditions {
		p.Budget.Sealed += 2 * p.Conditions[i].G * len(p.Looks)
	}
	if p.Amendments == nil {
		p.Amendments = []Amendment{}
	}
	return p, bad
}

// completeTerms completes what verdicts are read from.
func (p *Plan) completeTerms(bad *problems) {
	p.Alpha = orElse(p.Alpha, .05)
	if !(p.Alpha >= minAlpha && p.Alpha <= .2) {
		bad.say("alpha is %v, want at least %v and at most .2", p.Alpha, minAlpha)
		p.Alpha = .05
	}
	p.Lost.Retries, p.Lost.MaxShare = orElse(p.Lost.Retries, 2), orElse(p.Lost.MaxShare, .05)
	if p.Lost.Retries < 0 || !(p.Lost.MaxShare > 0 && p.Lost.MaxShare <= .05) {
		bad.say("lost: retries is %d, want 0 or more; max_share is %v, want more than 0 and at most .05", p.Lost.Retries, p.Lost.MaxShare)
	}
	p.completeLooks(bad)
	p.completeConditions(bad)
}

// sound reports a plan that Freeze cannot have made, whatever its hash says: anybody can compute a hash.
func (p Plan) sound() error {
	var bad problems
	q := p
	q.Conditions, q.Looks = slices.Clone(p.Conditions), slices.Clone(p.Looks)
	q.completeTerms(&bad)
	if len(bad) == 0 && (q.Alpha != p.Alpha || q.Lost != p.Lost || !slices.Equal(q.Looks, p.Looks) || !slices.EqualFunc(q.Conditions, p.Conditions, sameTerms)) {
		bad.say("the plan leaves out what Freeze fills in")
	}
	for i := range p.Conditions {
		if c := &p.Conditions[i]; c.Tier == SameCells && c.Family == Confirmatory {
			bad.say("condition %s: a confirmatory condition is never trained on", c.ID)
		}
	}
	if m := p.Monitor; m != nil && (m.Tasks < 1 || m.Tasks > maxClusters) {
		bad.say("monitor: %d tasks, want 1 to %d", m.Tasks, maxClusters)
	}
	if o := p.Overall; !inside(o.DMin) || !inside(o.Delta) || !inside(o.Psi0) {
		bad.say("overall: dmin %v, delta %v and psi0 %v must lie strictly between 0 and 1", o.DMin, o.Delta, o.Psi0)
	}
	return bad.err()
}

// sameTerms compares two conditions but for the MDE, which follows from the rest.
func sameTerms(a, b Condition) bool {
	a.MDE, b.MDE = nil, nil
	return a == b
}

func (p *Plan) completeLooks(bad *problems) {
	if len(p.Looks) == 0 || len(p.Looks) > maxLooks {
		bad.say("looks: at least one sealed look must be declared, and at most %d, not %d", maxLooks, len(p.Looks))
	}
	open := !slices.ContainsFunc(p.Looks, func(l Look) bool { return l.Weight != 0 })
	sum := 0.0
	ids, blocks := map[string]bool{MonitorLook: true}, map[string]bool{}
	for i := range p.Looks {
		l := &p.Looks[i]
		if open {
			l.Weight = stats.SpendWeight(i + 1)
		}
		l.Block = orElse(l.Block, fmt.Sprintf("sealed-%d", i+1))
		if l.ID == "" || ids[l.ID] {
			bad.say("look %d: the id %q is empty, taken or reserved", i+1, l.ID)
		}
		if blocks[l.Block] {
			bad.say("look %s: block %q belongs to another look; every look opens a fresh one", l.ID, l.Block)
		}
		if l.Checkpoint == "" {
			bad.say("look %s: checkpoint needs the rule that names the checkpoint it tests, such as %q", l.ID, "last")
		}
		if !(l.Weight >= minWeight && l.Weight <= 1) {
			bad.say("look %s: weight %v is not in [%v, 1]", l.ID, l.Weight, minWeight)
		}
		ids[l.ID], blocks[l.Block] = true, true
		sum += l.Weight
	}
	if sum > 1+1e-9 {
		bad.say("looks: the weights add to %v, more than 1: together the looks would exceed alpha", sum)
	}
}

func (p *Plan) completePack(bad *problems) {
	name, _, _ := strings.Cut(p.Pack, "@")
	pack, err := gym.LookupPack(name)
	if err != nil {
		*bad = append(*bad, err)
		return
	}
	if full := fmt.Sprintf("%s@%d", pack.Name, pack.Version); p.Pack != full && p.Pack != pack.Name {
		bad.say("the plan is for pack %s, the library has %s", p.Pack, full)
	} else {
		p.Pack = full
	}
	p.PackHash, p.CheckHash = orElse(p.PackHash, pack.Hash), orElse(p.CheckHash, pack.CheckHash)
	if p.PackHash != pack.Hash || p.CheckHash != pack.CheckHash {
		bad.say("the plan is for another build of pack %s: take pack_hash and check_hash out of the draft", p.Pack)
	}
}

func (p *Plan) completeConditions(bad *problems) {
	if len(p.Conditions) > maxConditions {
		bad.say("conditions: %d are declared, at most %d are judged together", len(p.Conditions), maxConditions)
		return
	}
	seen, all := map[string]bool{}, 0
	for i := range p.Conditions {
		c := &p.Conditions[i]
		c.Family, c.Kind, c.Cluster = orElse(c.Family, Confirmatory), orElse(c.Kind, BinaryOne), orElse(c.Cluster, ClusterTask)
		c.G, c.K = orElse(c.G, adviseClusters), orElse(c.K, 1)
		c.DMin, c.Delta, c.Psi0 = orElse(c.DMin, .10), orElse(c.Delta, .10), orElse(c.Psi0, .20)
		if g, err := gym.ParseCondition(c.ID); err != nil {
			*bad = append(*bad, err)
		} else {
			c.ID = g.ID()
			if pack, _, _ := strings.Cut(c.ID, "/"); pack != p.Pack {
				bad.say("condition %s is of another pack than the plan, %s", c.ID, p.Pack)
			}
		}
		if seen[c.ID] {
			bad.say("condition %s stands there twice", c.ID)
		}
		seen[c.ID] = true
		if c.Kind != BinaryOne {
			bad.say("condition %s: kind %q is not supported, only %q is", c.ID, c.Kind, BinaryOne)
		}
		if c.Cluster != ClusterTask || c.K != 1 {
			bad.say("condition %s: kind %q takes one sample (k = 1) of a task as its cluster, not k = %d of %q", c.ID, BinaryOne, c.K, c.Cluster)
		}
		if c.Family != Confirmatory && c.Family != Exploratory {
			bad.say("condition %s: family is %q or %q, not %q", c.ID, Confirmatory, Exploratory, c.Family)
		}
		if c.Tier != SameCells && c.Tier != HeldOutDials && c.Tier != HeldOutFamily {
			bad.say("condition %s: tier is %q, %q or %q, not %q", c.ID, SameCells, HeldOutDials, HeldOutFamily, c.Tier)
		}
		if c.G < minClusters {
			bad.say("condition %s: G = %d, fewer than %d tasks can hardly reach any verdict", c.ID, c.G, minClusters)
		}
		if all += min(max(c.G, 0), maxClusters+1); all > maxClusters {
			bad.say("condition %s: G = %d brings the tasks of a look above %d", c.ID, c.G, maxClusters)
			return
		}
		for _, f := range []struct {
			name string
			v    float64
		}{{"dmin", c.DMin}, {"delta", c.Delta}, {"psi0", c.Psi0}} {
			if !inside(f.v) {
				bad.say("condition %s: %s is %v, want a value strictly between 0 and 1", c.ID, f.name, f.v)
			}
		}
	}
	if len(p.Conditions) == 0 {
		bad.say("conditions: none is declared")
	}
}

// completeMDE says what each condition can detect at the last look.
func (p *Plan) completeMDE() {
	level := p.Alpha * p.Looks[len(p.Looks)-1].Weight
	for i := range p.Conditions {
		c := &p.Conditions[i]
		c.MDE = detectable(c.G, c.Psi0, p.levelOf(c, level))
	}
}

// levelOf returns the level that one test of c is planned at: the first step of Holm for the family, that of a single
// test for exploratory conditions.
func (p *Plan) levelOf(c *Condition, level float64) float64 {
	if c.Family == Confirmatory {
		return level / float64(p.FamilySize())
	}
	return 1 - Confidence
}

func inside(v float64) bool { return v > 0 && v < 1 }

func (p *Plan) completeOverall(bad *problems) {
	o := &p.Overall
	n, dmin, delta, psi := 0, 1.0, 1.0, 0.0
	for i := range p.Conditions {
		if c := &p.Conditions[i]; c.Family == Confirmatory {
			n += c.G
			psi += float64(c.G) * c.Psi0
			dmin, delta = min(dmin, c.DMin), min(delta, c.Delta)
		}
	}
	o.MDE = nil
	if n == 0 || len(*bad) > 0 {
		return
	}
	o.DMin, o.Delta, o.Psi0 = orElse(o.DMin, dmin), orElse(o.Delta, delta), orElse(o.Psi0, round(psi/float64(n)))
	if !inside(o.DMin) || !inside(o.Delta) || !inside(o.Psi0) {
		bad.say("overall: dmin %v, delta %v and psi0 %v must lie strictly between 0 and 1", o.DMin, o.Delta, o.Psi0)
		return
	}
	o.MDE = detectable(n, o.Psi0, p.Alpha*p.Looks[len(p.Looks)-1].Weight)
}

// detectable returns the MDE, or nil where no change could reach the power. It is rounded so that the hash of a plan does
// not hang on the last bits of a machine's arithmetic.
func detectable(n int, psi0, level float64) *float64 {
	mde, ok := stats.MDEBinary(n, psi0, level, Power)
	if !ok {
		return nil
	}
	mde = round(mde)
	return &mde
}

func round(v float64) float64 { return math.Round(v*1e6) / 1e6 }

// holdOut checks the conditions against the split and fills in what follows from it.
func (p *Plan) holdOut(s gym.Split, bad *problems) {
	p.SplitHash = orElse(p.SplitHash, s.Hash())
	if p.SplitHash != s.Hash() {
		bad.say("the plan is for split %s, this one is %s", p.SplitHash, s.Hash())
	}
	sees := func(m gym.Mode, c gym.Condition) bool { return s.Admit(m, c, "", nil) == nil }
	sealedOnly := false
	var monitored []string
	for i := range p.Conditions {
		c := &p.Conditions[i]
		g, err := gym.ParseCondition(c.ID)
		if err != nil {
			continue // complete has said so
		}
		trained := sees(gym.Train, g)
		if !sees(gym.Test, g) {
			bad.say("condition %s: the split does not admit it even in mode test", c.ID)
		}
		switch {
		case c.Tier == SameCells && c.Family == Confirmatory:
			bad.say("condition %s: %s is descriptive, declare it %s: a confirmatory condition is never trained on", c.ID, SameCells, Exploratory)
		case c.Tier == SameCells && !trained:
			bad.say("condition %s: tier is %s, but the split holds it out", c.ID, SameCells)
		case c.Tier != SameCells && trained:
			bad.say("condition %s: tier is %s, but the split lets training see it", c.ID, c.Tier)
		}
		if c.Tier == HeldOutFamily {
			if nominal, err := g.Pack.Condition(g.Family); err == nil && sees(gym.Train, nominal) {
				bad.say("condition %s: tier is %s, but training may see the family at its base setting", c.ID, HeldOutFamily)
			}
			sealedOnly = sealedOnly || (c.Family == Confirmatory || c.Demoted) && !sees(gym.Eval, g)
		}
		if sees(gym.Eval, g) {
			monitored = append(monitored, c.ID)
		}
		if !trained && !slices.Contains(p.Exclude, c.ID) {
			p.Exclude = append(p.Exclude, c.ID)
		}
	}
	if !sealedOnly && p.FamilySize() > 0 {
		bad.say("no confirmatory condition is of a family that sealed looks alone may see: hold one family out in the region test, tier %s", HeldOutFamily)
	}
	if p.Exclude == nil {
		p.Exclude = []string{}
	}
	slices.Sort(p.Exclude)
	if p.Monitor == nil {
		return
	}
	m := *p.Monitor
	p.Monitor = &m
	m.Block, m.Tasks = orElse(m.Block, MonitorLook), orElse(m.Tasks, 50)
	if m.Conditions == nil {
		m.Conditions = monitored
	}
	if len(m.Conditions) == 0 || m.Tasks < 1 || m.Tasks > maxClusters {
		bad.say("monitor: %d conditions of %d tasks; mode eval may see %v, and a condition has at most %d", len(m.Conditions), m.Tasks, monitored, maxClusters)
	}
	for _, id := range m.Conditions {
		if !slices.Contains(monitored, id) {
			bad.say("monitor: %s is no condition of the plan that mode eval may see", id)
		}
	}
}

func (p *Plan) warnings() []string {
	out := []string{}
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if m := p.FamilySize(); m > adviseFamily {
		warn("%d confirmatory conditions share one level; with more than %d each can detect only large changes", m, adviseFamily)
	}
	for i := range p.Conditions {
		c := &p.Conditions[i]
		if c.Family != Confirmatory {
			continue
		}
		if c.G < adviseClusters {
			warn("%s: %d tasks, %d or more are advised", c.ID, c.G, adviseClusters)
		}
		if c.MDE == nil {
			warn("%s: no change could reach %s power with %d tasks", c.ID, percent(Power), c.G)
		} else if *c.MDE > c.DMin {
			warn("%s: the smallest detectable change is %s points, the smallest of interest %s: without a larger change it will end INCONCLUSIVE(power)",
				c.ID, points(*c.MDE), points(c.DMin))
		}
	}
	if p.Overall.MDE != nil && *p.Overall.MDE > p.Overall.DMin {
		warn("overall: the smallest detectable change is %s points, the smallest of interest %s", points(*p.Overall.MDE), points(p.Overall.DMin))
	}
	return out
}

// Amend freezes a changed plan in place of old. next is old with its changes; its amendments must be old's, to which one is
// added. What an amendment changes after a sealed look becomes exploratory, and the pooled row with it.
//
// reason says why; afterLook is the last sealed look opened before, "" for none.
//
// Errors: as Freeze; gym.ErrBadInput if old is not as it was frozen, a reason is missing, past amendments differ, or a
// condition is taken out after a look.
func Amend(old, next Plan, key gym.Key, s gym.Split, reason, afterLook string) (Plan, error) {
	if err := old.Verify(); err != nil {
		return Plan{}, err
	}
	if strings.TrimSpace(reason) == "" {
		return Plan{}, badInput("an amendment needs its reason")
	}
	if afterLook != "" {
		if _, err := old.look(afterLook); err != nil {
			return Plan{}, err
		}
	}
	if string(canonical(old.Amendments)) != string(canonical(orEmpty(next.Amendments))) {
		return Plan{}, badInput("amendments are appended, never edited")
	}
	opened := afterLook != "" || slices.ContainsFunc(old.Amendments, func(a Amendment) bool { return a.AfterLook != "" })
	next, err := freeze(next, key, s) // what is left out must not look like a change
	if err != nil {
		return Plan{}, err
	}
	touches := touched(old, next)
	if opened {
		for _, c := range old.Conditions {
			if next.condition(c.ID) == nil {
				return Plan{}, badInput("condition %s cannot be taken out after a sealed look: its result would be missing from the report", c.ID)
			}
		}
		for i := range next.Conditions {
			c := &next.Conditions[i]
			was := old.condition(c.ID)
			if slices.Contains(touches, c.ID) || was != nil && was.Demoted {
				c.Demoted = was != nil && (was.Demoted || was.Family == Confirmatory)
				c.Family = Exploratory
			}
		}
		next.Overall.Demoted = old.Overall.Demoted || slices.Contains(touches, OverallRow)
	}
	next.Amendments = append(slices.Clone(old.Amendments), Amendment{reason, afterLook, touches, old.Hash})
	return freeze(next, key, s)
}

// touched lists the conditions whose terms differ between two plans, in next's order, and OverallRow if the pooled row's do.
func touched(old, next Plan) []string {
	terms := func(p Plan) string {
		p.Conditions, p.Amendments, p.Warnings, p.Exclude, p.Monitor, p.Budget, p.Overall, p.Code = nil, nil, nil, nil, nil, Budget{}, Overall{}, ""
		p.Looks = slices.Clone(p.Looks)
		for i := range p.Looks {
			p.Looks[i].Seeds = "" // they follow from the conditions
		}
		return p.hash()
	}
	all := terms(old) != terms(next)
	pooled := all || old.Overall.DMin != next.Overall.DMin || old.Overall.Delta != next.Overall.Delta
	touches := []string{}
	for _, c := range next.Conditions {
		was := old.condition(c.ID)
		same := !all && was != nil
		if same {
			then := *was
			then.MDE, c.MDE = nil, nil // they follow from the rest
			same = then == c
		}
		if !same {
			touches = append(touches, c.ID)
			pooled = pooled || c.Family == Confirmatory || was != nil && was.Family == Confirmatory
		}
	}
	if pooled {
		touches = append(touches, OverallRow)
	}
	return touches
}

// condition returns the condition of that id, or nil.
func (p *Plan) condition(id string) *Condition {
	for i := range p.Conditions {
		if p.Conditions[i].ID == id {
			return &p.Conditions[i]
		}
	}
	return nil
}
