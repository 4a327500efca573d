package terminal

import (
	"fmt"
	"path"
	"strings"

	"provegym/gym"
)

// buildPurge: of each series the newest dumps stay, and so do those that are pinned or have a hold beside them.
func buildPurge(d *draft) {
	s := d.stream("purge")
	store := d.place("dumps")
	policy := d.place("docs") + "/" + d.word(&s, []string{"retention"}) + ".txt"
	pins := d.place("docs") + "/" + d.word(&s, []string{"pinned"}) + ".txt"
	keep := 2 + s.IntN(2)
	d.mech = append(d.mech, fmt.Sprintf("newest %d", keep))

	n := d.dial("items")
	series := make([]string, 1+n/4)
	for i := range series {
		s := d.at("series", i)
		series[i] = d.odd(&s, d.word(&s, services))
	}
	dumps := map[string]bool{}
	dump := func(s *gym.Stream, of string, year int) string {
		for {
			name := fmt.Sprintf("%s/%s-%04d-%02d-%02d.dump", store, of, year, 1+s.IntN(12), 1+s.IntN(28))
			if !dumps[name] {
				dumps[name] = true
				d.file(name, fmt.Sprintf("dump %d\n%d rows\n", s.Uint64(), s.IntN(90_000)))
				return name
			}
		}
	}
	var stale, newest, pinned, old []string
	for i, of := range series {
		s := d.at("kept", i)
		for range keep {
			newest = append(newest, dump(&s, of, 2026))
		}
	}
	for i := range n {
		s := d.at("item", i)
		stale = append(stale, dump(&s, series[i%len(series)], 2022+s.IntN(4)))
	}
	for i := range d.dial("exceptions") {
		s := d.at("exceptions", i)
		pinned = append(pinned, dump(&s, series[0], 2021))
	}
	for i := range d.dial("decoys") {
		s := d.at("decoys", i)
		switch i % 3 {
		case 0: // held by a file beside it
			name := dump(&s, series[0], 2020)
			old = append(old, name)
			d.file(name+".hold", "asked for by the auditors\n")
		case 1: // of a series that has no more than are kept
			old = append(old, dump(&s, d.word(&s, services), 2019))
		default: // no dump at all
			name := strings.TrimSuffix(dump(&s, d.word(&s, services), 2019), ".dump")
			d.files[name+".log"] = d.files[name+".dump"]
			delete(d.files, name+".dump")
			old = append(old, name+".log")
		}
	}
	policyRef, line := d.ref("policy")
	d.file(policy, fmt.Sprintf("Retention of dumps\n%sA dump is a file SERIES-YYYY-MM-DD.dump. Of each series the newest %d stay, by the date in the name.\n"+
		"A dump that has a file beside it with .hold added to its name stays, too, and so does one that is pinned; neither counts among the newest.\n"+
		"All other dumps are stale. Only dumps are ever deleted.\n", line, keep))
	pinRef, line := d.ref("pins")
	text := "Pinned dumps\n" + line
	for _, name := range pinned {
		text += strings.ReplaceAll(path.Base(name), "\n", `\n`) + "\n"
	}
	d.file(pins, text)

	for _, name := range stale {
		d.gone(name)
	}
	d.spec.script = "rm " + quoted(stale)
	d.spec.shows = []string{policy, pins}
	d.answer(done, codePurged, policyRef, pinRef)
	d.say("Delete the stale dumps in %s and nothing else; %s says what is stale, and %s which dumps are pinned (a line break in a name is spelled \\n there).",
		d.call("dumps", store), d.call("policy", policy), d.call("pins", pins))
	d.say("Then finish with outcome done, code purged and the refs of the policy and of the list of pins.")

	d.mistake("pinned ones too", "rm "+quoted(append(pinned, stale...)), len(pinned) > 0)
	d.mistake("all that is old", "rm "+quoted(append(old, stale...)), len(old) > 0)
	d.mistake("all but one", "rm "+quoted(stale[1:]), true)
	d.mistake("one too many", "rm "+quoted(append([]string{newest[0]}, stale...)), true)
	d.mistake("moved away", "mkdir "+quote(store+"/stale")+" && mv "+quoted(stale)+" "+quote(store+"/stale"), true)
	d.mistake("emptied", "for f in "+quoted(stale)+"; do : >\"$f\"; done", true)
	d.mistake("the directory", "rm -r "+quote(store), true)
	d.mistake("the wrong one, put back", fmt.Sprintf("cp -p %s /tmp/x; rm %s %s", quote(newest[0]), quote(newest[0]), quoted(stale)), true)
}
