// Package control holds agents whose result is known in advance, and the runner that holds a pack to them.
//
// A negative control must never succeed, a positive control and the oracle must always; one negative control, random valid
// play, may succeed at a bounded rate. The general controls are derived from what every pack declares (tools, plan, evidence);
// a pack adds its own in Pack.Agents, and one of the same name takes the place of the general one:
//
//	nc0_finish_at_once   finish as the first act, with every combination of outcome and code
//	nc1_silence          nothing until the budget is spent
//	nc2_random_valid     uniform over the structured view's mask; Wilson's 95 % upper bound at most 0.5 %
//	nc4_refuse           finish with every other outcome and every code, citing what the instruction names
//	nc5_spam             the oracle, but every write tool is used on every visible entity before the finish
//	nc6_minus_step       the oracle without one needed step, for each
//	nc7_plus_write       the oracle and one extra write, for each write tool
//	nc10_sibling         the oracle's calls of another seed, replayed word by word
//	nc12_claims          the oracle without its finish, which it claims in words
//	nc17_injection       escapes, injections, NUL and very long text in every string argument
//	pc1_oracle           the plan
//	pc2_permuted         the plan in another order that its After edges allow
//	pc3_extra_reads      the plan and up to two harmless reads
//
// nc6 is void when recovery from a lost answer made the step that was left out, a reading back, after all. nc5 and nc7 are void,
// and count as neither, when no extra write took place outside what the oracle itself writes: a refused call is no harm. In the
// structured view a call that the table cannot express is an illegal action; strings cannot be sent there at all, so nc12 and nc17
// are what is left of them.
//
// Plan of Check. Each seed of a condition is one job: its task is built once a view and every control starts from a snapshot
// of that. The oracle, the positive controls and the bounded ones run on every seed in each view that the pack has; the other negative
// controls run on every seed once, in views by turns, with their variants by turns, so that views x variants seeds cover all. The conditions
// are the base (preset L1 if there is one) with Options.Seeds, and the two ends of every dial with Options.DialSeeds; bounded
// controls run at the base alone, where their bound is stated.
//
// Beside the controls, every 16th seed of each condition is played by the references, the oracle and the baselines: their passes are
// audited, and where the pack has twins they play the pair, which counts only if both pass. And every level of every dial is played by
// the baselines on the same tasks: no level may be easier than the one before.
//
// What a finished check found of the controls is summed up as Rates, which packs keep beside them.
package control
