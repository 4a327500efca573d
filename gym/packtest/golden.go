package packtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"provegym/gym"
	"provegym/gym/control"
)

// Golden holds the pack to its golden traces, one a family in testdata/golden/FAMILY.txtar: the actions that stand there, taken
// again, must give the observations, the end and the last world that stand there. People read these files: a change of one is a
// change of what agents see. With UPDATE_GOLDEN set (make golden) it writes them anew, from the oracle's calls.
func Golden(t testing.TB, p *gym.Pack) {
	t.Helper()
	for _, family := range p.FamilyNames() {
		path := filepath.Join("testdata", "golden", family+".txtar")
		err := compareGolden(path)
		if os.Getenv("UPDATE_GOLDEN") != "" {
			err = writeGolden(path, p, family)
		}
		if err != nil {
			t.Errorf("%v\nif that is meant: make golden, then read the diff", err)
		}
	}
}

func compareGolden(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var task gym.Task
	var actions []string
	for _, section := range strings.Split("\n"+string(b), "\n-- ")[1:] {
		name, text, _ := strings.Cut(section, " --\n")
		switch {
		case name == "task":
			if task, err = gym.ParseTask(strings.TrimSpace(text)); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		case strings.HasPrefix(name, "action "):
			actions = append(actions, strings.TrimSuffix(text, "\n"))
		}
	}
	if task.Pack == nil {
		return fmt.Errorf("%s: no task", path)
	}
	got, err := transcript(task, actions)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	is, was := strings.Split(got, "\n"), strings.Split(string(b), "\n")
	for i := range is {
		if i >= len(was) || is[i] != was[i] {
			return fmt.Errorf("%s:%d: it is now\n\t%s\nand was\n\t%s", path, i+1, is[i], strings.Join(was[min(i, len(was)):min(i+1, len(was))], ""))
		}
	}
	if len(was) > len(is) {
		return fmt.Errorf("%s:%d: nothing follows any more", path, len(is)+1)
	}
	return nil
}

func writeGolden(path string, p *gym.Pack, family string) error {
	c, err := control.Base(p, family)
	if err != nil {
		return err
	}
	task := gym.Task{Condition: c, Seed: 1}
	ep, err := gym.NewEpisode(task, gym.Options{})
	if err != nil {
		return err
	}
	oracle, err := control.Agent(p, "pc1_oracle")
	if err != nil {
		return err
	}
	actor, err := control.New(ep, oracle, 0, control.Key(task, oracle.Name))
	if err != nil {
		return err
	}
	var actions []string
	if err := control.Play(ep, gym.ActorFunc(func(ep *gym.Episode, call *gym.Call) bool {
		ok := actor.Act(ep, call)
		if ok {
			actions = append(actions, string(p.AppendCall(nil, call)))
		}
		return ok
	})); err != nil {
		return err
	}
	text, err := transcript(task, actions)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	return err
}

// transcript takes the actions in a text episode and writes down all that is seen. It is a txtar archive: each section begins
// with a line "-- name --". The episode's digest is not in it, as that covers the pack's sources.
func transcript(task gym.Task, actions []string) (string, error) {
	var b strings.Builder
	section := func(name, text string) { fmt.Fprintf(&b, "-- %s --\n%s\n", name, text) }
	ep, err := gym.NewEpisode(task, gym.Options{})
	if err != nil {
		return "", err
	}
	section("task", task.ID())
	section("instruction", ep.Instruction())
	for i, action := range actions {
		if err := ep.StepText([]byte(action)); err != nil {
			return "", fmt.Errorf("action %d: %w", i+1, err)
		}
		section(fmt.Sprintf("action %d", i+1), action)
		section(fmt.Sprintf("result %d", i+1), string(ep.Result()))
	}
	section("end", fmt.Sprintf("%s\nreward %g\n%+v\nworld %s", ep.Outcome(), ep.Reward(), ep.Components(),
		gym.DigestWorld(ep.Evidence().Last)))
	return b.String(), nil
}
