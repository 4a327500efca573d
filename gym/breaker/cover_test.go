package breaker

import "testing"

func TestCover_everyAllowedPair(t *testing.T) {
	key := root(t)
	held := func(c Cell) bool { return c[0] == 2 && c[1] == 3 || c[3] == 1 && c[4] == 1 }
	for _, c := range []struct {
		name     string
		excluded func(Cell) bool
		most     int
	}{{"nothing is excluded", nil, 38}, {"two pairs are excluded", held, 42}} {
		s := dialSpace()
		s.Excluded = c.excluded
		rows := cover(s, key)
		if len(rows) > c.most {
			t.Errorf("%s: %d rows, want at most %d", c.name, len(rows), c.most)
		}
		for a := range s.Factors {
			for b := a + 1; b < len(s.Factors); b++ {
				for la := range s.Factors[a].Levels {
					for lb := range s.Factors[b].Levels {
						n := 0
						for _, r := range rows {
							if int(r[a]) == la && int(r[b]) == lb {
								n++
							}
						}
						impossible := c.excluded != nil && (a == 0 && b == 1 && la == 2 && lb == 3 || a == 3 && b == 4 && la == 1 && lb == 1)
						if (n == 0) != impossible {
							t.Errorf("%s: pair %s=%d %s=%d stands in %d rows", c.name, s.Factors[a].Name, la, s.Factors[b].Name, lb, n)
						}
					}
				}
			}
		}
		for _, r := range rows {
			if !s.Allows(r) {
				t.Errorf("%s: row %v is excluded", c.name, r)
			}
		}
	}
}

func TestSpace_drawIsUniform(t *testing.T) {
	key := root(t)
	s := Space{Factors: []Factor{{Name: "a", Levels: []string{"0", "1", "2"}}, {Name: "b", Levels: []string{"0", "1", "2"}}}}
	s.Excluded = func(c Cell) bool { return c[0] == c[1] }
	n := map[string]int{}
	for i := range uint64(6000) {
		rng := key.At(i).Stream()
		c, ok := s.Draw(&rng, s.Open(), nil)
		if !ok {
			t.Fatal("no cell drawn")
		}
		n[s.ID(c)]++
	}
	if len(n) != 6 {
		t.Errorf("drew %d cells, want 6", len(n))
	}
	for id, k := range n {
		if k < 850 || k > 1150 { // 5 standard deviations of 29
			t.Errorf("%s was drawn %d times of 6,000", id, k)
		}
	}
	rng := key.Stream()
	if _, ok := s.Draw(&rng, Pattern{1, 1}, nil); ok {
		t.Error("drew an excluded cell")
	}
	last := func(c Cell) bool { return !(c[0] == 2 && c[1] == 1) }
	if c, ok := s.Draw(&rng, s.Open(), last); !ok || s.ID(c) != "a=2,b=1" {
		t.Errorf("the only cell left was not found: %v", c)
	}
}

func TestSpace_validateListsAll(t *testing.T) {
	bad := Space{Factors: []Factor{{Name: "a", Levels: []string{"0"}, Nominal: 1}, {Name: "a", Levels: make([]string, 9)}, {Name: "f", Nominal: Free}, {Name: "g", Levels: []string{"x"}, Nominal: Free}}}
	err := bad.Validate()
	if err == nil {
		t.Fatal("a bad space is valid")
	}
	if n := len(err.(interface{ Unwrap() []error }).Unwrap()); n != 5 {
		t.Errorf("%d complaints, want 5:\n%v", n, err)
	}
}
