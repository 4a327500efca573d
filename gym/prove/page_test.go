package prove

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"provegym/gym"
)

// sample is a report with every section.
func sample(t *testing.T) Report {
	t.Helper()
	p := frozen(t, func(d *Plan) {
		d.Looks = []Look{{ID: "mid", Weight: .2, Checkpoint: "iteration 20"}, {ID: "final", Weight: .8, Checkpoint: "best on the monitor mean"}}
		d.Overall.DMin = .05
	})
	p.Made = &Made{At: "2031-05-06T07:08:09Z", Host: "somewhere"}
	mid := played(t, p, "mid", map[string]pairs{four: {10, 8, 40}, eight: {12, 9, 40}, other: {20, 11, 100}, unseen: {9, 8, 10}, easy: {14, 4, 30}})
	mid.Records = mid.Records[:len(mid.Records)-9]
	final := played(t, p, "final", map[string]pairs{four: {34, 6, 40}, eight: {25, 9, 40}, other: {22, 17, 100}, unseen: {9, 4, 10}, easy: {22, 2, 30}})
	for i := range final.Records {
		r := &final.Records[i]
		if i%97 == 5 {
			r.Outcome, r.Success = "invalid", false
		}
		if i%31 == 7 && !r.Success {
			r.Failure = "ran out of calls"
			r.Outcome = "truncated"
		}
	}
	in := Input{Plan: p, Looks: []Result{evaluated(t, p, "mid", mid), evaluated(t, p, "final", final)}}
	for i := range 9 {
		ev := played(t, p, MonitorLook, map[string]pairs{four: {i + i/3, i % 3, 8}, eight: {i, 2, 6}, other: {i, i % 2, 14}, easy: {2*i - i/4, 1, 9}})
		in.Learning = append(in.Learning, Point{Iteration: 5 * i, Episodes: 640 * i, Look: evaluated(t, p, MonitorLook, ev)})
	}
	in.Causes = []Cause{
		{"fanout=8&near_duplicates=4", "eight orders <to> update & near-duplicate names", .83, .66, .93, "active"},
		{"page_size=1", "one order a page", .71, .52, .86, "retired"},
	}
	in.Reference = []Agent{{Name: "random valid action", Passes: 1, Episodes: 400}, {Name: "priority heuristic", Passes: 96, Episodes: 400}, {Name: "never run"}}
	in.Hollow = []Hollow{{BaseArm, 222, 3}, {CheckpointArm, 250, 4}}
	in.Spent = Budget{Train: 987, Break: 200, Monitor: 2160, Sealed: 2160, Baseline: 800}
	in.Deviations = []string{"training was resumed once after a kill"}
	in.Times = &Times{Started: "2031-05-06T07:08:09Z", Host: "somewhere", Seconds: map[string]float64{"train": 301.25, "break": 41}}
	r, err := NewReport(in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPage_equalsJSON reads the page back: every number that it prints, and every mark that a chart draws, is found in the
// JSON at the path that it names, and nothing else on the page is a number.
func TestPage_equalsJSON(t *testing.T) {
	for name, r := range map[string]Report{"full": sample(t), "empty": empty(t), "invalid": invalid(t)} {
		t.Run(name, func(t *testing.T) {
			numbers, marks, wrong := readPage(t, r.HTML(), r.JSON())
			for _, w := range wrong {
				t.Error(w)
			}
			if name == "full" && (numbers < 300 || marks < 100) {
				t.Errorf("only %d numbers and %d marks were compared", numbers, marks)
			}
		})
	}
	// The reader of this test can see: another report's JSON does not fit this page.
	r := sample(t)
	page := r.HTML()
	r.Looks[1].Overall.Change.Lo += .01
	if _, _, wrong := readPage(t, page, r.JSON()); len(wrong) < 3 { // a tile, a table, the chart
		t.Errorf("a changed number in the JSON goes unnoticed: %v", wrong)
	}
	spoiled := bytes.Replace(page, []byte("Learning curve"), []byte("Learning 7 curves"), 1)
	if _, _, wrong := readPage(t, spoiled, sample(t).JSON()); len(wrong) != 1 {
		t.Errorf("a number that no path backs goes unnoticed: %v", wrong)
	}
}

func empty(t *testing.T) Report {
	r, err := NewReport(Input{Plan: frozen(t)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func invalid(t *testing.T) Report {
	p := frozen(t)
	ev := played(t, p, "final", worked)
	ev.PlanHash = "x"
	none := evaluated(t, p, MonitorLook, Evidence{PlanHash: p.Hash})
	r, err := NewReport(Input{Plan: p, Looks: []Result{evaluated(t, p, "final", ev)}, Learning: []Point{{Look: none}}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var digits = regexp.MustCompile(`[0-9]`)

// readPage compares a page with JSON. It parses the printed text itself; it does not print the JSON again.
func readPage(t *testing.T, page, data []byte) (numbers, marks int, wrong []string) {
	t.Helper()
	var doc any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	get := func(path string) any {
		v := doc
		for _, part := range strings.Split(path, ".") {
			switch at := v.(type) {
			case map[string]any:
				if _, ok := at[part]; !ok {
					wrong = append(wrong, path+" is not in the JSON")
				}
				v = at[part]
			case []any:
				i, _ := strconv.Atoi(part)
				v = at[i]
			case nil:
				return nil
			}
		}
		return v
	}
	dec := xml.NewDecoder(bytes.NewReader(page))
	dec.Strict, dec.AutoClose, dec.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var stack []xml.StartElement
	axes := map[string]string{}
	attr := func(e xml.StartElement, name string) string {
		for _, a := range e.Attr {
			if a.Name.Local == name {
				return a.Value
			}
		}
		return ""
	}
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return numbers, marks, wrong
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			e = e.Copy()
			stack = append(stack, e)
			for _, a := range e.Attr {
				if axis, ok := strings.CutPrefix(a.Name.Local, "data-axis-"); ok {
					axes[axis] = a.Value
				}
				to, ok := strings.CutPrefix(a.Name.Local, "data-path-")
				if !ok {
					continue
				}
				axis := "x"
				if strings.Contains(to, "y") {
					axis = "y"
				}
				var lo, hi, from, until, at float64
				if _, err := fmt.Sscan(axes[axis], &lo, &hi, &from, &until); err != nil {
					t.Fatalf("axis %q: %v", axes[axis], err)
				}
				fmt.Sscan(attr(e, to), &at)
				value, _ := get(a.Value).(float64)
				if drawn := lo + (at-from)/(until-from)*(hi-lo); math.Abs(drawn-value) > .006*math.Abs((hi-lo)/(until-from)) {
					wrong = append(wrong, fmt.Sprintf("%s is drawn at %v, it is %v", a.Value, drawn, value))
				}
				if at < min(from, until)-.01 || at > max(from, until)+.01 {
					wrong = append(wrong, fmt.Sprintf("%s is drawn outside its chart, at %v", a.Value, at))
				}
				marks++
			}
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			top := stack[max(0, len(stack)-1):]
			if len(top) == 0 || top[0].Name.Local == "style" {
				continue
			}
			text := string(e)
			path := attr(top[0], "data-path")
			if path == "" {
				if digits.MatchString(text) && attr(top[0], "class") != "tick" && attr(top[0], "class") != "phase" {
					wrong = append(wrong, fmt.Sprintf("%q has a number that no path backs", text))
				}
				continue
			}
			if w := differs(attr(top[0], "data-kind"), text, get(path)); w != "" {
				wrong = append(wrong, path+": "+w)
			}
			numbers++
		}
	}
}

// differs compares printed text with a JSON value, to half a unit of the last printed digit.
func differs(kind, text string, v any) string {
	number, ok := v.(float64)
	if !ok {
		want, _ := v.(string)
		if v == nil {
			want = "–"
		}
		if kind == "condition" && v != nil {
			for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '·' }) {
				if !strings.Contains(want, part) {
					return fmt.Sprintf("prints %q for %q", text, want)
				}
			}
			return ""
		}
		if text != want {
			return fmt.Sprintf("prints %q for %q", text, want)
		}
		return ""
	}
	if text == "< .001" {
		if number >= .0005 {
			return fmt.Sprintf("prints %q for %v", text, number)
		}
		return ""
	}
	bare := strings.TrimSuffix(strings.TrimPrefix(text, "+"), " %")
	printed, err := strconv.ParseFloat(bare, 64)
	if err != nil {
		return fmt.Sprintf("prints %q, no number", text)
	}
	unit := 1.0
	switch {
	case kind == "percent":
		unit = .1
	case kind == "level":
		unit = math.Abs(printed) / 100
	case strings.Contains(bare, "."):
		unit = math.Pow(10, -float64(len(bare)-strings.Index(bare, ".")-1))
	case kind == "p":
		unit = .001
	}
	scale := 1.0
	if kind == "percent" || kind == "rate" || kind == "points" || kind == "signed" {
		scale = 100
	}
	if kind == "signed" && number > .0005 && text[0] != '+' || math.Abs(printed-scale*number) > unit/2+1e-9 {
		return fmt.Sprintf("prints %q for %v", text, number)
	}
	return ""
}

func TestPage_standsAlone(t *testing.T) {
	page := string(sample(t).HTML())
	for _, outside := range []string{"http:", "https:", "//", "src=", "href=", "url(", "@import", "<script"} {
		if strings.Contains(page, outside) {
			t.Errorf("the page has %q", outside)
		}
	}
	for _, want := range []string{"No external result", "eight orders &lt;to&gt; update &amp; near-duplicate names", "Sealed looks used so far", "prefers-color-scheme: dark"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestReport_reproducible(t *testing.T) {
	a, b := sample(t), sample(t)
	b.Times = &Times{Started: "later", Seconds: map[string]float64{"train": 1}}
	if bytes.Equal(a.JSON(), b.JSON()) {
		t.Fatal("times are not in the report")
	}
	a.Times, b.Times = nil, nil
	if !bytes.Equal(a.JSON(), b.JSON()) || !bytes.Equal(a.HTML(), b.HTML()) || a.Markdown() != b.Markdown() {
		t.Error("two equal runs have different reports")
	}
	if strings.Contains(string(a.JSON()), "2031") || strings.Contains(string(a.JSON()), "somewhere") {
		t.Error("a time or a host is outside the member times")
	}
	var back Report
	if err := json.Unmarshal(a.JSON(), &back); err != nil || !bytes.Equal(back.JSON(), a.JSON()) {
		t.Errorf("read back: %v", err)
	}
}

func TestReport_words(t *testing.T) {
	for name, r := range map[string]Report{"full": sample(t), "empty": empty(t), "invalid": invalid(t)} {
		md := r.Markdown()
		for _, line := range strings.Split(md, "\n") {
			if !strings.HasPrefix(line, "|") {
				checkWords(t, line)
			}
		}
		for _, want := range append([]string{r.Headline.Label, r.Plan.Hash, r.External, "planned"}, r.Head...) {
			if !strings.Contains(md, want) {
				t.Errorf("%s: the Markdown lacks %q", name, want)
			}
		}
		for _, l := range r.Looks {
			for _, row := range append(l.Rows, l.Overall) {
				if !strings.Contains(md, row.Sentence) || !strings.Contains(string(r.HTML()), htmlEscape(row.Sentence)) {
					t.Errorf("%s: %q is not printed", name, row.Sentence)
				}
			}
		}
	}
	r := sample(t)
	if want := "at most 5 % of runs like this would contain any wrong IMPROVED or REGRESSED"; !strings.Contains(r.Head[0], want) {
		t.Errorf("head %q", r.Head[0])
	}
	text := strings.Join(r.Deviations, "\n")
	for _, want := range []string{"resumed once", "look mid: 9 planned episodes have no record"} {
		if !strings.Contains(text, want) {
			t.Errorf("deviations %q lack %q", text, want)
		}
	}
	if e := empty(t); e.Headline.Label != "NO VERDICT" || !strings.Contains(e.Deviations[0], "final was not opened") {
		t.Errorf("without a look: %+v, %v", e.Headline, e.Deviations)
	}
}

func htmlEscape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;").Replace(s)
}

func TestReport_refuses(t *testing.T) {
	p := frozen(t)
	final := evaluated(t, p, "final", played(t, p, "final", worked))
	monitor := evaluated(t, p, MonitorLook, Evidence{PlanHash: p.Hash})
	changed := p
	changed.Alpha = .1
	foreign := final
	foreign.PlanHash = "x"
	for name, row := range map[string]struct {
		in   Input
		want string
	}{
		"a changed plan":           {Input{Plan: changed}, "changed after freezing"},
		"a look twice":             {Input{Plan: p, Looks: []Result{final, final}}, "opened twice"},
		"a monitor look as sealed": {Input{Plan: p, Looks: []Result{monitor}}, "of that kind"},
		"a sealed look in a curve": {Input{Plan: p, Learning: []Point{{Look: final}}}, "of that kind"},
		"another plan's look":      {Input{Plan: p, Looks: []Result{foreign}}, "result of the plan x"},
		"iterations backwards":     {Input{Plan: p, Learning: []Point{{Iteration: 2, Look: monitor}, {Iteration: 1, Look: monitor}}}, "does not come after"},
		"more passes than played":  {Input{Plan: p, Reference: []Agent{{Name: "r", Passes: 2, Episodes: 1}}}, "2 passes in 1"},
		"a rate that is no number": {Input{Plan: p, Causes: []Cause{{Name: "c", Q: math.NaN(), Hi: 1}}}, "rate NaN"},
		"more hollow than passed":  {Input{Plan: p, Hollow: []Hollow{{"base", 1, 2}}}, "2 of 1 passes"},
		"an endless phase":         {Input{Plan: p, Times: &Times{Seconds: map[string]float64{"x": math.Inf(1)}}}, "finite"},
	} {
		if _, err := NewReport(row.in); err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), gym.ErrBadInput.Error()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPage_write writes the sample reports; into the folder that PROVE_SAMPLE names, if it does, for a look at them.
func TestPage_write(t *testing.T) {
	dir := os.Getenv("PROVE_SAMPLE")
	if dir == "" {
		dir = t.TempDir()
	}
	for name, r := range map[string]Report{"full": sample(t), "empty": empty(t), "invalid": invalid(t)} {
		for ext, b := range map[string][]byte{"html": r.HTML(), "json": r.JSON(), "md": []byte(r.Markdown())} {
			if len(b) == 0 {
				t.Errorf("%s.%s is empty", name, ext)
			}
			if err := os.WriteFile(dir+"/"+name+"."+ext, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
