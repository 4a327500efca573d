package breaker

import "gonum.org/v1/gonum/stat/distuv"

// Rate is a failure count with its 95 % Clopper-Pearson interval. Counts that a sequential test collected lean towards its
// verdict: the interval takes their number as fixed and ignores the stopping rule.
type Rate struct {
	Fails    int     `json:"fails"`
	Episodes int     `json:"episodes"`
	Q        float64 `json:"q"` // Fails / Episodes; 0 without episodes
	Lo       float64 `json:"lo"`
	Hi       float64 `json:"hi"`
}

func (c Counter) rate() Rate {
	r := Rate{Fails: c.Fails, Episodes: c.N()}
	r.Lo, r.Hi = clopperPearson(c.Fails, c.N(), .05)
	if r.Episodes > 0 {
		r.Q = float64(r.Fails) / float64(r.Episodes)
	}
	return r
}

// clopperPearson returns the exact two-sided 1-alpha interval for x of n: the alpha/2 quantile of Beta(x, n-x+1) and the
// 1-alpha/2 quantile of Beta(x+1, n-x) (Clopper and Pearson 1934). Without episodes it is 0 to 1.
func clopperPearson(x, n int, alpha float64) (lo, hi float64) {
	lo, hi = 0, 1
	if x > 0 {
		lo = distuv.Beta{Alpha: float64(x), Beta: float64(n - x + 1)}.Quantile(alpha / 2)
	}
	if x < n {
		hi = distuv.Beta{Alpha: float64(x + 1), Beta: float64(n - x)}.Quantile(1 - alpha/2)
	}
	return lo, hi
}
