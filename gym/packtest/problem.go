package packtest

import (
	"fmt"
	"regexp"
	"strings"

	"provegym/gym"
	"provegym/gym/control"
)

// Names of problems.
const (
	BadDeclaration     = "bad_declaration"         // Validate fails, the pack is not registered, or it lacks an oracle or an audit
	BuildFails         = "build_fails"             // a task does not build
	BuildVaries        = "build_not_deterministic" // the same task was built twice and differs
	VacuousCheck       = "vacuous_check"           // a check is empty, or a predicate was true of everything that was tried
	GoalsAtStart       = "goals_true_at_start"     // every goal holds before the first act
	HiddenFromSplit    = "hidden_from_split"       // no template, graph or mechanism: a split cannot hold the task out
	PinNotTold         = "pin_not_told"            // a goal parameter is pinned that the instruction does not state
	SeedsAlike         = "seeds_alike"             // different seeds give the same world, or the same oracle calls
	BudgetTells        = "budget_tells_seed"       // the limits differ between seeds of one condition
	NameShown          = "secret_name_shown"       // the name of an audit, predicate or plan step is in what the agent sees
	SecretInTask       = "secret_in_instruction"   // an opaque value is in the instruction that is no goal parameter
	ToolsTell          = "tools_tell_task"         // a tool that another seed of the condition needs is not on offer
	MaskTells          = "mask_tells"              // the mask is no function of what the structured view shows
	SecretInResult     = "secret_in_result"        // an opaque value is in a result but was not shown through Turn.Show
	SecretInError      = "secret_in_error"         // a refusal spells a value that only the check knows or that was not shown yet
	BadResult          = "bad_result"              // a result is not JSON
	Oversize           = "observation_too_large"   // an observation is larger than the declared bytes
	ToolPanics         = "tool_panics"             // a tool panicked
	ToolFails          = "tool_fails"              // a tool ended the episode as invalid
	RefusalWrites      = "refusal_changes_world"   // a refused call left a trace in the world
	CheckFails         = "check_error"             // the check panicked or gave a reward that is no reward
	CheckMutates       = "check_mutates"           // scoring or auditing changed the world or the log
	NoLegalAction      = "no_legal_action"         // the mask of a running episode is empty
	StepVaries         = "step_not_deterministic"  // the same actions gave something else
	MemoryMatters      = "memory_matters"          // … after another episode in the same memory
	ThreadsMatter      = "threads_matter"          // … beside others in parallel
	OrderMatters       = "order_matters"           // … interleaved with others
	ProcessMatters     = "process_matters"         // … in another process
	RestoreDiffers     = "restore_differs"         // … after restoring a snapshot
	ForkDiffers        = "fork_differs"            // … in a fork
	ImportDiffers      = "import_differs"          // … after export and import
	CloneShares        = "clone_shares_memory"     // acting changed a clone or the first world
	ViewsDiffer        = "views_differ"            // the same calls gave another log through the other view
	OracleFails        = "oracle_fails"            // the oracle did not succeed
	PositiveFails      = "positive_control_fails"  // a positive control did not succeed
	NothingPasses      = "do_nothing_passes"       // finishing at once, refusing blindly or silence succeeded
	ControlPasses      = "negative_control_passes" // another negative control succeeded
	UnfinishedPasses   = "unfinished_passes"       // the check holds without a committed finish
	RewardNoSuccess    = "reward_without_success"  // a reward above 0 for an episode that did not succeed
	DialRedraws        = "dial_redraws"            // turning a dial changed what the task asks
	HeldOutDoor        = "held_out_door_open"      // a held-out task could be begun
	StepAfterEnd       = "step_after_end"          // a step after the end was taken
	Leak               = "leak"                    // goroutines or file descriptors were left behind
	RandomPassesTooOft = "random_passes_too_often" // random valid play passed in this small sample
)

// Problem is one thing that is wrong with a pack.
type Problem struct {
	Name  string // one of the table above
	Text  string
	Rerun string // a command that shows it
}

func (p Problem) String() string {
	s := p.Name + ": " + p.Text
	if p.Rerun != "" {
		s += "\n\trerun: " + p.Rerun
	}
	return s
}

// exam collects the problems of one pack; of each name, the first few.
type exam struct {
	pack     *gym.Pack
	opts     Options
	agents   []gym.Agent
	scripts  []*script
	problems []Problem
	count    map[string]int
	ids      *regexp.Regexp // spellings of opaque values; see opaque
}

const mostOfAName = 3

func (x *exam) say(name, rerun, format string, args ...any) {
	if rerun != "" && !strings.Contains(rerun, " ") { // a task: to build it is to see it
		rerun = "provegym tasks '" + rerun + "'"
	}
	if x.count[name]++; x.count[name] <= mostOfAName {
		x.problems = append(x.problems, Problem{name, fmt.Sprintf(format, args...), rerun})
	}
}

func (x *exam) found(names ...string) bool {
	for _, n := range names {
		if x.count[n] > 0 {
			return true
		}
	}
	return false
}

// task is the task of a condition and a seed number of this examination.
func (x *exam) task(c gym.Condition, i int) gym.Task {
	return gym.Task{Condition: c, Seed: x.opts.Key.Sub("packtest").Sub(c.Family).At(uint64(i)).Seed()}
}

// families calls f for the condition that each family is checked at.
func (x *exam) families(f func(c gym.Condition)) {
	for _, name := range x.pack.FamilyNames() {
		c, err := control.Base(x.pack, name)
		if err != nil {
			x.say(BadDeclaration, "", "%v", err)
			continue
		}
		f(c)
	}
}
