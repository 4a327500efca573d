package terminal

import (
	"fmt"
	"path"
	"strings"

	"provegym/gym"
)

// buildRename: files of an inbox go where a rule says by their names; what does not match, and what is on hold, stays.
func buildRename(d *draft) {
	s := d.stream("rename")
	inbox := d.place("inbox")
	filed := d.dir(d.place("filed"))
	rule := d.place("docs") + "/" + d.word(&s, []string{"filing"}) + ".txt"
	holds := d.place("docs") + "/" + d.word(&s, []string{"holds"}) + ".txt"
	form := s.IntN(3)
	d.mech = append(d.mech, []string{"by month", "by kind", "by number"}[form])
	forms := []string{
		"to YYYY/MM, under the name that it has",
		"to a directory named like its kind, as YYYYMMDD-NUMBER.txt",
		"to YYYY, as NUMBER-KIND.txt",
	}
	to := func(form int, kind, date, number string) string {
		return filed + "/" + [...]string{
			date[:4] + "/" + date[4:6] + "/" + kind + "_" + date + "_" + number + ".txt",
			kind + "/" + date + "-" + number + ".txt",
			date[:4] + "/" + number + "-" + kind + ".txt",
		}[form]
	}
	type item struct{ kind, date, number, from string }
	draw := func(s *gym.Stream, odd bool) (it item) {
		it.number = d.word(s, []string{""})
		it.kind = gym.Pick(s, things)
		if kind := d.odd(s, it.kind+"0"); odd && d.dial("names") > 0 {
			it.kind = kind
		}
		it.date = fmt.Sprintf("20%02d%02d%02d", 22+s.IntN(4), 1+s.IntN(12), 1+s.IntN(28))
		it.from = inbox + "/" + it.kind + "_" + it.date + "_" + it.number + ".txt"
		return it
	}
	fill := func(s *gym.Stream, name string) {
		d.file(name, fmt.Sprintf("%s\nnumber of pages: %d\n", gym.Pick(s, things), 1+s.IntN(500)))
	}
	var items, held []item
	for i := range d.dial("items") {
		s := d.at("item", i)
		it := draw(&s, true)
		fill(&s, it.from)
		items = append(items, it)
	}
	for i := range d.dial("exceptions") {
		s := d.at("exceptions", i)
		it := draw(&s, false)
		fill(&s, it.from)
		held = append(held, it)
	}
	for i := range d.dial("decoys") {
		s := d.at("decoys", i)
		it := draw(&s, false)
		fill(&s, inbox+"/"+[...]string{it.kind + "_" + it.date + "_" + it.number + "a.txt", it.kind + "-" + it.date + "-" + it.number + ".txt", it.kind + "_" + it.date + "_" + it.number + ".txt.part",
			it.kind + "_" + it.date[:6] + "_" + it.number + ".txt"}[s.IntN(4)])
	}
	ruleRef, line := d.ref("rule")
	d.file(rule, fmt.Sprintf("Filing\n%sA file of the inbox that is named KIND_YYYYMMDD_NUMBER.txt goes below the filing directory,\n%s.\n"+
		"NUMBER is digits, YYYYMMDD eight of them, KIND all before. Files of other names stay in the inbox. Directories are made as they are needed.\n", line, forms[form]))
	holdRef, line := d.ref("holds")
	text := "On hold, these stay where they are\n" + line
	for _, it := range held {
		text += path.Base(it.from) + "\n"
	}
	d.file(holds, text)

	move := func(form int, items []item, verb string) string {
		made := map[string]bool{}
		var dirs []string
		var b strings.Builder
		for _, it := range items {
			if dir := path.Dir(to(form, it.kind, it.date, it.number)); !made[dir] {
				made[dir] = true
				dirs = append(dirs, dir)
			}
		}
		fmt.Fprintf(&b, "set -e\nmkdir -p %s\n", quoted(dirs))
		for _, it := range items {
			fmt.Fprintf(&b, "%s %s %s\n", verb, quote(it.from), quote(to(form, it.kind, it.date, it.number)))
		}
		return b.String()
	}
	for _, it := range items {
		ino, name := d.files[it.from], to(form, it.kind, it.date, it.number)
		d.gone(it.from)
		d.spec.want = append(d.spec.want, want{name: name, ino: ino})
		d.may(name)
		d.mayDirs(name)
	}
	d.spec.script = move(form, items, "mv")
	d.spec.shows = []string{rule, holds}
	d.answer(done, codeFiled, ruleRef, holdRef)
	d.say("File what is in %s below %s, by the rule in %s; what %s names stays.", d.call("inbox", inbox), d.call("filing directory", filed),
		d.call("rule", rule), d.call("holds", holds))
	d.say("Then finish with outcome done, code filed and the refs of the rule and of the list of holds.")

	d.mistake("those on hold too", move(form, append(held, items...), "mv"), len(held) > 0)
	d.mistake("copied", move(form, items, "cp"), true)
	d.mistake("by another rule", move((form+1)%3, items, "mv"), true)
	d.mistake("all but one", move(form, items[1:], "mv"), len(items) > 1)
	d.mistake("first to a wrong place", "mv "+quote(items[0].from)+" "+quote(filed+"/x")+"\nmv "+quote(filed+"/x")+" "+quote(items[0].from)+"\n"+move((form+1)%3, items[:1], "mv")+move(form, items[1:], "mv"), true)
	d.mistake("linked", move(form, items, "mv")+"ln -s "+quote(to(form, items[0].kind, items[0].date, items[0].number))+" "+quote(items[0].from), true)
	d.mistake("the inbox itself", "mv "+quote(inbox)+"/* "+quote(filed), true)
}
