package packtest_test

import (
	"os"
	"slices"
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

// Watch sees what it is there for: each leak that a pack can plant in what its agents are shown.
func TestWatch(t *testing.T) {
	if problems := packtest.Watch(echo.Pack, packtest.Options{}, 120); len(problems) > 0 {
		t.Errorf("of a sound pack: %v", problems)
	}
	leaks := 0
	for _, s := range packtest.Sabotages(echo.Pack) {
		switch s.Problem {
		case packtest.SecretInResult, packtest.SecretInError, packtest.NameShown:
		default:
			continue
		}
		leaks++
		problems := packtest.Watch(s.Pack, packtest.Options{}, 120)
		if !slices.ContainsFunc(problems, func(p packtest.Problem) bool { return p.Name == s.Problem }) {
			t.Errorf("%s: found %v", s.Name, problems)
		}
	}
	if leaks < 6 {
		t.Errorf("only %d of the sabotages are leaks", leaks)
	}
}
