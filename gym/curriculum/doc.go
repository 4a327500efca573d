// Package curriculum draws the tasks that a policy trains on next, from where its current checkpoint fails.
//
// It is ask/tell: the caller runs the episodes, the sampler only names them.
//
//	s, err := curriculum.New(space, key, curriculum.Options{})
//	added, err := s.Add(search.Causes()) // after every run of Break
//	for _, id := range s.Pending() {     // entry test: is the item possible at all?
//		tasks, _ := s.Entry(id)
//		err = s.Admit(id, anyReferenceAgentPasses(tasks))
//	}
//	tasks, err := s.Ask(64, 8) // 8 groups of 8; the members of a group get the same task
//	err = s.Tell(results)      // once an update of the policy
//
// Trainers whose workers draw for themselves, on several ranks, use slots in place of Ask and Tell:
//
//	task, err := s.At(slot)   // a pure function of the sampler's state and the slot; changes nothing
//	err = s.Advance(results)  // by item, once an update of the policy, the same on every rank; raises Version
//
// An Item is a confirmed cause of Break (its factors fixed, the others drawn uniformly within the train region) or the
// coverage of one family. What the sampler prefers is what the policy neither always nor never solves; see Weights. Options
// Uniform turns all of that off, with the same interface: the arm to compare with.
//
// Nothing that the space excludes is ever drawn: such an item is refused, and a draw that would land outside is an error.
// Every (condition, seed) that Ask and Entry hand out stands in the ledger; what At draws can be drawn again. A sampler can be stored after any call (MarshalJSON) and taken up
// again (Resume); it is a pure function of its key and of the calls made.
//
// Reading order: item, weight, sampler, slot, resume.
package curriculum
