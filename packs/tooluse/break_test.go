package tooluse

import (
	"flag"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"provegym/gym"
	"provegym/gym/breaker"
	"provegym/gym/control"
	"provegym/packs/tooluse/check"
)

var breakSeed = flag.Int("break-seed", -1, "the one search that TestBreak runs; all ten if negative")

// weakness is a fault planted in the blind oracle, which otherwise fails nowhere: under some dials it does something wrong.
type weakness struct {
	name   string
	dials  map[string]float64 // it shows where each of these dials is at the value or beyond
	wrong  func(e *gym.Evidence, blind gym.Actor) gym.Actor
	ranges []breaker.Range // the one box of causes that Break must come to
}

var weaknesses = []weakness{
	{
		name:   "takes_a_near_duplicate",
		dials:  map[string]float64{"near_duplicates": 16},
		ranges: []breaker.Range{{Factor: "near_duplicates", Levels: []string{"16", "32", "64"}}},
		wrong: func(e *gym.Evidence, _ gym.Actor) gym.Actor {
			return &tour{steps: actOn(e, lookalikes(e)[0])}
		},
	},
	{
		name:   "takes_an_extra_tool",
		dials:  map[string]float64{"extra_tools": 16},
		ranges: []breaker.Range{{Factor: "extra_tools", Levels: []string{"16", "32", "40"}}},
		wrong: func(_ *gym.Evidence, blind gym.Actor) gym.Actor {
			return gym.ActorFunc(func(ep *gym.Episode, c *gym.Call) bool {
				more := blind.Act(ep, c)
				if Pack.Tools[c.Tool].Finish { // in place of the finish, until the budget is spent
					*c = call(toolNow)
				}
				return more
			})
		},
	},
	{
		name:  "cites_nothing_when_it_is_long_and_indirect",
		dials: map[string]float64{"fanout": 8, "indirection": 3},
		ranges: []breaker.Range{
			{Factor: "fanout", Levels: []string{"8", "12"}}, {Factor: "indirection", Levels: []string{"3"}},
		},
		wrong: func(e *gym.Evidence, blind gym.Actor) gym.Actor {
			return gym.ActorFunc(func(ep *gym.Episode, c *gym.Call) bool {
				more := blind.Act(ep, c)
				if Pack.Tools[c.Tool].Finish {
					*c = call(toolFinish, c.Arg(check.ArgOutcome)[0], c.Arg(check.ArgCode)[0])
				}
				return more
			})
		},
	},
}

func (w *weakness) shows(c *gym.Condition) bool {
	for dial, from := range w.dials {
		if c.Float(dial) < from {
			return false
		}
	}
	return true
}

// play runs one real episode of the weak policy.
func (w *weakness) play(ep *gym.Episode, task gym.Task) error {
	if err := ep.Start(task, gym.Options{}); err != nil {
		return err
	}
	var actor gym.Actor = &solver{care: careful}
	if w.shows(&task.Condition) {
		actor = w.wrong(ep.Evidence(), actor)
	}
	return control.Play(ep, actor)
}

const breakBudget = 2000

// searched are the dials that Break may turn. Without faults and events the blind oracle is right wherever they stand.
var searched = []string{"fanout", "near_duplicates", "page_size", "extra_tools", "indirection", "slack", "depth", "width", "constraints", "memory_gap"}

// search lets Break look for the weakness over all families.
func (w *weakness) search(seed int) (breaker.Report, error) {
	space, err := breaker.SpaceOf(Pack, nil, searched, nil)
	if err != nil {
		return breaker.Report{}, err
	}
	s, err := breaker.New(space, gym.NewKey(uint64(seed), "planted"), breaker.Options{Budget: breakBudget, Checkpoint: w.name})
	if err != nil {
		return breaker.Report{}, err
	}
	var ep gym.Episode
	for !s.Done() {
		var told []breaker.Result
		for _, p := range s.Ask(16) {
			task, err := space.Task(p.Cell, p.Seed)
			if err == nil {
				err = w.play(&ep, task)
			}
			if err != nil {
				return breaker.Report{}, err
			}
			if ep.Success() == w.shows(&task.Condition) {
				return breaker.Report{}, fmt.Errorf("%s: success is %v, against the plant", task.ID(), ep.Success())
			}
			told = append(told, breaker.Result{ID: p.ID, Failed: !ep.Success(), Mode: fmt.Sprintf("%s %+v", ep.Outcome(), ep.Components())})
		}
		if err := s.Tell(told); err != nil {
			return breaker.Report{}, err
		}
	}
	return s.Report(), nil
}

// TestBreak plants a weakness that depends on one dial, or on two together, and lets Break find it with real episodes: its one
// group of causes must name exactly those dials and levels, in at least nine of ten searches.
func TestBreak(t *testing.T) {
	for i := range weaknesses {
		w := &weaknesses[i]
		t.Run(w.name, func(t *testing.T) {
			seeds, need := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 9
			if *breakSeed >= 0 {
				seeds, need = []int{*breakSeed}, 1
			}
			t.Logf("search seeds %v", seeds)
			missed := make([]string, len(seeds))
			spent := make([]int, len(seeds))
			var next atomic.Int64
			var wg sync.WaitGroup
			for range runtime.GOMAXPROCS(0) {
				wg.Go(func() {
					for k := int(next.Add(1)) - 1; k < len(seeds); k = int(next.Add(1)) - 1 {
						missed[k], spent[k] = w.miss(seeds[k])
					}
				})
			}
			wg.Wait()
			exact := len(seeds)
			for k, text := range missed {
				if spent[k] > breakBudget {
					t.Errorf("seed %d spent %d episodes, the budget is %d", seeds[k], spent[k], breakBudget)
				}
				if text != "" {
					exact--
					t.Logf("seed %d: %s\nrerun: go test ./packs/tooluse -v -run TestBreak/%s -break-seed %d", seeds[k], text, w.name, seeds[k])
				}
			}
			t.Logf("exact in %d of %d searches, with %v episodes", exact, len(seeds), spent)
			if exact < need {
				t.Errorf("the weakness was reduced to exactly its dials in %d of %d searches, need %d", exact, len(seeds), need)
			}
		})
	}
}

// miss says what one search came to, if that is not exactly the plant.
func (w *weakness) miss(seed int) (text string, episodes int) {
	r, err := w.search(seed)
	if err != nil {
		return err.Error(), 0
	}
	if len(r.Groups) == 1 && reflect.DeepEqual(r.Groups[0].Ranges, w.ranges) {
		return "", r.Episodes.Told
	}
	var labels []string
	for _, g := range r.Groups {
		labels = append(labels, g.Label)
	}
	return "found: " + strings.Join(labels, "; "), r.Episodes.Told
}
