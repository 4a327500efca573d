package split

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"provegym/gym"
)

// Schema names the format of a manifest.
const Schema = "split/1"

// Combination holds out every condition in which each named dial has one of the listed values.
type Combination struct {
	Name   string              `json:"name"`
	Region string              `json:"region"` // eval or test
	Dials  map[string][]string `json:"dials"`
}

// Manifest is a split as written to disk. What nothing holds out is the train region, within TrainDials.
type Manifest struct {
	Schema   string `json:"schema"`
	Pack     string `json:"pack"` // name@version
	PackHash string `json:"pack_hash"`
	// Families, Graphs and Mechanisms name what is held out whole, each with its region.
	Families   map[string]string `json:"families,omitempty"`
	Graphs     map[string]string `json:"graphs,omitempty"`
	Mechanisms map[string]string `json:"mechanisms,omitempty"`
	// Combinations hold out dial settings that occur together.
	Combinations []Combination `json:"combinations,omitempty"`
	// TrainDials bounds the train region: a listed dial takes only these values there; beyond them is the eval region.
	TrainDials map[string][]string `json:"train_dials,omitempty"`
	// Tier says how far the held-out conditions lie from training, in words, for the report.
	Tier string `json:"tier,omitempty"`
	// SeedStreams maps a purpose (train, break, monitor, sealed) to the commitment to its key.
	SeedStreams map[string]string `json:"seed_streams,omitempty"`
	// SHA256 is the hash of the canonical JSON without this member.
	SHA256 string `json:"sha256,omitempty"`
}

// Draft returns the manifest that a pack suggests: the families that it marks as held out are for tests, all others for training.
func Draft(p *gym.Pack) Manifest {
	m := Manifest{Pack: p.Name, Families: map[string]string{}}
	for _, f := range p.Families {
		if f.HeldOut {
			m.Families[f.Name] = gym.Test.String()
		}
	}
	return m
}

// Split is a frozen manifest, ready to judge. It implements gym.Split.
type Split struct {
	manifest Manifest
	pack     *gym.Pack
	families map[string]gym.Mode
	graphs   map[string]gym.Mode
	mechs    map[string]gym.Mode
	combos   []combo
	bounds   []bound
	built    sync.Map // what InTrain has found out, by condition
}

type combo struct {
	name   string
	region gym.Mode
	dials  []bound
}

// bound is a set of levels of one dial.
type bound struct {
	dial   int
	levels uint32 // bit set
}

func (b bound) has(c *gym.Condition) bool { return b.levels>>c.Levels[b.dial]&1 == 1 }

// Freeze checks a draft, fills in schema, pack hash and hash, and returns the split. A draft that has a hash must match it:
// a manifest read back is verified by the same call.
//
// Errors: gym.ErrUnknown, gym.ErrBadInput, all problems at once; a changed manifest is ErrBadInput.
func Freeze(m Manifest) (*Split, error) {
	name, version, _ := strings.Cut(m.Pack, "@")
	p, err := gym.LookupPack(name)
	if err != nil {
		return nil, fmt.Errorf("split: %w", err)
	}
	s := &Split{pack: p}
	var bad []error
	say := func(format string, args ...any) {
		bad = append(bad, fmt.Errorf("%w: "+format, append([]any{gym.ErrBadInput}, args...)...))
	}
	full := fmt.Sprintf("%s@%d", p.Name, p.Version)
	if version != "" && m.Pack != full {
		say("the manifest is for %s, the library has %s", m.Pack, full)
	}
	if m.Schema != "" && m.Schema != Schema {
		say("schema %q is not %q", m.Schema, Schema)
	}
	if m.PackHash != "" && m.PackHash != p.Hash {
		say("the manifest was frozen with another build of pack %s (%s, not %s): freeze a new split", p.Name, m.PackHash, p.Hash)
	}
	m.Schema, m.Pack, m.PackHash = Schema, full, p.Hash

	region := func(what, r string) gym.Mode {
		if r != "eval" && r != "test" {
			say("%s: the region is eval or test, not %q", what, r)
		}
		mode, _ := gym.ParseMode(r)
		return mode
	}
	regions := func(what string, in map[string]string) map[string]gym.Mode {
		out := map[string]gym.Mode{}
		for _, k := range slices.Sorted(maps.Keys(in)) {
			out[k] = region(what+" "+k, in[k])
		}
		return out
	}
	s.families = regions("family", m.Families)
	s.graphs = regions("graph", m.Graphs)
	s.mechs = regions("mechanism", m.Mechanisms)
	for _, f := range slices.Sorted(maps.Keys(m.Families)) {
		if _, err := p.Condition(f); err != nil {
			bad = append(bad, err)
		}
	}
	if len(p.Families) == len(m.Families) && len(bad) == 0 {
		say("every family is held out: nothing is left to train on")
	}
	bounds := func(what string, in map[string][]string) (out []bound) {
		for _, dial := range slices.Sorted(maps.Keys(in)) {
			b := bound{dial: slices.Index(p.DialNames(), dial)}
			if len(in[dial]) == 0 {
				say("%s: dial %s lists no value", what, dial)
			}
			for _, v := range in[dial] {
				c, err := p.Condition(p.Families[0].Name)
				if err == nil {
					c, err = c.Set(dial, v)
				}
				if err != nil {
					bad = append(bad, fmt.Errorf("%s: %w", what, err))
					continue
				}
				b.levels |= 1 << c.Levels[b.dial]
			}
			out = append(out, b)
		}
		return out
	}
	for _, c := range m.Combinations {
		if len(c.Dials) == 0 {
			say("combination %q names no dial: it would hold out everything", c.Name)
		}
		s.combos = append(s.combos, combo{c.Name, region("combination "+c.Name, c.Region), bounds("combination "+c.Name, c.Dials)})
	}
	s.bounds = bounds("train_dials", m.TrainDials)
	if len(bad) > 0 {
		return nil, fmt.Errorf("split: %w", errors.Join(bad...))
	}

	want := m.SHA256
	m.SHA256 = ""
	sum := sha256.Sum256(canonical(m))
	m.SHA256 = hex.EncodeToString(sum[:])
	if want != "" && want != m.SHA256 {
		return nil, fmt.Errorf("split: %w: the manifest was changed after it was frozen (its hash is %s, it says %s)",
			gym.ErrBadInput, m.SHA256, want)
	}
	s.manifest = m
	return s, nil
}

