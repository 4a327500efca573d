package packtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"provegym/gym"
	"provegym/packs/echo"
)

// A golden trace is compared line by line: whatever line of it is altered, or left out, is found.
func TestGolden_everyLineCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "golden", "copy.txtar")
	if err := compareGolden(path); err == nil {
		t.Error("a missing file was let through")
	}
	if err := writeGolden(path, echo.Pack, echo.Pack.FamilyNames()[0]); err != nil {
		t.Fatal(err)
	}
	if err := compareGolden(path); err != nil {
		t.Error(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), gym.Scored.String()+"\nreward 1\n") {
		t.Errorf("the oracle did not pass:\n%s", b)
	}
	lines := strings.SplitAfter(string(b), "\n")
	for i := range lines[:len(lines)-1] {
		for _, instead := range []string{"", "x" + lines[i]} {
			altered := strings.Join(lines[:i], "") + instead + strings.Join(lines[i+1:], "")
			if err := os.WriteFile(path, []byte(altered), 0o644); err != nil {
				t.Fatal(err)
			}
			if compareGolden(path) == nil {
				t.Errorf("line %d as %q was let through", i+1, instead)
			}
		}
	}
}
