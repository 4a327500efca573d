package prove

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"strconv"
	"strings"
)

//go:embed page.tmpl
var pageText string

// HTML returns the report as one page that needs nothing beside it.
//
// Every number and name on it is taken from the report's JSON by path, and carries that path (data-path, data-kind); every
// mark of a chart carries the paths of its coordinates (data-path-cx, …). A test reads the page back and compares.
func (r Report) HTML() []byte {
	var doc any
	dec := json.NewDecoder(bytes.NewReader(r.JSON()))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		panic(err) // what JSON has just written
	}
	t := template.Must(template.New("page").Funcs(template.FuncMap{
		"path": path,
		"show": func(kind string, parts ...any) template.HTML { return show(doc, kind, path(parts...)) },
		"text": func(kind string, parts ...any) string { return spell(kind, lookup(doc, path(parts...))) },
		"tone": tone, "sign": sign, "forest": newForest, "learning": newLearning, "add": func(a, b int) int { return a + b }, "latestFirst": latestFirst,
	}).Parse(pageText))
	var b bytes.Buffer
	if err := t.Execute(&b, r); err != nil {
		panic(err) // the template is ours and every path in it is of the report
	}
	return b.Bytes()
}

// latestFirst counts from n-1 down to 0.
func latestFirst(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = n - 1 - i
	}
	return out
}

// path joins the members and indices that lead to a value in the JSON.
func path(parts ...any) string {
	s := make([]string, len(parts))
	for i, p := range parts {
		s[i] = fmt.Sprint(p)
	}
	return strings.Join(s, ".")
}

// lookup returns the value at a path of decoded JSON. It panics where there is none.
func lookup(doc any, path string) any {
	for _, part := range strings.Split(path, ".") {
		switch v := doc.(type) {
		case nil:
			return nil // a member of something that no pair backs
		case map[string]any:
			member, ok := v[part]
			if !ok {
				panic("prove: the report has no " + path)
			}
			doc = member
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(v) {
				panic("prove: the report has no " + path)
			}
			doc = v[i]
		default:
			panic("prove: the report has no " + path)
		}
	}
	return doc
}

func show(doc any, kind, path string) template.HTML {
	return template.HTML(fmt.Sprintf(`<span data-path="%s" data-kind="%s">%s</span>`, template.HTMLEscapeString(path), kind,
		template.HTMLEscapeString(spell(kind, lookup(doc, path)))))
}

// nothing stands where no data backs a number.
const nothing = "–"

// spell writes a JSON value the way that its kind is printed.
func spell(kind string, v any) string {
	switch v := v.(type) {
	case nil:
		return nothing
	case string:
		if kind == "condition" {
			return shortCondition(v)
		}
		return v
	case json.Number:
		if kind == "int" {
			return v.String()
		}
		f, err := v.Float64()
		if err != nil {
			panic(err)
		}
		return spellers[kind](f)
	}
	panic(fmt.Sprintf("prove: %v is neither text nor number", v))
}

var spellers = map[string]func(float64) string{
	"points": points, "signed": signed, "percent": percent, "rate": rate, "p": pvalue, "plain": trim,
	"level": func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) },
	"time":  func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) },
}

// shortCondition leaves out the pack, which a plan has only one of.
func shortCondition(id string) string {
	_, rest, ok := strings.Cut(id, "/")
	if !ok {
		return id
	}
	return strings.NewReplacer("?", "  ·  ", "&", "  ·  ", "=", " ").Replace(rest)
}

// tone is the colour of a verdict; sign says the same without colour.
func tone(label string) string {
	switch word, _, _ := strings.Cut(label, "("); Word(word) {
	case Improved:
		return "good"
	case Regressed, Invalid:
		return "bad"
	case UnchangedWithin, NoSignificantChange:
		return "calm"
	case Inconclusive:
		return "open"
	}
	return "none"
}

func sign(label string) string {
	return map[string]string{"good": "▲", "bad": "▼", "calm": "=", "open": "?", "none": "·"}[tone(label)]
}
