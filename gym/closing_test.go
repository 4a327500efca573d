package gym

import (
	"hash/crc32"
	"reflect"
	"testing"
	"unsafe"
)

// late is a LateRecorder that computes ends when it is told to.
type late struct {
	LateRecorder
	open []*Closing
}

func (l *late) Begin(EpisodeStart) uint64                     { return 1 }
func (l *late) Segment(_ uint64, _, _ int, raw []byte) []byte { return raw[:0] }
func (l *late) EndLater(_ uint64, c *Closing)                 { l.open = append(l.open, c) }
func (l *late) ends(t *testing.T, n int) (out []EpisodeEnd) {
	t.Helper()
	for _, c := range l.open[:n] {
		e, err := c.End()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	l.open = l.open[n:]
	return out
}

// chest is a world of another type than the desk's.
type chest struct{ desk }

func (c *chest) Clone() World       { return &chest{*c.desk.Clone().(*desk)} }
func (c *chest) CopyFrom(src World) { c.desk.CopyFrom(&src.(*chest).desk) }

// One place runs episodes of two packs, and the recorder is behind by none to four of them: every end is what it would have been
// at once, whatever memory the later episodes began in.
func TestClosing_whateverTheDelay(t *testing.T) {
	plain := deskPack(t, nil)
	other := deskPack(t, func(p *Pack) {
		p.Name = "chest"
		build := p.Build
		p.Build = func(task Task) (*Built, error) {
			b, err := build(task)
			b.World = &chest{*b.World.(*desk)}
			b.Check.Goals = []Predicate{{"never", func(*Evidence) bool { return false }}}
			return b, err
		}
	})
	for delay := range 5 {
		rec := &late{}
		ep := &Episode{}
		var want, got []EpisodeEnd
		for i := range uint64(40) {
			p := plain
			if i%3 == 0 {
				p = other
			}
			if err := ep.Start(deskTask(t, p, i), Options{Recorder: rec}); err != nil {
				t.Fatal(err)
			}
			if p == plain {
				say(t, ep, list, set7)
			}
			say(t, ep, green)
			want = append(want, ep.EndRecord())
			if len(rec.open) > delay {
				got = append(got, rec.ends(t, len(rec.open)-delay)...)
			}
		}
		got = append(got, rec.ends(t, len(rec.open))...)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("with a delay of %d the ends differ:\n got %v\nwant %v", delay, got, want)
		}
	}
}

func TestObsCRC_coversWhatChanged(t *testing.T) {
	ep := start(t, deskPack(t, nil), Structured)
	sum := func(from uintptr) uint32 {
		o := *ep.Obs()
		return crc32.Checksum(unsafe.Slice((*byte)(unsafe.Pointer(&o)), unsafe.Sizeof(o))[from:], crc32.MakeTable(crc32.Castagnoli))
	}
	if ep.ObsCRC() != sum(0) {
		t.Error("before the first call it is not of all arrays")
	}
	for _, c := range []struct {
		tool string
		from uintptr
	}{{"list", 0}, {"set", unsafe.Offsetof(StructuredObs{}.Phase)}} {
		if err := ep.StepAction(ep.Pack().Tool(c.tool) + 1); err != nil {
			t.Fatal(err)
		}
		if ep.ObsCRC() != sum(c.from) {
			t.Errorf("after %s it is not of the bytes from %d on", c.tool, c.from)
		}
	}
}
