package gym

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestParseCall_errors(t *testing.T) {
	p := deskPack(t, nil)
	for action, want := range map[string]string{
		"":                              "bad_call",
		"{":                             "bad_call",
		"null":                          "bad_call",
		"[]":                            "bad_call",
		`{}`:                            "bad_call",
		`{"tool":1}`:                    "bad_call",
		`{"TOOL":"list"}`:               "bad_call",
		`{"tool":"list","tool":"list"}`: "bad_call",
		`{"tool":"list","Args":{}}`:     "bad_call",
		`{"tool":"read","args":{"note":"n-0000000001","note":"n-0000000001"}}`: "bad_call",
		`{"tool":"list"}}`:                                                             "bad_call",
		`{"tool":"list"} {"tool":"list"}`:                                              "bad_call",
		`{"tool":"list","arg":{}}`:                                                     "bad_call",
		`{"tool":"list","args":[]}`:                                                    "bad_call",
		"```json\n{\"tool\":\"list\"}\n```":                                            "bad_call",
		"I am done.":                                                                   "bad_call",
		strings.Repeat(" ", MaxActionBytes) + `{"tool":"list"}`:                        "bad_call",
		`{"tool":"lits"}`:                                                              "unknown_tool",
		`{"tool":"LIST"}`:                                                              "unknown_tool",
		`{"tool":"list","args":{"x":1}}`:                                               "bad_argument",
		`{"tool":"set"}`:                                                               "missing_argument",
		`{"tool":"set","args":{"thing":"t-0000000001"}}`:                               "missing_argument",
		`{"tool":"set","args":{"thing":"t-0000000001","n":null}}`:                      "missing_argument",
		`{"tool":"set","args":{"thing":"t-0000000001","n":10}}`:                        "bad_argument",
		`{"tool":"set","args":{"thing":"t-0000000001","n":-1}}`:                        "bad_argument",
		`{"tool":"set","args":{"thing":"t-0000000001","n":1.5}}`:                       "bad_argument",
		`{"tool":"set","args":{"thing":"t-0000000001","n":"7"}}`:                       "bad_argument",
		`{"tool":"set","args":{"thing":"t-0000000001","n":1e400}}`:                     "bad_argument",
		`{"tool":"set","args":{"thing":"t-000000000A","n":7}}`:                         "bad_argument",
		`{"tool":"set","args":{"thing":"t-00000000012","n":7}}`:                        "bad_argument",
		`{"tool":"set","args":{"thing":"m-0000000001","n":7}}`:                         "bad_argument",
		`{"tool":"set","args":{"thing":["t-0000000001"],"n":7}}`:                       "bad_argument",
		`{"tool":"set","args":{"thing":1,"n":7}}`:                                      "bad_argument",
		`{"tool":"set","args":{"thing":"t-0000000001","n":7,"word":"rad"}}`:            "bad_argument",
		`{"tool":"cite","args":{"refs":[]}}`:                                           "missing_argument",
		`{"tool":"cite","args":{"refs":"it"}}`:                                         "bad_argument",
		`{"tool":"cite","args":{"refs":[["it"]]}}`:                                     "bad_argument",
		`{"tool":"cite","args":{"refs":[` + strings.Repeat(`"a",`, MaxList) + `"a"]}}`: "bad_argument",
	} {
		var c Call
		err := p.ParseCall([]byte(action), 1<<5-1, &c)
		if err == nil || err.Code != want {
			t.Errorf("%.80s: got %v, want %s", action, err, want)
		}
	}
	var c Call
	if err := p.ParseCall([]byte(list), 0, &c); err == nil || err.Code != "unknown_tool" {
		t.Errorf("a tool that is not on offer: %v", err)
	}
}

func TestParseCall_isInverseOfAppendCall(t *testing.T) {
	p := deskPack(t, nil)
	for _, action := range []string{
		`{"tool":"list","args":{}}`,
		`{"tool":"set","args":{"thing":"t-00000000ff","n":0,"word":"blue"}}`,
		`{"tool":"cite","args":{"refs":["t-0000000001","m-0000000002","a \"b\" \u003c\n é"],"more":["red","red"]}}`,
	} {
		var c Call
		if err := p.ParseCall([]byte(action), 1<<5-1, &c); err != nil {
			t.Errorf("%s: %v", action, err)
		} else if got := string(p.AppendCall(nil, &c)); got != action {
			t.Errorf("%s came back as %s", action, got)
		}
	}
}

// The allocation-free parser must agree with the whole grammar wherever it answers at all; what is accepted spells a call
// that parses to itself, and passes the same checks.
func FuzzParseCall(f *testing.F) {
	for _, s := range []string{list, set7, green, `{"tool":"cite","args":{"refs":["it","t-0000000001"],"more":["red"]}}`,
		`{"tool":"set","args":{"n":7,"thing":"t-0000000001"}}`, `{"tool":"list"}}`, `{"tool":"set","args":{"n":07,"thing":"x"}}`,
		"{\"tool\":\"finish\",\"args\":{\"word\":\"red\",\"note\":\"\\u0000\"}}", "{\"tool\":\"finish\",\"args\":{\"word\":\"red\",\"note\":\"\x00\"}}",
		`{"tool":"list","args":{"x":1,"x":2}}`, `{"tool":"set","args":{"n":-0,"thing":"t-0000000001"}}`, "{\"tool\":\"list\"}\x00"} {
		f.Add([]byte(s))
	}
	p := deskPack(f, nil)
	const all = ToolSet(1<<5 - 1)
	f.Fuzz(func(t *testing.T, action []byte) {
		var whole, fast Call
		err := p.parseJSON(action, all, &whole)
		if p.parsePlain(action, all, &fast) {
			fastErr := p.check(&fast)
			if (err == nil) != (fastErr == nil) || err != nil && err.Code != fastErr.Code {
				t.Fatalf("%q: the whole grammar says %v, the fast one %v", action, err, fastErr)
			}
			if err == nil && string(p.AppendCall(nil, &fast)) != string(p.AppendCall(nil, &whole)) {
				t.Fatalf("%q: %s and %s", action, p.AppendCall(nil, &fast), p.AppendCall(nil, &whole))
			}
		}
		if err != nil {
			return
		}
		if bad := p.check(&whole); bad != nil {
			t.Fatalf("%q was accepted, but %v", action, bad)
		}
		spelled := p.AppendCall(nil, &whole)
		var again Call
		if !json.Valid(spelled) || p.ParseCall(spelled, all, &again) != nil || string(p.AppendCall(nil, &again)) != string(spelled) {
			t.Fatalf("%q: its spelling %s does not parse to itself", action, spelled)
		}
	})
}

func TestSchema_isJSONSchemaOfTheTool(t *testing.T) {
	p := deskPack(t, nil)
	var s struct {
		Type     string
		Function struct {
			Name       string
			Parameters struct {
				Required   []string
				Properties map[string]struct {
					Type             string
					Enum             []string
					Minimum, Maximum *int
					Items            *struct{ Type string }
				}
			}
		}
	}
	if err := json.Unmarshal(p.Schema(p.Tool("set")), &s); err != nil {
		t.Fatal(err)
	}
	props := s.Function.Parameters.Properties
	if s.Type != "function" || s.Function.Name != "set" || strings.Join(s.Function.Parameters.Required, " ") != "thing n" ||
		props["n"].Type != "integer" || *props["n"].Minimum != 0 || *props["n"].Maximum != 9 || strings.Join(props["word"].Enum, " ") != "red green blue" {
		t.Errorf("the schema of set is %s", p.Schema(p.Tool("set")))
	}
}
