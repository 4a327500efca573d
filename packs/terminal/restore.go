package terminal

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"provegym/gym"
)

// buildRestore: files are damaged or missing; a manifest has their sums, and of each at least one archive has the copy that fits.
func buildRestore(d *draft) {
	s := d.stream("restore")
	site := d.place("site")
	backups := d.place("backups")
	manifest := d.place("docs") + "/" + d.word(&s, []string{"manifest"}) + ".txt"
	retired := d.place("docs") + "/" + d.word(&s, []string{"retired"}) + ".txt"

	type item struct {
		name string // below the site
		text string
		mode fs.FileMode
		in   int // archives that have the right copy, as bits
	}
	draw := func(s *gym.Stream) item {
		it := item{mode: 0o644}
		base := strings.ReplaceAll(d.odd(s, d.word(s, things)), "\n", " ")
		it.name = gym.Pick(s, shelves) + "/" + base + gym.Pick(s, []string{".html", ".css", ".sh"})
		if strings.HasSuffix(it.name, ".sh") {
			it.mode = 0o755
		}
		for range 2 + s.IntN(8) {
			it.text += fmt.Sprintf("%s %s %d\n", gym.Pick(s, things), gym.Pick(s, shelves), s.Uint64())
		}
		it.in = 1 + s.IntN(7)
		return it
	}
	spoil := func(text string) string { return text[:len(text)/3] + "garbled\n" }

	var items, intact, out, local []item
	var archives [3]archive
	var sums strings.Builder
	listed := func(it item) { fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256([]byte(it.text)), it.name) }
	keep := func(it item, right func(k int) bool) {
		for k := range archives {
			if text := it.text; right(k) {
				archives[k].add(it.name, text, it.mode)
			} else {
				archives[k].add(it.name, spoil(text)+fmt.Sprint(k), it.mode)
			}
		}
	}
	for i := range d.dial("items") {
		s := d.at("item", i)
		it := draw(&s)
		switch where := site + "/" + it.name; s.IntN(3) {
		case 0:
			d.fileMode(where, it.text[:len(it.text)/2], it.mode)
		case 1:
			d.fileMode(where, strings.ToUpper(it.text), it.mode)
		default:
			d.dir(path.Dir(where)) // missing
		}
		listed(it)
		keep(it, func(k int) bool { return it.in>>k&1 == 1 })
		items = append(items, it)
	}
	for i := range 4 {
		s := d.at("intact", i)
		it := draw(&s)
		d.fileMode(site+"/"+it.name, it.text, it.mode)
		listed(it)
		keep(it, func(k int) bool { return it.in>>k&1 == 1 })
		intact = append(intact, it)
	}
	for i := range d.dial("exceptions") {
		s := d.at("exceptions", i)
		it := draw(&s)
		d.dir(path.Dir(site + "/" + it.name))
		listed(it)
		keep(it, func(int) bool { return true })
		out = append(out, it)
	}
	for i := range d.dial("decoys") { // changed here on purpose, and not the manifest's business
		s := d.at("decoys", i)
		it := draw(&s)
		d.fileMode(site+"/"+it.name, it.text+"edited here\n", it.mode)
		keep(it, func(int) bool { return true })
		local = append(local, it)
	}
	var names []string
	for k := range archives {
		names = append(names, fmt.Sprintf("%s/site-2026-%02d.tar", backups, 3+4*k))
		d.file(names[k], archives[k].close())
	}
	ref, line := d.ref("manifest")
	d.file(manifest, "# sha256 and name below the site\n# "+line+sums.String())
	outRef, line := d.ref("retired")
	text := "Retired from the site\n" + line
	for _, it := range out {
		text += it.name + "\n"
	}
	d.file(retired, text)

	extract := func(it item, k int) string {
		at, to := archives[k].at[it.name], quote(site+"/"+it.name)
		cmd := fmt.Sprintf("tail -c +%d %s | head -c %d >%s", at[0]+1, quote(names[k]), at[1], to)
		if it.mode&0o100 != 0 {
			cmd += " && chmod 755 " + to
		}
		return cmd + "\n"
	}
	script := ""
	for _, it := range items {
		k := 0
		for it.in>>k&1 == 0 {
			k++
		}
		script += extract(it, k)
		name := site + "/" + it.name
		d.spec.want = append(d.spec.want, want{name: name, ino: &inode{mode: it.mode, data: []byte(it.text)}})
		d.may(name)
	}
	d.spec.script = script
	d.spec.shows = []string{manifest, retired}
	d.answer(done, codeRestored, ref, outRef)
	d.say("Files of %s are damaged or missing. Bring every file that %s lists back as listed, from whichever archive in %s has it so, with the mode that it has there, "+
		"but for those that %s names: they stay away. What is as listed, and what is not listed, stays as it is.", d.call("site", site),
		d.call("manifest", manifest), d.call("backups", backups), d.call("retired", retired))
	d.say("Then finish with outcome done, code restored and the refs of the manifest and of the list of what is retired.")

	all := ""
	for _, it := range append(append([]item{}, items...), intact...) {
		all += extract(it, 2)
	}
	fits := true
	for _, it := range append(append([]item{}, items...), intact...) {
		fits = fits && it.in>>2&1 == 1
	}
	d.mistake("all from the newest archive", all, !fits)
	d.mistake("retired ones too", script+func() (b string) {
		for _, it := range out {
			b += extract(it, 0)
		}
		return b
	}(), len(out) > 0)
	d.mistake("local ones too", script+func() (b string) {
		for _, it := range local {
			b += extract(it, 0)
		}
		return b
	}(), len(local) > 0)
	d.mistake("all but one", strings.Join(strings.SplitAfter(script, "\n")[1:], ""), true)
	d.mistake("the manifest made to fit", fmt.Sprintf("cd %s && sha256sum */* >%s", quote(site), quote(manifest)), true)
	d.mistake("programs that do not run", script+"chmod a-x "+quote(site)+"/*/*", hasProgram(d.spec.want))
	d.mistake("unpacked beside it", script+"mkdir "+quote(site+"/old")+"\n", true)
	d.mistake("linked to scratch", script+fmt.Sprintf("mv %[1]s /tmp/x && ln -s /tmp/x %[1]s", quote(site+"/"+items[0].name)), true)
}

func hasProgram(ws []want) bool {
	for i := range ws {
		if ws[i].ino != nil && program(ws[i].ino) {
			return true
		}
	}
	return false
}

// archive is a tar file in the making, and where in it each file's bytes are.
type archive struct {
	buf bytes.Buffer
	w   *tar.Writer
	at  map[string][2]int
}

func (a *archive) add(name, text string, mode fs.FileMode) {
	if a.w == nil {
		a.w, a.at = tar.NewWriter(&a.buf), map[string][2]int{}
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(text)), Mode: int64(mode.Perm()), ModTime: time.Unix(0, timeOf(name)).Truncate(time.Second),
		Uname: "agent", Gname: "agent", Uid: 1000, Gid: 1000, Format: tar.FormatUSTAR}
	if err := a.w.WriteHeader(h); err != nil {
		panic(err) // names are short
	}
	a.at[name] = [2]int{a.buf.Len(), len(text)}
	if _, err := a.w.Write([]byte(text)); err != nil {
		panic(err)
	}
}

func (a *archive) close() string {
	if err := a.w.Close(); err != nil {
		panic(err)
	}
	return a.buf.String()
}
