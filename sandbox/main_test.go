package sandbox

import (
	"context"
	"testing"
)

func TestFirst(t *testing.T) {
	s, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	t.Log(s.Capabilities())
	b, err := s.NewBox(Spec{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Ready(); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][]string{{"id"}, {"sh", "-c", "ls -la / /work /tmp /dev /proc; cat /proc/mounts; pwd; echo hi > x; awk 'BEGIN{print 1}'; python3 -c 'print(2)'"}, {"cat", "x"}, {"nope"}} {
		r, err := b.Exec(context.Background(), Command{Argv: c})
		t.Logf("%v %v\n%s%s", &r, err, r.Stdout, r.Stderr)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}
