// Package prove compares a checkpoint with its starting point on conditions that were declared before training, and says
// in fixed words what was found and what could not have been detected.
//
//	table, err := prove.Table(draft)                        // what each design could detect; freeze nothing yet
//	plan, err  := prove.Freeze(draft, key, split)           // hashed; training may begin
//	slots, err := prove.Slots(plan, key, "final")           // the episodes to run, both arms
//	look, err  := prove.Evaluate(plan, key, "final", prove.Evidence{PlanHash: plan.Hash, Records: …, Ledger: …})
//	rep, err   := prove.NewReport(prove.Input{Plan: plan, Looks: []prove.Result{look}, …})
//	os.WriteFile("report.html", rep.HTML(), 0o644)
//
// # What may be said, and when
//
// Verdict words (IMPROVED, REGRESSED, …) exist for the confirmatory conditions of a sealed look that the plan declared, and
// for the row of all their pairs pooled. Exploratory conditions and monitor looks get an estimate, an interval and an MDE,
// never a word. Words are computed by [Evaluate] from records and plan; nobody types them.
//
// A condition is of kind binary_one: one task a cluster, run once by each arm, pass or fail. Plans of any other kind are
// refused. The claim covers fresh tasks of the same generator at the same dial settings, nothing more.
//
// # Reading order
//
//	plan.go     what is declared; its canonical JSON and hash
//	freeze.go   a draft becomes a plan; amendments
//	table.go    what a draft could detect
//	seeds.go    seeds nobody has seen, their commitments, slots
//	look.go     records in, rows out
//	verdict.go  the first rule that applies
//	words.go    the sentences
//	report.go   one struct that holds everything printed; page.go and markdown.go print it
//
// # Errors
//
// gym.ErrBadInput and gym.ErrUnknown are the caller's mistakes: a draft that breaks the rules (all of them listed at once),
// an unknown look, a key that does not open the plan. Evidence that breaks the plan (another pack, a sealed task met in
// training, a plan changed after freezing) is no error but the verdict INVALID with its reason: it must reach the report.
package prove
