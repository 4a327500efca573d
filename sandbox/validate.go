package sandbox

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
)

// Validate lists everything that is wrong with the spec at once, or returns nil. Errors wrap ErrInvalid.
func (s Spec) Validate() error {
	var p problems
	d := s.withDefaults()
	p.duration("WallTimeout", d.WallTimeout, MaxWallTimeout)
	p.duration("CPUTime", d.CPUTime, MaxWallTimeout)
	p.number("CPUMilli", int64(d.CPUMilli), 10, 1<<20)
	p.number("MemoryBytes", d.MemoryBytes, MinMemoryBytes, MaxBytes)
	p.number("PidsMax", int64(d.PidsMax), 1, MaxPids)
	p.number("DiskBytes", d.DiskBytes, 4096, MaxBytes)
	p.number("DiskFiles", int64(d.DiskFiles), 8, MaxDiskFiles)
	p.number("OpenFiles", int64(d.OpenFiles), 8, MaxOpenFiles)
	p.number("OutputBytes", d.OutputBytes, 1, MaxOutputBytes)
	p.number("OutputMaxBytes", d.OutputMaxBytes, d.OutputBytes, 1<<40)
	return p.err("spec")
}

// Validate lists everything that is wrong with the command for a box of this spec, or returns nil. Errors wrap ErrInvalid.
func (c Command) Validate(s Spec) error {
	var p problems
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		p.add("Argv is empty: give the program first")
	}
	total := len(c.Dir)
	for _, list := range [][]string{c.Argv, c.Env} {
		for i, text := range list {
			total += len(text) + 1
			if strings.IndexByte(text, 0) >= 0 {
				p.add("string %d (%.40q) holds a NUL byte", i, text)
			}
		}
	}
	for _, v := range c.Env {
		if i := strings.IndexByte(v, '='); i < 1 {
			p.add("Env entry %.40q is not NAME=value", v)
		}
	}
	if strings.IndexByte(c.Dir, 0) >= 0 {
		p.add("Dir holds a NUL byte")
	} else if c.Dir != "" && !path.IsAbs(c.Dir) {
		p.add("Dir %.80q is not absolute", c.Dir)
	}
	if total > MaxCommandBytes {
		p.add("arguments and environment take %d bytes, the most is %d: pass more by Stdin or WriteFile", total, MaxCommandBytes)
	}
	if n := len(c.Argv) + len(c.Env); n > MaxStrings {
		p.add("there are %d arguments and variables, the most is %d", n, MaxStrings)
	}
	if most := s.withDefaults().WallTimeout; c.WallTimeout < 0 || c.WallTimeout > most {
		p.add("WallTimeout is %v; of this box it is at most %v", c.WallTimeout, most)
	}
	return p.err("command")
}

// ErrInvalid is wrapped by errors about what the caller passed.
var ErrInvalid = errors.New("invalid")

type problems []string

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

func (p *problems) number(name string, v, least, most int64) {
	if v < least || v > most {
		p.add("%s is %d; it must be 0 (the default) or %d to %d", name, v, least, most)
	}
}

func (p *problems) duration(name string, v, most time.Duration) {
	if v < time.Millisecond || v > most {
		p.add("%s is %v; it must be 0 (the default) or 1ms to %v", name, v, most)
	}
}

func (p problems) err(what string) error {
	if len(p) == 0 {
		return nil
	}
	return fmt.Errorf("sandbox: %w %s: %s", ErrInvalid, what, strings.Join(p, "; "))
}
