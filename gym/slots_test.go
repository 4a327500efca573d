package gym

import (
	"slices"
	"strings"
	"testing"
)

// Every chain of actions that the mask allows gives a call that the checks accept; every other action is refused, costs one
// call and changes nothing else. The tree of chains is walked whole up to a depth, from a table with values of each kind.
func TestMask_isExact(t *testing.T) {
	p := deskPack(t, func(p *Pack) {
		p.Limits = func(Condition) Limits { l := Limits{Calls: 1 << 20, Wall: 1 << 40, Bytes: 1 << 30}; return l }
	})
	ep := start(t, p, Structured)
	set := p.NewCall("set", map[string][]Value{"thing": {thingID(1)}, "n": {{Type: tNumber, Bits: 3}}})
	for _, c := range []Call{{Tool: p.Tool("list")}, set} {
		if err := ep.StepCall(&c); err != nil {
			t.Fatal(err)
		}
	}
	const depth = 5
	refused := 0
	chains := map[string]bool{}
	var walk func(level int)
	walk = func(level int) {
		var here Snapshot
		if err := ep.Snapshot(&here); err != nil {
			t.Fatal(err)
		}
		mask := ep.Obs().Mask
		if !slices.Contains(mask[:], 1) {
			t.Fatalf("the mask is empty in phase %v", ep.Obs().Phase)
		}
		world := DigestWorld(ep.world)
		for a := -1; a <= Actions; a++ {
			calls := ep.Calls()
			if err := ep.StepAction(a); err != nil {
				t.Fatal(err)
			}
			legal := a >= 0 && a < Actions && mask[a] == 1
			made := ep.Calls() - calls
			switch {
			case legal && made == 0 && level < depth:
				walk(level + 1)
			case legal && made == 1:
				rec := ep.log.At(ep.log.Len() - 1)
				chains[string(p.AppendCall(nil, &rec.Call))] = true
				if bad := p.check(&rec.Call); bad != nil || slices.Contains([]string{"illegal_action", "missing_argument", "bad_argument"}, rec.Err) {
					t.Errorf("a legal chain gave the call %s: %v, %s", p.AppendCall(nil, &rec.Call), bad, rec.Err)
				}
			case !legal:
				refused++
				rec := ep.log.At(ep.log.Len() - 1)
				if made != 1 || rec.Err != "illegal_action" || DigestWorld(ep.world) != world || ep.Obs().Phase != ([PhaseLen]int32{}) {
					t.Errorf("action %d in phase %v: %d calls, error %q", a, here.slots.obs.Phase, made, rec.Err)
				}
			}
			if err := ep.Restore(&here, Options{View: Structured}); err != nil {
				t.Fatal(err)
			}
		}
	}
	walk(0)
	if refused < 5000 {
		t.Errorf("only %d refusals were tried", refused)
	}
	// Nothing legal is left out: set takes 5 things, 10 numbers, and 3 words or none; finish 3 words, and the one name or none.
	for tool, want := range map[string]int{"set": 5 * 10 * 4, "finish": 3 * 2, "list": 1, "hook": 1} {
		got := 0
		for c := range chains {
			if strings.HasPrefix(c, `{"tool":"`+tool+`"`) {
				got++
			}
		}
		if got != want {
			t.Errorf("%d different calls of %s can be chosen, want %d", got, tool, want)
		}
	}
}

// A tool is on offer only while each of its required arguments has a value on the table.
func TestMask_toolsWithoutValuesAreOff(t *testing.T) {
	p := deskPack(t, nil)
	ep := start(t, p, Structured)
	set := p.Tool("set") + 1
	if ep.Obs().Mask[set] != 0 || ep.Obs().Tools[set-1][5] != 0 {
		t.Error("set is on offer before any thing was seen")
	}
	if err := ep.StepCall(&Call{Tool: p.Tool("list")}); err != nil {
		t.Fatal(err)
	}
	if ep.Obs().Mask[set] != 1 || ep.Obs().Tools[set-1][5] != 1 {
		t.Error("set is off although things were seen")
	}
}

