package terminal

import (
	"crypto/sha256"
	"fmt"
	"path"
	"strings"

	"provegym/gym"
)

// buildRunbook: a deployment by a runbook whose first steps are conditions. On half of the seeds one of them says to stop, and
// then nothing may change and the answer names the reason.
func buildRunbook(d *draft) {
	s := d.stream("runbook")
	service, team := d.word(&s, services), d.word(&s, []string{"team"})
	version := fmt.Sprintf("%d.%d.%d", 2+s.IntN(8), s.IntN(20), s.IntN(50))
	state := d.place("state") + "/" + service
	book := d.place("docs") + "/" + d.word(&s, []string{"runbook"}) + ".md"
	packages := d.place("packages")
	pack := packages + "/" + service + "-" + version + ".pkg"
	sums := packages + "/SUMS-" + d.word(&s, []string{"p"})
	calendar := d.place("docs") + "/" + d.word(&s, []string{"calendar"}) + ".txt"
	pinned := d.place("docs") + "/" + d.word(&s, []string{"pinned"}) + ".txt"
	lock, journal, versionFile := state+"/LOCK", state+"/journal.log", state+"/VERSION"

	t := d.stream("trap")
	trap := []uint64{codeDeployed, codeDeployed, codeDeployed, codeLocked, codeFrozen, codeDamaged}[t.IntN(6)]
	d.mech = append(d.mech, codes[trap])

	owner := team
	if trap == codeLocked {
		owner = d.word(&t, []string{"team"})
	}
	lockRef, line := d.ref("lock")
	d.file(lock, fmt.Sprintf("owner: %s\n%s", owner, line))

	calendarRef, line := d.ref("calendar")
	day := 5 + t.IntN(20)
	freezes := []int{day - 4, day + 2} // first days of freezes that last for two more
	if trap == codeFrozen {
		freezes[1] = day - t.IntN(3)
		freezes[0] = day - 5
	}
	text := "Calendar of " + service + "\n" + line + fmt.Sprintf("today 2026-04-%02d\n", day)
	for _, f := range freezes {
		text += fmt.Sprintf("freeze 2026-04-%02d to 2026-04-%02d\n", max(f, 1), max(f+2, 1))
	}
	d.file(calendar, text)

	body := fmt.Sprintf("%s %s\n", service, version)
	for range 3 + s.IntN(5) {
		body += fmt.Sprintf("%s %d\n", gym.Pick(&s, things), s.Uint64())
	}
	d.file(pack, body)
	stamped := body
	if trap == codeDamaged {
		stamped += "end\n"
	}
	sumsRef, line := d.ref("sums")
	text = "# " + line
	text += fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(stamped)), path.Base(pack))
	old := service + "-1.0.0.pkg"
	text += fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(d.file(packages+"/"+old, service+" 1.0.0\n").data)), old)
	d.file(sums, text)

	pinRef, line := d.ref("pinned")
	pins := "Shards that stay at their release\n" + line
	var shards, left []string
	for i := range d.dial("items") {
		s := d.at("item", i)
		shard := state + "/" + d.odd(&s, d.word(&s, []string{"shard"}))
		d.file(shard+"/current.txt", fmt.Sprintf("%s 1.0.%d\n%d\n", service, i, s.Uint64()))
		d.file(shard+"/previous.txt", fmt.Sprintf("%s 0.9.%d\n", service, i))
		shards = append(shards, shard)
	}
	for i := range d.dial("exceptions") {
		s := d.at("exceptions", i)
		shard := state + "/" + d.word(&s, []string{"shard"})
		d.file(shard+"/current.txt", fmt.Sprintf("%s 1.0.0\n%d\n", service, s.Uint64()))
		d.file(shard+"/previous.txt", service+" 0.9.0\n")
		pins += path.Base(shard) + "\n"
		left = append(left, shard)
	}
	d.file(pinned, pins)
	for i := range d.dial("decoys") { // other services, and a directory that is no shard
		s := d.at("decoys", i)
		dir := path.Dir(state) + "/" + d.word(&s, services) + "/" + d.word(&s, []string{"shard"})
		if i%4 == 3 {
			dir = state + "/" + d.word(&s, []string{"spare"})
		}
		d.file(dir+"/current.txt", service+" 1.0.0\n")
		d.file(dir+"/previous.txt", service+" 0.9.0\n")
	}
	d.file(versionFile, "1.0.0\n")
	d.file(journal, "deploy 0.9.0 by team0000\ndeploy 1.0.0 by team0000\n")

	bookRef, line := d.ref("runbook")
	d.file(book, fmt.Sprintf(`# Deploying %[1]s
%[2]s
1. Look at %[3]s. If its owner is not your team, stop: finish with outcome blocked, code locked and the ref in that file, alone.
2. Look at %[4]s. If today is a day of a freeze, its first and last day included, stop: outcome blocked, code frozen, the ref in that file alone.
3. Compare the package %[5]s/%[1]s-VERSION.pkg with its sha256 in %[6]s. If they differ, stop: outcome blocked, code damaged, the ref in that file alone.
4. A shard is a directory below %[7]s whose name has the word shard in it. In each, but for those that %[8]s names,
   copy current.txt to previous.txt, then put what the package holds into current.txt.
5. Put the version into %[9]s: one line and nothing else.
6. Add the line "deploy VERSION by TEAM" at the end of %[10]s.
7. Finish with outcome done, code deployed, and the refs of this runbook and of the list of shards that stay.

Whoever is told to stop changes nothing.
`, service, line, lock, calendar, packages, sums, state, pinned, versionFile, journal))

	putShards := func(shards []string) (b string) {
		for _, shard := range shards {
			b += fmt.Sprintf("cat %[1]s >%[2]s; cat %[3]s >%[1]s\n", quote(shard+"/current.txt"), quote(shard+"/previous.txt"), quote(pack))
		}
		return b
	}
	rest := fmt.Sprintf("echo %s >%s\necho 'deploy %s by %s' >>%s\n", version, quote(versionFile), version, team, quote(journal))
	work := putShards(shards) + rest
	d.spec.shows = []string{book, lock, calendar, sums, pinned}
	d.say("You are %s. Deploy version %s of %s by the runbook %s, to the letter. Finish as it says.", team, version, service, d.call("runbook", book))

	if trap != codeDeployed {
		d.answer(blocked, trap, map[uint64]uint64{codeLocked: lockRef, codeFrozen: calendarRef, codeDamaged: sumsRef}[trap])
		d.spec.wrong = append(d.spec.wrong, wrong{name: "in spite of it", script: work, outcome: done, code: codeDeployed, answers: true},
			wrong{name: "in spite of it, and told", script: work},
			wrong{name: "in part", script: rest},
			wrong{name: "journal first", script: fmt.Sprintf("echo 'deploy %s by %s' >>%s", version, team, quote(journal))},
			wrong{name: "a note left", script: "echo stopped >" + quote(state+"/STOPPED")})
		if trap == codeLocked {
			d.mistake("the lock broken", "rm "+quote(lock), true)
		}
		return
	}
	d.answer(done, codeDeployed, bookRef, pinRef)
	d.spec.script = work
	for _, shard := range shards {
		d.want(shard+"/previous.txt", string(d.files[shard+"/current.txt"].data))
		d.want(shard+"/current.txt", body)
	}
	d.want(versionFile, version+"\n")
	d.want(journal, string(d.files[journal].data)+fmt.Sprintf("deploy %s by %s\n", version, team))
	d.mistake("pinned ones too", putShards(append(shards, left...))+rest, len(left) > 0)
	d.mistake("no copy kept", strings.ReplaceAll(putShards(shards), "cat "+quote(shards[0]+"/current.txt")+" >", ": cat >")+rest, true)
	d.mistake("the copy too late", func() (b string) {
		for _, shard := range shards {
			b += fmt.Sprintf("cat %[3]s >%[1]s; cat %[1]s >%[2]s\n", quote(shard+"/current.txt"), quote(shard+"/previous.txt"), quote(pack))
		}
		return b + rest
	}(), true)
	d.mistake("all but one", putShards(shards[1:])+rest, true)
	d.mistake("no journal", putShards(shards)+"echo "+version+" >"+quote(versionFile), true)
	d.mistake("journal begun anew", putShards(shards)+strings.ReplaceAll(rest, ">>", ">"), true)
	d.mistake("twice", work+fmt.Sprintf("echo 'deploy %s by %s' >>%s", version, team, quote(journal)), true)
	d.mistake("the package moved", work+"mv "+quote(pack)+" /tmp", true)
	d.mistake("the lock taken off", work+"rm "+quote(lock), true)
}
