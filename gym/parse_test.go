package gym

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// parsePack has a parameter of every form.
var parsePack = &Pack{
	Types: []Type{
		{Name: "id", Form: FormOpaque, Prefix: "o-"},
		{Name: "other", Form: FormOpaque, Prefix: "p-"},
		{Name: "title", Form: FormText},
		{Name: "word", Form: FormEnum, Enum: []string{"red", "blue"}},
		{Name: "n", Form: FormInt},
	},
	Tools: []Tool{
		{Name: "get", Params: []Param{{Name: "id", Types: []TypeID{0, 1}}}},
		{Name: "put", Params: []Param{
			{Name: "id", Types: []TypeID{0}}, {Name: "word", Types: []TypeID{3}, Optional: true}, {Name: "n", Types: []TypeID{4}, Optional: true, Min: -5, Max: 40},
		}},
		{Name: "say", Params: []Param{{Name: "text", Types: []TypeID{2}}}},
		{Name: "all", Params: []Param{{Name: "ids", Types: []TypeID{0, 1}, List: true}, {Name: "ns", Types: []TypeID{4}, List: true, Optional: true, Max: 9}}},
		{Name: "hidden"},
	},
}

// bothParsers reads an action both ways. Where the plain one accepts, they must agree.
func bothParsers(t *testing.T, action []byte) (plain bool) {
	t.Helper()
	const offered = ToolSet(15)
	var fast, slow Call
	slow.Reset(0)
	var fastErr *ToolError
	if plain = parsePack.parsePlain(action, offered, &fast); plain {
		fastErr = parsePack.check(&fast)
	}
	slowErr := parsePack.parseJSON(action, offered, &slow)
	if !plain {
		return false
	}
	if fmt.Sprint(fastErr) != fmt.Sprint(slowErr) || fast.Tool != slow.Tool || slowErr == nil && (fast.off != slow.off || !slices.Equal(fast.vals, slow.vals)) {
		t.Fatalf("%q: plain gives %+v %v, encoding/json %+v %v", action, fast, fastErr, slow, slowErr)
	}
	return true
}

var parseSeeds = []string{
	`{"tool":"get","args":{"id":"o-0123456789"}}`,
	` { "tool" : "put" , "args" : { "n" : -5 , "word" : "blue" , "id" : "o-abcdef0123" } } `,
	`{"tool":"say","args":{"text":"a b <c> ~"}}`,
	`{"tool":"all","args":{"ids":["o-0000000000","p-ffffffffff"],"ns":[]}}`,
	`{"tool":"all","args":{"ids":[ "o-0000000000" , "o-0000000001"],"ns":[1,2, 3]}}`,
	`{"tool":"put","args":{"id":"o-abcdef0123","n":99}}`, // out of range: refused alike
	`{"tool":"get","args":{}}`,
	`{"tool":"get"}`,
}

func TestParsePlain_acceptsThePlainWay(t *testing.T) {
	for _, s := range parseSeeds {
		if !bothParsers(t, []byte(s)) {
			t.Errorf("%s is plain and was not taken", s)
		}
	}
}

func TestParsePlain_leavesTheUnusualAlone(t *testing.T) {
	for _, s := range []string{
		``, `{`, `[]`, `null`, `{"tool":"nope"}`, `{"tool":"hidden"}`, `{"Tool":"get"}`, `{"tool":"g\u0065t"}`, `{"args":{},"tool":"get"}`,
		`{"tool":"get","args":{"id":"o-0123456789"},"x":1}`, `{"tool":"get","args":{"id":"o-0123456789"}}{}`, `{"tool":"get"}x`,
		`{"tool":"get","args":{"id":"o-0123456789","id":"o-0123456789"}}`, `{"tool":"get","args":{"id":null}}`, `{"tool":"get","args":null}`,
		`{"tool":"get","args":{"id":["o-0123456789"]}}`, `{"tool":"all","args":{"ids":"o-0123456789"}}`, `{"tool":"get","args":{"id":"o-01234"}}`,
		`{"tool":"put","args":{"id":"o-abcdef0123","n":1.0}}`, `{"tool":"put","args":{"id":"o-abcdef0123","n":1e1}}`,
		`{"tool":"put","args":{"id":"o-abcdef0123","n":01}}`, `{"tool":"put","args":{"id":"o-abcdef0123","n":- 1}}`,
		`{"tool":"put","args":{"id":"o-abcdef0123","n":9999999999999999999}}`, `{"tool":"say","args":{"text":"é"}}`, "{\"tool\":\"say\",\"args\":{\"text\":\"\x00\"}}",
		`{"tool":"all","args":{"ids":[[]]}}`, `{"tool":"all","args":{"ids":["o-0000000000",]}}`, `{"tool":"get",}`, `{"tool":"get","args":{,}}`,
		`{"tool":"all","args":{"ids":[` + string(bytes.Repeat([]byte(`"o-0000000000",`), MaxList)) + `"o-0000000000"]}}`,
		`{"tool":"say","args":{"text":"` + string(bytes.Repeat([]byte("x"), MaxActionBytes)) + `"}}`,
	} {
		if bothParsers(t, []byte(s)) {
			t.Errorf("%.60q is not plain and was taken", s)
		}
	}
}

// TestParsePlain_agreesOnMutations damages plain actions in every position with every interesting byte.
func TestParsePlain_agreesOnMutations(t *testing.T) {
	taken := 0
	for _, s := range parseSeeds {
		for i := range len(s) + 1 {
			for _, c := range []byte("\"\\{}[]:, \x00-+0919eE.tonxé\xff") {
				for _, b := range [][]byte{
					slices.Concat([]byte(s[:i]), []byte{c}, []byte(s[i:])),
					slices.Concat([]byte(s[:i]), []byte{c}, []byte(s[min(i+1, len(s)):])),
					slices.Concat([]byte(s[:i]), []byte(s[min(i+1, len(s)):])),
				} {
					if bothParsers(t, b) {
						taken++
					}
				}
			}
		}
	}
	if taken < 500 {
		t.Errorf("only %d mutations were plain", taken)
	}
}

func FuzzParsePlain(f *testing.F) {
	for _, s := range parseSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, action []byte) { bothParsers(t, action) })
}

func TestParsePlain_allocatesNothing(t *testing.T) {
	action := []byte(parseSeeds[4])
	var c Call
	if n := testing.AllocsPerRun(100, func() {
		if err := parsePack.ParseCall(action, 15, &c); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestParsePlain_keepsNothingOfTheAction(t *testing.T) {
	action := []byte(parseSeeds[2])
	var c Call
	if !parsePack.parsePlain(action, 15, &c) {
		t.Fatal("not plain")
	}
	want := c.Arg(0)[0].Text
	clear(action)
	if got := c.Arg(0)[0].Text; got != "a b <c> ~" || got != want {
		t.Errorf("the argument became %q", got)
	}
}
