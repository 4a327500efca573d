package terminal

import (
	"bytes"
	"io/fs"
	"path"
	"strings"

	"provegym/gym"
	"provegym/sandbox"
)

// tools are the agent's hands. A description says what the tool does and returns; it never says what the task wants.
var tools = []gym.Tool{
	{
		Name: "run",
		Doc: "Runs a command with sh in /work and returns its exit code and the beginning of its output. Whatever it starts ends with it. " +
			"It has ten seconds, five of them at work, and no network, and may write below /work, /tmp and /dev/shm.",
		Params: []gym.Param{{Name: "command", Doc: "what sh -c is given", Types: []gym.TypeID{typeCommand}}},
		Writes: true,
		Run:    run,
	},
	{
		Name: "read_file",
		Doc:  "Shows a text file, a page of 8192 bytes at a time.",
		Params: []gym.Param{
			{Name: "path", Doc: "its path, from /work on if it does not begin with /", Types: []gym.TypeID{typePath}},
			{Name: "page", Doc: "which page, from 1", Types: []gym.TypeID{typePage}, Optional: true, Min: 1, Max: 64},
		},
		Run: readFile,
	},
	{
		Name: "write_file",
		Doc:  "Makes a file with the text given, or replaces what a file holds. Its directory must be there.",
		Params: []gym.Param{
			{Name: "path", Doc: "its path, from /work on if it does not begin with /", Types: []gym.TypeID{typePath}},
			{Name: "text", Doc: "all that it shall hold", Types: []gym.TypeID{typeText}},
		},
		Writes: true,
		Run:    writeFile,
	},
	{
		Name:   "list",
		Doc:    "Lists up to 200 entries of a directory, in order of their names: what each is, and the bytes of files.",
		Params: []gym.Param{{Name: "path", Doc: "the directory's path, from /work on if it does not begin with /", Types: []gym.TypeID{typePath}}},
		Run:    list,
	},
	{
		Name: "finish",
		Doc:  "Ends the task and commits your answer. Files and answer are judged; nothing that was printed is.",
		Params: []gym.Param{
			{Name: "outcome", Doc: "done, or blocked if what you were told to follow says to stop", Types: []gym.TypeID{typeOutcome}},
			{Name: "code", Doc: "what was done, or what blocks", Types: []gym.TypeID{typeCode}},
			{Name: "evidence", Doc: "the refs that the task asks to be cited", Types: []gym.TypeID{typeRef}, Optional: true, List: true},
		},
		Finish: true,
		Run:    finish,
	},
}

// Tools and arguments by number.
const (
	toolRun = iota
	toolRead
	toolWrite
	toolList
	toolFinish

	argCommand  = 0
	argPath     = 0
	argPage     = 1
	argText     = 1
	argOutcome  = 0
	argCode     = 1
	argEvidence = 2
)

const (
	maxCommand = 32 << 10
	pageBytes  = 8 << 10
	mostListed = 200
)

func run(t *gym.Turn) error {
	w := t.World.(*world)
	command, _ := t.One(argCommand)
	switch {
	case strings.TrimSpace(command.Text) == "":
		return gym.Refuse("bad_command", "the command is empty")
	case strings.IndexByte(command.Text, 0) >= 0:
		return gym.Refuse("bad_command", "the command has a NUL in it")
	case len(command.Text) > maxCommand:
		return gym.Refuse("bad_command", "a command may have %d bytes, not %d: write a file and run that", maxCommand, len(command.Text))
	}
	end, err := execute(w, command.Text)
	if err != nil {
		return err
	}
	w.seal = end.seal
	w.become(t, end.now)
	if end.Reason == sandbox.Exited {
		t.Int("exit", int64(end.ExitCode))
	} else {
		t.Say("ended", end.Reason.String())
	}
	for _, out := range []struct {
		name  string
		data  []byte
		total int64
	}{{"stdout", end.Stdout, end.StdoutBytes}, {"stderr", end.Stderr, end.StderrBytes}} {
		t.Show(out.name, gym.Value{Type: typeText, Text: printable(out.data)})
		if out.total > int64(len(out.data)) {
			t.Int(out.name+"_bytes", out.total)
		}
	}
	if end.undone != "" {
		t.Say("undone", "the command left what cannot be kept ("+end.undone+"): all files are as they were before it")
	}
	return nil
}

// printable is what can be shown of any bytes.
func printable(b []byte) string { return string(bytes.ToValidUTF8(b, []byte("\uFFFD"))) }

