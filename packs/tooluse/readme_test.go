package tooluse

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"provegym/gym"
	"provegym/gym/control"
	"provegym/packs/tooluse/world"
)

// sections are the parts of the README that are made from code. Those that are measured are written by make golden alone; the others
// must stand there as they are made.
var sections = []struct {
	name     string
	measured bool
	text     func(t *testing.T) string
}{
	{"families", false, func(*testing.T) string {
		var b strings.Builder
		b.WriteString("| family | the case |\n|---|---|\n")
		for i := range families {
			fmt.Fprintf(&b, "| `%s` | %s |\n", families[i].name, families[i].doc)
		}
		return b.String()
	}},
	{"dials", false, func(*testing.T) string {
		var b strings.Builder
		fmt.Fprintf(&b, "| dial | levels, easiest first (**base**) | what it adds |%s\n|---|---|---|%s\n", head(), strings.Repeat("---|", len(Pack.Presets)))
		for i, d := range Pack.Dials {
			levels := slices.Clone(d.Levels)
			levels[d.Base] = "**" + levels[d.Base] + "**"
			fmt.Fprintf(&b, "| `%s` | %s | %s |", d.Name, strings.Join(levels, " "), d.Doc)
			for _, p := range Pack.PresetNames() {
				c, _ := Pack.Preset("branch", p)
				fmt.Fprintf(&b, " %s |", d.Levels[c.Levels[i]])
			}
			b.WriteByte('\n')
		}
		return b.String()
	}},
	{"exploits", false, func(*testing.T) string {
		var b strings.Builder
		for _, x := range Exploits {
			fmt.Fprintf(&b, "- `%s`: %s\n", x.name, x.doc)
		}
		return b.String()
	}},
	{"baselines", true, func(t *testing.T) string {
		const n = 504
		agents := []string{"nc2_random_valid", "nc3_random_masked", "priority_heuristic", "expected_value", "blind_oracle", "oracle"}
		var b strings.Builder
		fmt.Fprintf(&b, "Share of %d tasks that are paid, the same for all, pooled over the families:\n\n| | %s |\n|---|%s\n", n, strings.Join(agents, " | "),
			strings.Repeat("---|", len(agents)))
		for _, preset := range Pack.PresetNames() {
			fmt.Fprintf(&b, "| %s |", preset)
			for _, agent := range agents {
				count := 0
				for _, p := range passes(t, agent, n, func(family string) gym.Condition { c, _ := Pack.Preset(family, preset); return c }) {
					count += applies(p)
				}
				fmt.Fprintf(&b, " %.3f |", float64(count)/n)
			}
			b.WriteByte('\n')
		}
		return b.String()
	}},
	{"attribution", true, func(t *testing.T) string {
		const n = 200
		table := confusion(t, n)
		var b strings.Builder
		fmt.Fprintf(&b, "Of %d episodes each with one planted mistake; the decisive call was named exactly in all:\n\n| planted | told as |\n|---|---|\n", n)
		for _, kind := range slices.Sorted(maps.Keys(table)) {
			var as []string
			for _, k := range slices.Sorted(maps.Keys(table[kind])) {
				as = append(as, fmt.Sprintf("%s %d", k, table[kind][k]))
			}
			fmt.Fprintf(&b, "| %s | %s |\n", kind, strings.Join(as, ", "))
		}
		return b.String()
	}},
	{"controls", false, func(t *testing.T) string {
		r, err := control.StoredRates(Pack)
		if err != nil {
			t.Fatal(err)
		}
		if r == nil {
			return "Nobody has measured this version yet.\n"
		}
		var b strings.Builder
		fmt.Fprintf(&b, "Version %d, %d seeds a family at L1, %d at each end of each dial; `controls.json` has the rest.\n\n", r.Version, r.Seeds, r.DialSeeds)
		fmt.Fprintf(&b, "| | episodes | wrong | at most |\n|---|---|---|---|\n| false passes: negative controls | %d | %d | %.1e |\n", r.FalsePass.Episodes, r.FalsePass.Wrong, r.FalsePass.Upper)
		fmt.Fprintf(&b, "| false fails: oracle, positive controls | %d | %d | %.1e |\n", r.FalseFail.Episodes, r.FalseFail.Wrong, r.FalseFail.Upper)
		for _, c := range r.Controls {
			if c.Bound > 0 {
				fmt.Fprintf(&b, "| `%s`, which may have luck | %d | %d | %.1e |\n", c.Control, c.Episodes, c.Wrong, c.Upper)
			}
		}
		b.WriteString("\n| | episodes | passes | hollow | pairs | both passed |\n|---|---|---|---|---|---|\n")
		for _, x := range r.References {
			fmt.Fprintf(&b, "| `%s` | %d | %d | %d | %d | %d |\n", x.Agent, x.Episodes, x.Passes, x.Hollow, x.Pairs, x.PairPasses)
		}
		return b.String()
	}},
	{"faults", false, func(*testing.T) string {
		return "`" + strings.Join(world.FaultNames[1:], "`, `") + "`\n"
	}},
}

func head() (out string) {
	for _, p := range Pack.PresetNames() {
		out += " " + p + " |"
	}
	return out
}

// TestReadme holds the README to the code: make golden writes what is made from it.
func TestReadme(t *testing.T) {
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	text, update := string(b), os.Getenv("UPDATE_GOLDEN") != ""
	for _, s := range sections {
		from, to := "<!-- "+s.name+" -->\n", "<!-- end -->"
		before, rest, ok := strings.Cut(text, from)
		was, after, ends := strings.Cut(rest, to)
		if !ok || !ends {
			t.Errorf("README.md has no part %q", s.name)
			continue
		}
		if s.measured && !update {
			continue
		}
		if now := s.text(t); now != was {
			if text = before + from + now + to + after; !update {
				t.Errorf("%s is stale in README.md\nif that is meant: make golden, then read the diff", s.name)
			}
		}
	}
	if update {
		if err := os.WriteFile("README.md", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRates: the rates kept with the pack, if anybody has measured them, are of this version and of these checks, of all its controls, and
// none is wrong.
func TestRates(t *testing.T) {
	r, err := control.StoredRates(Pack)
	if err != nil {
		t.Fatal(err)
	}
	if r == nil {
		t.Fatal("nobody has measured this version: provegym check-pack tooluse --full --write packs/tooluse/controls.json")
	}
	if r.CheckHash != Pack.CheckHash {
		t.Errorf("controls.json is of checks %s, these are %s: provegym check-pack tooluse --full --write packs/tooluse/controls.json", r.CheckHash, Pack.CheckHash)
	}
	if r.Hash != Pack.Hash {
		t.Logf("controls.json is of sources %s, these are %s", r.Hash, Pack.Hash)
	}
	kept := map[string]control.Rate{}
	for _, c := range r.Controls {
		kept[c.Control] = c
	}
	for _, a := range control.Agents(Pack) {
		if c := kept[a.Name]; a.Kind != gym.Baseline && (c.Episodes == 0 || c.Wrong > 0 && a.Bound == 0 || c.Kind != a.Kind.String()) {
			t.Errorf("%s: %+v", a.Name, c)
		}
	}
	if r.FalsePass.Wrong+r.FalseFail.Wrong > 0 || r.FalsePass.Episodes == 0 || r.FalseFail.Episodes == 0 || len(r.References) == 0 {
		t.Errorf("%+v", r)
	}
}
