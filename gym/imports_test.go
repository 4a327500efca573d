package gym_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// arrows is the import table: a package may import those listed and nothing else of this module. A trailing "/" stands for
// everything below.
var arrows = []struct {
	from string
	may  []string
}{
	{"gym", nil},
	{"gym/split", []string{"gym"}},
	{"gym/breaker", []string{"gym", "gym/split"}},
	{"gym/curriculum", []string{"gym", "gym/split", "gym/breaker"}},
	{"gym/vector", []string{"gym"}},
	{"gym/trace", []string{"gym"}},
	{"gym/prove/stats", nil},
	{"gym/prove", []string{"gym", "gym/split", "gym/trace", "gym/prove/stats"}},
	{"gym/control", []string{"gym", "gym/prove/stats"}},
	{"gym/packtest", []string{"gym", "gym/control", "gym/vector", "gym/breaker"}},
	{"sandbox/", []string{"sandbox/"}},
	{"packs/all", []string{"packs/"}},
	{"packs/all/generate", nil},
	{"packs/", []string{"gym", "sandbox/"}}, // and its own subfolders
	{"capi/sources", nil},
	{"capi", []string{"packs/all", "sandbox/", "gym", "gym/split", "gym/curriculum", "gym/vector", "gym/trace", "gym/breaker",
		"gym/prove", "gym/control"}},
	{"bench/", []string{"gym/", "gym", "packs/", "sandbox/", "bench/"}},
}

// third lists the modules from outside that a package may use.
var third = map[string][]string{
	"gym/trace":       {"github.com/mattn/go-sqlite3", "github.com/klauspost/compress"},
	"gym/prove/stats": {"gonum.org/v1/gonum"},
	"gym/prove":       {"gonum.org/v1/gonum"},
	"gym/breaker":     {"gonum.org/v1/gonum"},
	"gym/curriculum":  {"gonum.org/v1/gonum"},
	"gym/vector":      {"golang.org/x/sys"},
	"capi":            {"github.com/mattn/go-sqlite3"}, // its version, for pgym_build_info
	"sandbox/":        {"golang.org/x/sys"},
}

func TestImportTable(t *testing.T) {
	const module = "provegym/"
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "provegym/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	match := func(pattern, path string) bool {
		return pattern == path || strings.HasSuffix(pattern, "/") && strings.HasPrefix(path+"/", pattern)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		fields := strings.Fields(line)
		from := strings.TrimPrefix(fields[0], module)
		row := -1
		for i := range arrows {
			if match(arrows[i].from, from) && (row < 0 || arrows[i].from == from) {
				row = i
			}
		}
		if row < 0 {
			t.Errorf("%s stands in no row of the import table", from)
			continue
		}
		for _, imp := range fields[1:] {
			first, _, _ := strings.Cut(imp, "/")
			switch {
			case strings.HasPrefix(imp, module):
				to := strings.TrimPrefix(imp, module)
				own := strings.HasPrefix(from, "packs/") && slices.Equal(strings.Split(from, "/")[:2], strings.Split(to+"/", "/")[:2])
				if !own && !slices.ContainsFunc(arrows[row].may, func(p string) bool { return match(p, to) }) {
					t.Errorf("%s imports %s: no arrow allows it", from, to)
				}
			case strings.Contains(first, "."):
				ok := false
				for pattern, mods := range third {
					ok = ok || match(pattern, from) && slices.ContainsFunc(mods, func(m string) bool { return strings.HasPrefix(imp, m) })
				}
				if !ok {
					t.Errorf("%s imports %s, which is not chosen for it", from, imp)
				}
			}
		}
	}
}
