package vector

import (
	"runtime"
	"testing"
)

// A helper that has counted itself out of a batch and was held up there wakes the caller of the next one, who must not take it for
// the end of that.
func TestPool_staleWakeUp(t *testing.T) {
	p := newPool(1)
	p.active.Store(1) // a helper of this batch
	returned := make(chan struct{})
	go func() {
		p.wait()
		close(returned)
	}()
	wakes := func() {
		for !p.waiting.CompareAndSwap(true, false) {
			runtime.Gosched()
		}
		p.idle <- struct{}{}
	}
	wakes() // the late one
	for !p.waiting.Load() {
		select {
		case <-returned:
			t.Fatal("returned with a helper inside the batch")
		default:
			runtime.Gosched()
		}
	}
	p.active.Store(0)
	wakes()
	<-returned
}