// canonical is JSON with the struct's member order and sorted map keys, without HTML escapes.
func canonical(m Manifest) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		panic(err) // strings, lists and maps of them only
	}
	return bytes.TrimSpace(b.Bytes())
}

// Parse reads a manifest as written by JSON and freezes or verifies it. Unknown members are errors.
func Parse(b []byte) (*Split, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	var m Manifest
	if err := dec.Decode(&m); err != nil {
		return nil, fmt.Errorf("split: %w: %v", gym.ErrBadInput, err)
	}
	return Freeze(m)
}

// JSON returns the canonical manifest, hash included.
func (s *Split) JSON() []byte { return canonical(s.manifest) }

// Hash returns the SHA-256 of the manifest, in hex.
func (s *Split) Hash() string { return s.manifest.SHA256 }

// Pack returns the pack that the split is of.
func (s *Split) Pack() *gym.Pack { return s.pack }

// Manifest returns a copy of the manifest's first level.
func (s *Split) Manifest() Manifest { return s.manifest }

// Region returns the region of a condition (gym.Train, gym.Eval or gym.Test) and, if it is held out, by what.
func (s *Split) Region(c gym.Condition) (gym.Mode, string) {
	region, why := gym.Train, ""
	raise := func(r gym.Mode, by string) {
		if r > region {
			region, why = r, by
		}
	}
	if r, ok := s.families[c.Family]; ok {
		raise(r, "family "+c.Family)
	}
	for i := range s.combos {
		all := true
		for _, b := range s.combos[i].dials {
			all = all && b.has(&c)
		}
		if all {
			raise(s.combos[i].region, "combination "+s.combos[i].name)
		}
	}
	for _, b := range s.bounds {
		if !b.has(&c) {
			raise(gym.Eval, "dial "+s.pack.Dials[b.dial].Name)
		}
	}
	return region, why
}

// Admit implements gym.Split.
func (s *Split) Admit(mode gym.Mode, c gym.Condition, graph string, mechanisms []string) error {
	if mode == gym.Free {
		return nil
	}
	if c.Pack != s.pack {
		return fmt.Errorf("%w: the split is of pack %s, the task of %s", gym.ErrBadInput, s.pack.Name, c.Pack.Name)
	}
	region, why := s.Region(c)
	if r := s.graphs[graph]; graph != "" && r > region {
		region, why = r, "graph "+graph
	}
	for _, m := range mechanisms {
		if r := s.mechs[m]; r > region {
			region, why = r, "mechanism "+m
		}
	}
	if region > mode {
		return fmt.Errorf("%w: %s is in the %s region (by %s); mode %s may not see it", gym.ErrHeldOut, c.ID(), region, why, mode)
	}
	return nil
}

// Level reports whether the train region's bounds on its dial allow a level.
func (s *Split) Level(dial, level int) bool {
	for _, b := range s.bounds {
		if b.dial == dial && b.levels>>level&1 == 0 {
			return false
		}
	}
	return true
}

// InTrain reports whether c lies in the train region: what Break and the curriculum may draw. Where the split is Late, it builds
// tasks of c until one is left to training.
func (s *Split) InTrain(c gym.Condition) bool {
	if r, _ := s.Region(c); r != gym.Train {
		return false
	}
	if !s.Late() {
		return true
	}
	if known, ok := s.built.Load(c); ok {
		return known.(bool)
	}
	some := false
	for seed := uint64(0); seed < lateSeeds && !some; seed++ {
		some = s.Trains(gym.Task{Condition: c, Seed: seed})
	}
	s.built.Store(c, some)
	return some
}

// lateSeeds is how many tasks of a condition are built to see whether graphs and mechanisms leave any of it to training.
const lateSeeds = 16

// Late reports whether the split holds out graphs or mechanisms, which a task shows only when it is built.
func (s *Split) Late() bool { return len(s.graphs)+len(s.mechs) > 0 }

// Trains reports whether training may see the task itself, which is built if need be. One that does not build is not held out:
// its episode will say why.
func (s *Split) Trains(t gym.Task) bool {
	if r, _ := s.Region(t.Condition); r != gym.Train || !s.Late() {
		return r == gym.Train
	}
	b, err := t.Pack.Build(t)
	return err != nil || s.Admit(gym.Train, t.Condition, b.Graph, b.Mechanisms) == nil
}
