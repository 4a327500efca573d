package prove

import (
	"fmt"
	"math"
	"strings"
)

// axis maps values to pixels.
type axis struct{ Lo, Hi, From, To float64 }

func (a axis) at(v float64) float64 {
	return math.Round(100*(a.From+(v-a.Lo)/(a.Hi-a.Lo)*(a.To-a.From))) / 100
}

// String is how a chart tells its scale: lo hi from to.
func (a axis) String() string {
	return fmt.Sprintf("%s %s %s %s", trim(a.Lo), trim(a.Hi), trim(a.From), trim(a.To))
}

// tick is a label on an axis.
type tick struct {
	At    float64
	Label string
}

// ticks spells every step from lo to hi.
func (a axis) ticks(step float64, spell func(float64) string) []tick {
	var out []tick
	for k := math.Ceil(a.Lo/step - 1e-9); k*step <= a.Hi+1e-9; k++ {
		out = append(out, tick{a.at(k * step), spell(k*step + 0)}) // + 0: no "-0"
	}
	return out
}

// forest is the chart of one look's changes: a row a condition, the pooled one last.
type forest struct {
	Width, Height, Zero, Bottom float64
	X                           axis
	Ticks                       []tick
	Rows                        []forestRow
}

type forestRow struct {
	Path              string // of the row in the report
	LabelPath         string // of its verdict, or of its family where it has none
	Y, LabelY         float64
	Tone              string
	HasData, Pooled   bool
	Lo, Value, Hi     float64 // pixels
	BlindLo, BlindHi  float64 // changes in here would probably be missed
	BlindWidth, BandY float64
}

const forestRowHeight = 46.0

func newForest(r Report, look int) forest {
	l := r.Looks[look]
	rows := append(append([]Row{}, l.Rows...), l.Overall)
	reach := .1
	for i := range rows {
		if rows[i].Change != nil {
			reach = max(reach, -rows[i].Change.Lo, rows[i].Change.Hi)
		}
		if rows[i].MDE != nil {
			reach = max(reach, *rows[i].MDE)
		}
	}
	step := .05
	for _, s := range []float64{.1, .25, .5} {
		if reach > 4*step {
			step = s
		}
	}
	reach = min(1, step*math.Ceil(reach/step-1e-9))
	f := forest{Width: 720, X: axis{-reach, reach, 40, 680}}
	f.Zero, f.Bottom = f.X.at(0), 16+forestRowHeight*float64(len(rows))
	f.Height = f.Bottom + 42
	f.Ticks = f.X.ticks(step, func(v float64) string { return strings.TrimSuffix(signed(v), ".0") })
	for i := range rows {
		row := &rows[i]
		y := 16 + forestRowHeight*float64(i)
		fr := forestRow{Path: path("looks", look, "rows", i), Y: y + 32, LabelY: y + 15, BandY: y + 22, Tone: tone(row.Label()),
			BlindLo: f.X.From, BlindHi: f.X.To}
		if i == len(l.Rows) {
			fr.Path, fr.Pooled = path("looks", look, "overall"), true
		}
		if row.Change != nil {
			fr.HasData = true
			fr.Lo, fr.Value, fr.Hi = f.X.at(row.Change.Lo), f.X.at(row.Change.Value), f.X.at(row.Change.Hi)
		}
		if row.MDE != nil {
			fr.BlindLo, fr.BlindHi = f.X.at(-*row.MDE), f.X.at(*row.MDE)
		}
		fr.BlindWidth = fr.BlindHi - fr.BlindLo
		fr.LabelPath = fr.Path + ".verdict.label"
		if row.Verdict == nil {
			fr.LabelPath = fr.Path + ".family"
		}
		f.Rows = append(f.Rows, fr)
	}
	return f
}

// learning is the chart of the pass rates of the monitor looks.
type learning struct {
	Width, Height, Bottom float64
	X, Y                  axis
	XTicks, YTicks        []tick
	Band                  string // polygon
	Pooled, Base          string // polylines
	Points                []learningPoint
	Lines                 []learningLine
}

type learningPoint struct {
	Path, Iteration string // of the rate and of the iteration
	X, Y            float64
}

type learningLine struct {
	Path   string // of the condition
	Points string
	Dots   []learningPoint
}

func newLearning(r Report) learning {
	last := r.Learning[len(r.Learning)-1].Iteration
	first := r.Learning[0].Iteration
	c := learning{Width: 720, Height: 340, Bottom: 290, X: axis{float64(first), math.Max(float64(last), float64(first)+1), 56, 690}, Y: axis{0, 1, 290, 20}}
	c.YTicks = c.Y.ticks(.25, percent)
	c.XTicks = c.X.ticks(wholeStep(last-first), trim)
	var up, down, pooled, base []string
	lines := map[string]int{}
	for i, p := range r.Learning {
		x := c.X.at(float64(p.Iteration))
		at := func(v float64) string { return trim(x) + "," + trim(c.Y.at(v)) }
		iteration := path("learning", i, "iteration")
		if o := p.Look.Overall; o.Checkpoint != nil {
			up, down = append(up, at(o.Checkpoint.Hi)), append(down, at(o.Checkpoint.Lo))
			pooled, base = append(pooled, at(o.Checkpoint.Rate)), append(base, at(o.Base.Rate))
			c.Points = append(c.Points, learningPoint{path("learning", i, "look.overall.checkpoint.rate"), iteration, x, c.Y.at(o.Checkpoint.Rate)})
		}
		for k, row := range p.Look.Rows {
			if row.Checkpoint == nil {
				continue
			}
			n, ok := lines[row.Condition]
			if !ok {
				n = len(c.Lines)
				lines[row.Condition] = n
				c.Lines = append(c.Lines, learningLine{Path: path("learning", i, "look.rows", k, "condition")})
			}
			l := &c.Lines[n]
			dot := learningPoint{path("learning", i, "look.rows", k, "checkpoint.rate"), iteration, x, c.Y.at(row.Checkpoint.Rate)}
			l.Dots = append(l.Dots, dot)
			l.Points = strings.TrimSpace(l.Points + " " + at(row.Checkpoint.Rate))
		}
	}
	for i := len(down) - 1; i >= 0; i-- {
		up = append(up, down[i])
	}
	c.Band, c.Pooled, c.Base = strings.Join(up, " "), strings.Join(pooled, " "), strings.Join(base, " ")
	return c
}

// wholeStep is a round step that gives at most ten ticks.
func wholeStep(span int) float64 {
	for step := 1; ; step *= 10 {
		for _, s := range []int{step, 2 * step, 5 * step} {
			if span <= 10*s {
				return float64(s)
			}
		}
	}
}
