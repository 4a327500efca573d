package terminal

import (
	"fmt"
	"slices"
	"strings"

	"provegym/gym"
)

// buildReport: records in several files, of which those of one status count, but for those that were voided.
func buildReport(d *draft) {
	s := d.stream("report")
	name := d.word(&s, []string{"summary", "totals", "overview"})
	data := d.place("records")
	rules := d.place("docs") + "/" + d.word(&s, []string{"reporting"}) + ".txt"
	voids := d.place("docs") + "/" + d.word(&s, []string{"voided"}) + ".txt"
	reports := d.dir(d.place("reports"))
	out := reports + "/" + name + ".csv"
	status := gym.Pick(&s, []string{"settled", "cleared", "booked"})
	statuses := []string{status, status, "un" + status, status + "-late", "pending"}
	regions := slices.Clone(shelves)
	s.Shuffle(len(regions), func(i, j int) { regions[i], regions[j] = regions[j], regions[i] })
	regions = regions[:4]
	slices.Sort(regions)

	const header = "id,region,status,amount\n"
	n := d.dial("items") * 5
	sheets := make([]string, 1+n/20)
	type sum struct{ count, total int }
	var counted []string
	right, unvoided, all, twice := map[string]sum{}, map[string]sum{}, map[string]sum{}, map[string]sum{}
	add := func(m map[string]sum, region string, amount int) {
		m[region] = sum{m[region].count + 1, m[region].total + amount}
	}
	for i := range n {
		s := d.at("record", i)
		id, region, st, amount := d.word(&s, []string{"rec"}), gym.Pick(&s, regions), gym.Pick(&s, statuses), 1+s.IntN(5000)
		if i == 0 {
			st = status
		}
		k := i % len(sheets)
		sheets[k] += fmt.Sprintf("%s,%s,%s,%d\n", id, region, st, amount)
		add(all, region, amount)
		if st != status {
			continue
		}
		add(unvoided, region, amount)
		if k == 0 {
			add(twice, region, amount)
		}
		add(twice, region, amount)
		if i > 0 && len(counted) < d.dial("exceptions") {
			counted = append(counted, id)
			continue
		}
		add(right, region, amount)
	}
	var names []string
	for k, text := range sheets {
		names = append(names, fmt.Sprintf("%s/part-%02d.csv", data, k+1))
		d.file(names[k], header+text)
	}
	for i := range d.dial("decoys") {
		s := d.at("decoys", i)
		d.file(fmt.Sprintf("%s/%s.csv.%s", data, d.word(&s, []string{"part-"}), gym.Pick(&s, []string{"bak", "orig", "tmp"})), header+sheets[0])
	}
	voidText := "Voided records: id reason\n"
	voidRef, line := d.ref("voids")
	voidText += line
	for _, id := range append(counted, d.word(&s, []string{"rec"})) {
		voidText += id + " entered twice\n"
	}
	d.file(voids, voidText)
	rulesRef, line := d.ref("rules")
	d.file(rules, fmt.Sprintf("How we report\n%sOnly records of status %s count. Records are the lines of the files whose names end in .csv.\n"+
		"A report has the line region,count,total, then a line for each region that has a record which counts, in order of the alphabet:\n"+
		"its name, the number of records, the sum of their amounts.\n", line, status))
	d.file(reports+"/"+d.word(&s, []string{"summary"})+".csv", "region,count,total\n"+regions[0]+",1,1\n")

	spell := func(m map[string]sum) string {
		text := "region,count,total\n"
		for _, r := range regions {
			if m[r].count > 0 {
				text += fmt.Sprintf("%s,%d,%d\n", r, m[r].count, m[r].total)
			}
		}
		return text
	}
	gold := spell(right)
	d.want(out, gold)
	d.spec.want[0].open = true

	var script strings.Builder
	fmt.Fprintf(&script, "v=' '; while read -r id _; do v=\"$v$id \"; done <%s\n", quote(voids))
	for i := range regions {
		fmt.Fprintf(&script, "c%d=0 t%d=0 ", i, i)
	}
	fmt.Fprintf(&script, "\ncat %s | {\nwhile IFS=, read -r id region status amount; do\n[ \"$status\" = %s ] || continue\ncase $v in *\" $id \"*) continue;; esac\ncase $region in\n",
		quoted(names), status)
	for i, r := range regions {
		fmt.Fprintf(&script, "%s) c%d=$((c%d+1)) t%d=$((t%d+amount));;\n", r, i, i, i, i)
	}
	script.WriteString("esac; done\n{ echo region,count,total\n")
	for i, r := range regions {
		fmt.Fprintf(&script, "[ $c%d = 0 ] || echo %s,$c%d,$t%d\n", i, r, i, i)
	}
	fmt.Fprintf(&script, "} >%s; }", quote(out))
	d.spec.script = script.String()
	d.spec.shows = []string{rules, voids}
	d.answer(done, codeReported, rulesRef, voidRef)
	d.say("Write the report %s.csv into %s, of the records in %s, by the rules in %s; records that %s names do not count.",
		name, d.call("reports", reports), d.call("records", data), d.call("rules", rules), d.call("voids", voids))
	d.say("Then finish with outcome done, code reported and the refs of the rules and of the voided records.")

	lines := strings.SplitAfter(gold, "\n")
	d.mistake("voided ones too", putting(out, spell(unvoided)), len(counted) > 0)
	d.mistake("of every status", putting(out, spell(all)), spell(all) != gold)
	d.mistake("copies too", putting(out, spell(twice)), spell(twice) != gold)
	d.mistake("no header", putting(out, strings.Join(lines[1:], "")), true)
	d.mistake("header alone", putting(out, lines[0]), true)
	d.mistake("semicolons", putting(out, strings.ReplaceAll(gold, ",", ";")), true)
	d.mistake("under another name", d.spec.script+" && mv "+quote(out)+" "+quote(out+".txt"), true)
	d.mistake("records made to fit", d.spec.script+" && printf '' >>"+quote(names[0])+" && tail -n 1 "+quote(names[0])+" >>"+quote(names[0]), true)
	d.mistake("printed only", "cat "+quoted(names), true)
}
