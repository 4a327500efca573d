// Package breaker searches a space of conditions for where a policy fails and reduces each confirmed failure to the
// smallest set of factors that still makes it fail.
//
// It is ask/tell: the caller runs the episodes, the search only names them.
//
//	s, err := breaker.New(space, key, breaker.Options{Budget: 2000, Checkpoint: hash})
//	for !s.Done() {
//		probes := s.Ask(16)
//		results := run(probes) // one Result a probe, in any order
//		err = s.Tell(results)
//	}
//	report := s.Report()
//
// A condition is a Cell: one level of every Factor. A cell fails when the policy fails there at least half the time
// (Options.Tau). Seeds are never factors: every probe has a fresh one.
//
// # The loop
//
// A pairwise covering array is tried first, so that every pair of levels is seen once. Then 20 % of the proposals are
// uniform over what no cause explains (the coverage floor) and the rest take the pair of levels with the highest draw from
// its Beta posterior (Thompson 1933) and fill the other factors uniformly. A failing episode makes its cell a candidate: it
// is screened on fresh seeds, minimised by dropping one factor at a time until a whole pass drops nothing, and confirmed on
// fresh seeds. A confirmed cause masks every cell it matches: once explained, a region earns nothing more. The masks and the
// cheap sequential tests are what make the search good; the Thompson step adds little to them.
//
// Every decision "fails or not" is Wald's sequential probability ratio test; see Rule.
//
// # What is promised
//
//   - An excluded (held-out) cell is never asked, not even by minimisation: the factor is kept and marked as a boundary.
//   - The episode that raised a suspicion never counts as evidence for it.
//   - The search is a pure function of the key and of the sequence of Ask and Tell calls; the order of results within one
//     Tell does not matter. It can be stored after any call (MarshalJSON) and taken up again (Resume).
//   - A lost episode is asked again and counts as nothing. The ledger keeps every (cell, seed) ever asked.
//
// Reading order: cell, counter, cover, propose, search, job, cause, recheck, report, resume; space joins it to packs.
package breaker
