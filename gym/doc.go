// Package gym is the vocabulary of ProveGym: what a task, a world, a tool, a check and an episode are. Machinery lives in the
// packages below it. One episode:
//
//	task, err := gym.ParseTask("tooluse@2/resolve-act#seed=7") // a condition and a seed
//	ep, err := gym.NewEpisode(task, gym.Options{View: gym.Text})
//	fmt.Println(ep.Instruction())
//	for ep.Outcome() == gym.Running {
//		action := agent(ep.Result())  // {"tool": "get_order", "args": {"order": "o-9f3c…"}}
//		err = ep.StepText(action)     // bad input of the agent is a result, not an error
//	}
//	fmt.Println(ep.Outcome(), ep.Reward(), ep.Components())
//
// # Words
//
//	pack        one kind of agent work: worlds, tools, families, checks, audits, agents
//	family      a task template; what splits hold out
//	dial        one difficulty axis; turning it disturbs nothing else
//	condition   pack version, family and dial settings, without a seed
//	task        a condition and a seed
//	world       the state that an episode lives in
//	tool, call  a typed function that the agent acts through; one use of it
//	check       what the reward is made of: goals, path, collateral, commit
//	audit       a second set of checks that the reward never sees
//	outcome     how an episode ended: scored, truncated, invalid, check_error
//	split, mode what may be seen for what: free, train, eval, test
//
// # Reading order
//
// rng, digest, condition, value, world, log, tool, parse, turn, check, pack, episode, slots, record, closing, errors.
package gym