// named returns what a path argument means: an absolute name without . and .. in it.
func named(t *gym.Turn) (string, error) {
	p, _ := t.One(argPath)
	name := p.Text
	if strings.IndexByte(name, 0) >= 0 || len(name) > treeLimits.Name || name == "" {
		return "", gym.Refuse("bad_path", "that is no path")
	}
	if name = path.Clean(name); !path.IsAbs(name) {
		name = path.Clean(home + "/" + name)
	}
	for _, root := range roots {
		if name == root || strings.HasPrefix(name, root+"/") {
			return name, nil
		}
	}
	return "", gym.Refuse("bad_path", "this tool knows what is below %s; use run for the rest", strings.Join(roots, ", "))
}

// found returns what a path argument names.
func found(t *gym.Turn) (string, *inode, error) {
	name, err := named(t)
	if err != nil {
		return "", nil, err
	}
	ino := t.World.(*world).now.at(name)
	if ino == nil {
		return "", nil, gym.Refuse("not_found", "there is no such file or directory; a link is not followed: use run")
	}
	t.Read(entity(name), fieldContent, uint32(len(t.World.(*world).changes)+1))
	return name, ino, nil
}

func readFile(t *gym.Turn) error {
	_, ino, err := found(t)
	switch {
	case err != nil:
		return err
	case !ino.mode.IsRegular():
		return gym.Refuse("not_a_file", "that is a %s", kindOf(ino))
	}
	page := int(t.IntOr(argPage, 1))
	from := (page - 1) * pageBytes
	if from > 0 && from >= len(ino.data) {
		return gym.Refuse("bad_page", "the file has %d bytes", len(ino.data))
	}
	part := ino.data[from:min(from+pageBytes, len(ino.data))]
	t.Show("text", gym.Value{Type: typeText, Text: printable(part)})
	t.Int("bytes", int64(len(ino.data)))
	t.Bool("more", from+pageBytes < len(ino.data))
	return nil
}

func writeFile(t *gym.Turn) error {
	w := t.World.(*world)
	name, err := named(t)
	if err != nil {
		return err
	}
	text, _ := t.One(argText)
	dir, old := w.now.at(path.Dir(name)), w.now.at(name)
	switch {
	case dir == nil || !dir.mode.IsDir():
		return gym.Refuse("not_found", "there is no such directory")
	case old != nil && !old.mode.IsRegular():
		return gym.Refuse("not_a_file", "that is a %s", kindOf(old))
	case old != nil && old.mode&0o200 == 0, old == nil && dir.mode&0o300 != 0o300:
		return gym.Refuse("denied", "it may not be written")
	case w.now.bytes()+int64(len(text.Text)) > treeLimits.Bytes || len(w.now.list) >= treeLimits.Entries:
		return gym.Refuse("full", "there is no room for it")
	}
	fresh := &inode{mode: 0o644, data: []byte(text.Text), mtime: lastTime}
	if old != nil {
		fresh.mode, fresh.many = old.mode, old.many
	}
	w.become(t, w.now.with(name, fresh))
	t.Int("bytes", int64(len(text.Text)))
	return nil
}

func list(t *gym.Turn) error {
	name, ino, err := found(t)
	switch {
	case err != nil:
		return err
	case !ino.mode.IsDir():
		return gym.Refuse("not_a_directory", "that is a %s", kindOf(ino))
	}
	entries := t.World.(*world).now.holds(name)
	t.List("entries")
	for _, e := range entries[:min(len(entries), mostListed)] {
		t.Open("")
		t.Show("name", gym.Value{Type: typePath, Text: printable([]byte(e.name))})
		t.Say("is", kindOf(e.ino))
		if e.ino.mode.IsRegular() {
			t.Int("bytes", int64(len(e.ino.data)))
		}
		t.End()
	}
	t.EndList()
	t.Int("total", int64(len(entries)))
	return nil
}

func kindOf(ino *inode) string {
	switch ino.mode.Type() {
	case 0:
		return "file"
	case fs.ModeDir:
		return "directory"
	case fs.ModeSymlink:
		return "link"
	case fs.ModeNamedPipe:
		return "pipe"
	}
	return "special file"
}

// finish commits whatever it is given and says nothing about it. No box is needed any more.
func finish(t *gym.Turn) error {
	drop(t.World.(*world).seal)
	t.Bool("committed", true)
	return nil
}
