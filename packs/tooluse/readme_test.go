package tooluse

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"provegym/gym"
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
