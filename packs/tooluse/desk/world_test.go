package desk

import (
	"testing"

	"provegym/gym"
)

func keys(seed uint64) Keys {
	s := gym.NewKey(seed, "desk test").Stream()
	return NewKeys(&s)
}

// TestEveryTableIsState: a change of any table changes the digest, and CopyFrom takes it back.
func TestEveryTableIsState(t *testing.T) {
	w := New(keys(1))
	changes := map[string]func(w *World){
		"keys":      func(w *World) { w.Keys = keys(2) },
		"customers": func(w *World) { w.Customers.Append(Customer{ID: 1}) },
		"addresses": func(w *World) { w.Addresses.Append(Address{ID: 1}) },
		"orders":    func(w *World) { w.Orders.Append(Order{ID: 1}) },
		"lines":     func(w *World) { w.Lines.Append(Line{ID: 1}) },
		"products":  func(w *World) { w.Products.Append(Product{ID: 1}) },
		"variants":  func(w *World) { w.Variants.Append(Variant{ID: 1}) },
		"policies":  func(w *World) { w.Policies.Append(Policy{ID: 1}) },
		"grants":    func(w *World) { w.Grants.Append(Grant{ID: 1}) },
		"holds":     func(w *World) { w.Holds.Append(Hold{ID: 1}) },
		"tickets":   func(w *World) { w.Tickets.Append(Ticket{ID: 1}) },
	}
	for name, change := range changes {
		c := w.Clone().(*World)
		change(c)
		if gym.DigestWorld(c) == gym.DigestWorld(w) {
			t.Errorf("%s: a change does not show in the digest", name)
		}
		if gym.DigestWorld(c.Clone()) != gym.DigestWorld(c) {
			t.Errorf("%s: a change is lost in a clone", name)
		}
		if c.CopyFrom(w); gym.DigestWorld(c) != gym.DigestWorld(w) {
			t.Errorf("%s: a change survives CopyFrom", name)
		}
	}
}

// TestIDs: ids of one episode are all different and look nothing like those of another; a quote can be read back, and only
// while its order stands as it did.
func TestIDs(t *testing.T) {
	a, b := keys(1), keys(2)
	seen := map[uint64]bool{}
	same := 0
	for kind := KindCustomer; kind <= KindTicket; kind++ {
		for block := Base; block <= Runtime; block++ {
			for i := range 200 {
				id := a.ID(kind, block, i)
				if seen[id] || id >= 1<<40 {
					t.Fatalf("kind %d, block %d, entity %d has the id %x", kind, block, i, id)
				}
				seen[id] = true
				if a.open(id) != uint64(kind)<<36|uint64(block)<<32|uint64(i) {
					t.Fatalf("%x does not open", id)
				}
				if id == b.ID(kind, block, i) {
					same++
				}
			}
		}
	}
	if same > 1 {
		t.Errorf("two episodes share %d ids", same)
	}
	w := New(a)
	w.Orders.Append(Order{})
	q := w.Quote(0, 3, 40)
	if order, lines, until, ok := w.OpenQuote(q); order != 0 || lines != 3 || until != 40 || !ok {
		t.Errorf("the quote reads %d %d %d %v", order, lines, until, ok)
	}
	rev := w.OrderRev(0)
	w.Orders.Edit(0)
	if _, _, _, ok := w.OpenQuote(q); ok {
		t.Error("the quote outlives a change of its order")
	}
	if w.OrderRev(0) == rev {
		t.Error("the rev outlives a change of its order")
	}
}
