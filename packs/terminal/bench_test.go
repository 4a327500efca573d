package terminal

import (
	"fmt"
	"testing"

	"provegym/gym"
)

func BenchmarkCommand(b *testing.B) {
	for _, level := range []int{1, 3} {
		c, err := Pack.Condition("purge")
		if err == nil {
			c, err = c.With("files", level)
		}
		if err != nil {
			b.Fatal(err)
		}
		built, err := build(gym.Task{Condition: c, Seed: 1})
		if err != nil {
			b.Fatal(err)
		}
		w := built.World.(*world)
		name := fmt.Sprintf("files=%d", len(w.now.list))
		b.Run(name+"/build", func(b *testing.B) {
			for i := range b.N {
				if _, err := build(gym.Task{Condition: c, Seed: uint64(i)}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/fresh", func(b *testing.B) {
			for range b.N {
				r, err := execute(&world{now: w.now}, ":")
				if err != nil || !r.OK() {
					b.Fatal(err, r)
				}
				drop(r.seal)
			}
		})
		b.Run(name+"/same", func(b *testing.B) {
			at := &world{now: w.now}
			for range b.N {
				r, err := execute(at, ":")
				if err != nil || !r.OK() {
					b.Fatal(err, r)
				}
				at.now, at.seal = r.now, r.seal
			}
			drop(at.seal)
		})
	}
}
