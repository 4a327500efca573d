package terminal

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// sections are the parts of the README that are made from code. What is measured is written by make golden alone.
var sections = []struct {
	name     string
	measured bool
	text     func(t *testing.T) string
}{
	{"families", false, func(*testing.T) string {
		var b strings.Builder
		b.WriteString("| family | the work |\n|---|---|\n")
		for _, f := range families {
			held := ""
			if f.heldOut {
				held = " (held out from training by `split.Draft`)"
			}
			fmt.Fprintf(&b, "| `%s` | %s%s |\n", f.name, f.doc, held)
		}
		return b.String()
	}},
	{"dials", false, func(*testing.T) string {
		var b strings.Builder
		fmt.Fprintf(&b, "| dial | levels, easiest first (**base**) | what it adds | %s |\n|---|---|---|%s\n", strings.Join(Pack.PresetNames(), " | "),
			strings.Repeat("---|", len(Pack.Presets)))
		for i, d := range Pack.Dials {
			levels := slices.Clone(d.Levels)
			levels[d.Base] = "**" + levels[d.Base] + "**"
			fmt.Fprintf(&b, "| `%s` | %s | %s |", d.Name, strings.Join(levels, " "), d.Doc)
			for _, p := range Pack.PresetNames() {
				c, _ := Pack.Preset("purge", p)
				fmt.Fprintf(&b, " %s |", d.Levels[c.Levels[i]])
			}
			b.WriteByte('\n')
		}
		return b.String()
	}},
	{"episode", false, func(t *testing.T) string {
		b, err := os.ReadFile("testdata/golden/runbook.txtar")
		if err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer("-- instruction --\n", "", "-- task --\n", "# ").Replace(string(b))
		var out []string
		keep := true
		for _, line := range strings.Split(text, "\n") {
			switch {
			case strings.HasPrefix(line, "-- action"):
				out = append(out, "")
			case strings.HasPrefix(line, "-- end"):
				keep = false
			case strings.HasPrefix(line, "-- ") || !keep:
			default:
				out = append(out, line)
			}
		}
		return "```\n" + strings.TrimSpace(strings.Join(out, "\n")) + "\n```\n"
	}},
	{"baselines", true, func(t *testing.T) string {
		const each = 20
		agents := []string{"nc2_random_valid", "naive", "blind_oracle", "oracle"}
		var b strings.Builder
		fmt.Fprintf(&b, "Share of %d tasks of each family that are paid, the same for all:\n\n| preset | family | %s |\n|---|---|%s\n", each, strings.Join(agents, " | "),
			strings.Repeat("---|", len(agents)))
		for _, preset := range []string{"L0", "L1"} {
			for _, family := range Pack.FamilyNames() {
				fmt.Fprintf(&b, "| %s | `%s` |", preset, family)
				for _, agent := range agents {
					c, err := Pack.Preset(family, preset)
					if err != nil {
						t.Fatal(err)
					}
					paid := 0
					for seed := range uint64(each) {
						ep := start(t, c, seed)
						if plays(t, ep, agent, 0); ep.Success() {
							paid++
						}
					}
					fmt.Fprintf(&b, " %.2f |", float64(paid)/each)
				}
				b.WriteByte('\n')
			}
		}
		return b.String()
	}},
	{"attacks", false, func(*testing.T) string {
		names := make([]string, len(hostile))
		for i, a := range hostile {
			names[i] = a.name
		}
		return strings.Join(names, ", ") + ".\n"
	}},
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
