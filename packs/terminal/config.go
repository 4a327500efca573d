package terminal

import (
	"fmt"
	"slices"
	"strings"

	"provegym/gym"
)

// setting is one key of a configuration.
type setting struct {
	key, was, want string // was "" if the line is missing
	sheet          string // what the sheet says; "" if it does not list the key
	rank           uint64 // order in the file
	row            uint64 // order in the sheet
}

// buildConfig: keys of a configuration are wrong or missing; a sheet says how they should be, and overrides beat the sheet.
func buildConfig(d *draft) {
	s := d.stream("service")
	service := d.word(&s, services)
	conf := d.place("etc") + "/" + service + ".conf"
	sheet := d.place("docs") + "/" + service + ".sheet"
	over := d.place("docs") + "/" + d.word(&s, []string{"overrides"}) + ".txt"

	value := func(s *gym.Stream) string {
		if s.IntN(2) == 0 {
			return fmt.Sprint(10 + s.IntN(9000))
		}
		return gym.Pick(s, things) + "-" + gym.Pick(s, shelves)
	}
	var all []setting
	var overrides []string
	n := d.dial("items")
	for i := range n + 6 {
		s := d.at("key", i)
		if i >= n {
			s = d.at("settled key", i-n)
		}
		k := setting{key: d.word(&s, things), rank: s.Uint64(), row: s.Uint64()}
		k.want = value(&s)
		k.sheet, k.was = k.want, k.want
		switch {
		case i >= n && i%2 == 0:
			k.sheet = "" // not the sheet's business
		case i < n:
			if k.was = value(&s) + "0"; s.IntN(3) == 0 && i > 0 {
				k.was = ""
			}
			if i < d.dial("exceptions") {
				if k.want = value(&s) + "1"; k.want == k.sheet {
					k.want += "1"
				}
				overrides = append(overrides, service+" "+k.key+" "+k.want)
			}
		}
		if i < n && (k.was == k.want || k.was == k.sheet) {
			k.was += "0"
		}
		all = append(all, k)
	}
	var docText strings.Builder
	sheetRef, line := d.ref("sheet")
	fmt.Fprintf(&docText, "Settings of %s\n%skey value\n", service, line)
	slices.SortFunc(all, func(a, b setting) int { return cmpUint(a.row, b.row) })
	for _, k := range all {
		if k.sheet != "" {
			fmt.Fprintf(&docText, "%s %s\n", k.key, k.sheet)
		}
	}
	d.file(sheet, docText.String())
	overRef, line := d.ref("overrides")
	other := d.stream("other services")
	for range 2 {
		overrides = append(overrides, d.word(&other, services)+" "+all[0].key+" "+value(&other))
	}
	slices.Sort(overrides)
	d.file(over, "Overrides of sheets: service key value\n"+line+strings.Join(overrides, "\n")+"\n")

	// spell gives the file with other values than those of the keys that get says.
	spell := func(ks []setting, get func(k *setting) string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "# %s, main configuration\n\n", service)
		byRank := slices.Clone(ks)
		slices.SortFunc(byRank, func(a, b setting) int { return cmpUint(a.rank, b.rank) })
		for i, k := range byRank {
			if i%4 == 3 {
				fmt.Fprintf(&b, "# %s = %s\n", k.key, k.want+"9")
			}
			if k.was != "" {
				fmt.Fprintf(&b, "%s = %s\n", k.key, get(&k))
			}
		}
		for _, k := range ks { // by the order of the sheet
			if v := get(&k); k.was == "" && v != "" {
				fmt.Fprintf(&b, "%s = %s\n", k.key, v)
			}
		}
		return b.String()
	}
	d.file(conf, spell(all, func(k *setting) string { return k.was }))
	gold := spell(all, func(k *setting) string { return k.want })
	d.want(conf, gold)

	for i := range d.dial("decoys") { // the same keys in a file of a similar name
		s := d.at("decoys", i)
		d.file(fmt.Sprintf("%s/%s-%s.conf", d.place("etc"), service, d.word(&s, shelves)), spell(all, func(k *setting) string { return k.was }))
	}

	var script strings.Builder
	fmt.Fprintf(&script, "while IFS= read -r l; do case $l in\n")
	for _, k := range all {
		if k.was != "" && k.was != k.want {
			fmt.Fprintf(&script, "%s) l=%s;;\n", quote(k.key+" = "+k.was), quote(k.key+" = "+k.want))
		}
	}
	script.WriteString("esac; printf '%s\\n' \"$l\"; done <" + quote(conf) + " >/tmp/new\n")
	for _, k := range all {
		if k.was == "" {
			fmt.Fprintf(&script, "echo %s >>/tmp/new\n", quote(k.key+" = "+k.want))
		}
	}
	fmt.Fprintf(&script, "cat /tmp/new >%s", quote(conf))
	d.spec.script = script.String()
	d.spec.shows = []string{sheet, over}
	d.answer(done, codeRepaired, sheetRef, overRef)
	d.say("Bring %s in line with %s: each key listed there shall have the value listed, unless %s lists another for %s, which then counts. "+
		"A line is `key = value`; a key that has no line gets one at the end, several in the order of the sheet. Every other line stays as it is, "+
		"and where it is.", d.call("file", conf), d.call("sheet", sheet), d.call("overrides", over), service)
	d.say("Then finish with outcome done, code repaired and the refs of sheet and overrides.")

	first := slices.IndexFunc(all, func(k setting) bool { return k.was != k.want })
	d.mistake("by the sheet alone", putting(conf, spell(all, func(k *setting) string {
		if k.sheet == "" {
			return k.want
		}
		return k.sheet
	})), d.dial("exceptions") > 0)
	d.mistake("one key only", putting(conf, spell(all, func(k *setting) string {
		if k.key == all[first].key {
			return k.want
		}
		return k.was
	})), true)
	d.mistake("sorted", d.spec.script+" && sort /tmp/new >"+quote(conf), true)
	d.mistake("appended", fmt.Sprintf("{ cat %s; tail -n +4 %s | tr ' ' '='; } >/tmp/x; cat /tmp/x >%s", quote(conf), quote(sheet), quote(conf)), true)
	d.mistake("emptied", ": >"+quote(conf), true)
	d.mistake("a new file beside it", d.spec.script+" && cp /tmp/new "+quote(conf+".new"), true)
	d.mistake("a link in its place", d.spec.script+" && rm "+quote(conf)+" && ln -s /tmp/new "+quote(conf), true)
}

func cmpUint(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// putting is a command that gives a file this text.
func putting(name, text string) string { return "printf %s " + quote(text) + " >" + quote(name) }

// want asks for a file with this text, in place of what is there.
func (d *draft) want(name, text string) {
	ino := &inode{mode: 0o644, data: []byte(text)}
	if was := d.files[name]; was != nil {
		ino.mode = was.mode
	}
	d.spec.want = append(d.spec.want, want{name: name, ino: ino})
	d.may(name)
}

// gone asks for a name to be gone.
func (d *draft) gone(name string) {
	d.spec.want = append(d.spec.want, want{name: name})
	d.may(name)
}

// answer is how the task is to be finished.
func (d *draft) answer(outcome, code uint64, cite ...uint64) {
	d.spec.outcome, d.spec.code, d.spec.cite = outcome, code, cite
}

// mistake is a wrong way to do it, where the task has it.
func (d *draft) mistake(name, script string, has bool) {
	if has {
		d.spec.wrong = append(d.spec.wrong, wrong{name: name, script: script})
	}
}