// The table evicts what was shown or used least recently, never a goal parameter, and the same way every time. The model is a
// list in order of use.
func TestSlots_againstModel(t *testing.T) {
	p := deskPack(t, nil)
	b := &Built{Tools: 1<<5 - 1}
	for i := range 3 {
		b.Pins = append(b.Pins, Pin{"pin", Value{Type: tMark, Bits: uint64(1000 + i)}})
	}
	var tab slotTable
	tab.reset(p, b)
	var order []Value // least recent first, pins left out
	s := NewKey(1, "slots").Stream()
	for step := range 5000 {
		v := Value{Type: tThing, Bits: uint64(s.IntN(150))}
		i := tab.see(v, int32(step))
		if k := slices.Index(order, v); k >= 0 {
			order = slices.Delete(order, k, k+1)
		} else if len(order) == Slots-len(b.Pins) {
			order = order[1:]
		}
		order = append(order, v)
		if tab.val[i] != v {
			t.Fatalf("step %d: slot %d holds another value", step, i)
		}
		for k, pin := range b.Pins {
			if tab.val[k] != pin.Value {
				t.Fatalf("step %d: pin %d was evicted", step, k)
			}
		}
		if tab.used != len(order)+len(b.Pins) {
			t.Fatalf("step %d: %d slots in use, want %d", step, tab.used, len(order)+len(b.Pins))
		}
		for _, w := range order {
			if tab.find(w) < 0 {
				t.Fatalf("step %d: a value used lately was evicted", step)
			}
		}
	}
}

// A record that shows more values than the table holds loses its own slot; what it shows then must not be ascribed to the slot's next value.
func TestSlots_recordOutlivesItsSlot(t *testing.T) {
	p := deskPack(t, hook(func(t *Turn) error {
		t.Record("thing", thingID(0))
		for i := range Slots + 2 {
			t.Show("mark", Value{Type: tMark, Bits: uint64(i)})
		}
		t.Show("n", Value{Type: tNumber, Bits: 5})
		t.End()
		return nil
	}))
	ep := start(t, p, Structured)
	if err := ep.StepCall(&Call{Tool: p.Tool("hook")}); err != nil {
		t.Fatal(err)
	}
	for i, row := range ep.Obs().Slots {
		if o := int(row[slotOwner]); o != 0 && ep.SlotValue(o-1) != thingID(0) {
			t.Errorf("slot %d says that %s, which is no record, has shown it", i, p.Spell(ep.SlotValue(o-1)))
		}
	}
}

// What the structured observation says of a result: the record's attributes, its owner, what was glanced at, the budget.
func TestObs_describesTheResult(t *testing.T) {
	p := deskPack(t, nil)
	ep := start(t, p, Structured)
	obs := ep.Obs()
	if obs.Slots[0][slotRole] != 1 || obs.Slots[0][slotType] != float32(tName)+1 || obs.Budget != [BudgetLn]float32{20, 0, 20, 0} {
		t.Errorf("at the start: slot 0 is %v, budget %v", obs.Slots[0], obs.Budget)
	}
	set := p.NewCall("set", map[string][]Value{"thing": {thingID(0)}, "n": {{Type: tNumber, Bits: 7}}})
	for _, c := range []Call{{Tool: p.Tool("list")}, set, {Tool: p.Tool("list")}} {
		if err := ep.StepCall(&c); err != nil {
			t.Fatal(err)
		}
	}
	i := ep.slots.find(thingID(0))
	row := obs.Slots[i]
	if row[slotAttr] != 7 || row[slotAge] != 0 || row[slotTurn] != 1 || row[slotType] != float32(tThing)+1 {
		t.Errorf("the thing's row is %v", row)
	}
	if obs.Last[0] != 1 || obs.Last[2] != float32(p.Tool("list")+1) || obs.Last[4] != deskThings {
		t.Errorf("the last result is %v", obs.Last)
	}
	if obs.Budget != [BudgetLn]float32{17, 3, 20, 3} || obs.Tools[p.Tool("list")][4] != 2 {
		t.Errorf("budget %v, list used %v times", obs.Budget, obs.Tools[p.Tool("list")][4])
	}
}
