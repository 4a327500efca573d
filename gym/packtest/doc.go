// Package packtest is the conformance suite for packs. A pack runs it in one line:
//
//	func TestPack(t *testing.T) { packtest.Run(t, files.Pack) }
//
// Run reports what Examine finds. Every problem has a name from the table in problem.go, so that a test can demand that a
// planted fault is recognised: Sabotages returns broken variants of any pack, each with the name of its problem, and a suite
// that lets one of them through is itself broken.
//
// What is examined, in this order: the declaration; the tasks as built; recorded episodes of the oracle and of random play in
// both views, with every result looked at; checks and controls; that the recorded episodes come out the same, digest by digest,
// after restore at every step, after fork and export, in used memory, threads, batches, shuffled order and a spawned process;
// dials; refusals; splits; leaks.
//
// Golden holds a pack to the transcripts in its testdata/golden, which people read when they change.
//
// What it cannot see: a clock so coarse that it does not change while the suite runs, and secrets in prose that spell no value.
package packtest
