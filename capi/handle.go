package main

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"provegym/gym/vector"
)

// object is what a handle stands for.
type object interface {
	// kind names it in errors: "a vector".
	kind() string
	// close ends it. With vector.ErrState it is in use and stays open; any other error says what was lost on the way.
	close() error
}

const maxHandles = 1 << 14

// place of a handle: the slot's number plus one, below its generation. A closed handle keeps an old generation and so can
// never name what took its slot.
type handleSlot struct {
	mu  sync.Mutex // held by the thread inside the handle
	gen atomic.Uint32
	obj object
}

var handles = struct {
	slots [maxHandles]handleSlot
	sync.Mutex
	free []uint32
	used uint32
}{}

// open gives o a handle.
func open(o object) (uint64, error) {
	handles.Lock()
	defer handles.Unlock()
	var i uint32
	switch {
	case len(handles.free) > 0:
		i = handles.free[len(handles.free)-1]
		handles.free = handles.free[:len(handles.free)-1]
	case handles.used < maxHandles:
		i = handles.used
		handles.used++
	default:
		return 0, badInput("%d handles are open: close some", maxHandles)
	}
	s := &handles.slots[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.obj = o
	return uint64(s.gen.Add(1))<<32 | uint64(i+1), nil
}

func slotOf(h uint64) (*handleSlot, error) {
	i := uint32(h) - 1 // 0 wraps to a number beyond every slot
	if i >= maxHandles || handles.slots[i].gen.Load() != uint32(h>>32) || h>>32 == 0 {
		return nil, fmt.Errorf("%w: %d; it was closed, or never open", errHandle, h)
	}
	return &handles.slots[i], nil
}

// enter returns the T behind a handle, locked; leave unlocks it.
func enter[T object](h uint64) (o T, s *handleSlot, err error) {
	s, err = slotOf(h)
	if err != nil {
		return o, nil, err
	}
	if !s.mu.TryLock() {
		return o, nil, fmt.Errorf("%w: use one thread a handle at a time", errBusy)
	}
	if _, err = slotOf(h); err != nil || s.obj == nil {
		s.mu.Unlock()
		return o, nil, fmt.Errorf("%w: %d; it was closed", errHandle, h)
	}
	o, ok := s.obj.(T)
	if !ok {
		what := s.obj.kind()
		s.mu.Unlock()
		return o, nil, badInput("handle %d is %s, and this needs %s", h, what, o.kind())
	}
	return o, s, nil
}

func (s *handleSlot) leave() { s.mu.Unlock() }

// closeHandle waits for the thread inside, then closes the object.
func closeHandle(h uint64, check func(object) error) error {
	s, err := slotOf(h)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err = slotOf(h); err != nil || s.obj == nil {
		return fmt.Errorf("%w: %d; it was closed", errHandle, h)
	}
	if err := check(s.obj); err != nil {
		return err
	}
	err = s.obj.close()
	if errors.Is(err, vector.ErrState) {
		return err
	}
	s.obj = nil
	s.gen.Add(1)
	handles.Lock()
	defer handles.Unlock()
	handles.free = append(handles.free, uint32(h)-1)
	return err
}
