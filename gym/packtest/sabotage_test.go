package packtest_test

import (
	"os"
	"testing"

	"provegym/gym/packtest"
	"provegym/packs/echo"
)

// The suite must be able to fail: every planted fault is recognised by its name, and as the first thing that is wrong.
func TestSabotages(t *testing.T) {
	process := []string{os.Args[0], "-test.run=^TestSabotages$"}
	for _, s := range packtest.Sabotages(echo.Pack) {
		problems := packtest.Examine(s.Pack, packtest.Options{Process: process})
		if len(problems) == 0 || problems[0].Name != s.Problem {
			t.Errorf("sabotage %s must be found as %s; found:", s.Name, s.Problem)
			for _, p := range problems {
				t.Error("    ", p)
			}
		}
	}
}
