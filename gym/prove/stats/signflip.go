package stats

// maxLattice bounds the sum of magnitudes that SignFlip works through: 2^24
// states are 128 MiB.
const maxLattice = 1 << 24

// SignFlip returns the two-sided exact p-value that the checkpoint behaves
// like the base on every cluster, from one integer total per cluster: the
// cluster's mean difference times the common denominator of all clusters.
//
//	S = |sum t_g|,   p = P(|sum e_g |t_g|| >= S)   e_g = +1 or -1, each 1/2
//
// The distribution is computed in full: f[j], the probability that the
// magnitudes with a plus sign add to j, is built one cluster at a time, and p
// sums f[j] where |2j - T| >= S with T = sum |t_g|. Everything is compared as
// integers, so no tie is lost to rounding. With every total in -1, 0, 1 it is
// [McNemarExact].
//
// Assumption: clusters are independent, and under the null a cluster's
// difference is as likely to be +t as -t. That is exact when the checkpoint
// behaves like the base on each cluster; for gains and losses that merely
// cancel on average it is approximate, and badly so when a few clusters carry
// them, which is why verdicts also ask for the interval.
//
// Small n: exact at every n; the smallest p from k clusters that are not 0 is
// 2^(1-k). No cluster, or only zeros, gives 1.
//
// Cost: clusters times T, after division by the greatest common divisor.
//
// Panics if T exceeds 2^24 after that division: such totals lie on no useful
// lattice.
//
// Source: Fisher 1935; the shift algorithm of Streitberg and Röhmel 1986.
func SignFlip(totals []int) float64 {
	p, _ := signFlip(totals)
	return p
}

// signFlip returns SignFlip's p-value and the part of it that comes from sums
// equal in size to the observed one. Half of that part, taken off, is the
// mid-p variant, which no verdict uses.
func signFlip(totals []int) (p, equal float64) {
	divisor, clusters := 0, 0
	for g, t := range totals {
		if t == -t && t != 0 {
			fail("SignFlip", "cluster %d has the total %d, which has no magnitude", g, t)
		}
		if t != 0 {
			clusters++
			divisor = gcd(divisor, max(t, -t))
		}
	}
	if clusters == 0 {
		return 1, 1
	}
	magnitudes := make([]int, 0, clusters)
	sum, reach := 0, 0
	for _, t := range totals {
		if t == 0 {
			continue
		}
		m := max(t, -t) / divisor
		if m > maxLattice-reach {
			fail("SignFlip", "the magnitudes add to more than %d, too many states to enumerate", maxLattice)
		}
		magnitudes = append(magnitudes, m)
		reach += m
		sum += t / divisor
	}

	f := make([]float64, reach+1)
	f[0] = 1
	top := 0 // the largest sum so far: above it f is 0
	for _, m := range magnitudes {
		top += m
		for j := top; j >= m; j-- {
			f[j] = f[j]/2 + f[j-m]/2
		}
		for j := min(m, top+1) - 1; j >= 0; j-- {
			f[j] /= 2
		}
	}
	sum = max(sum, -sum)
	for j, mass := range f {
		far := 2*j - reach
		far = max(far, -far)
		if far >= sum {
			p += mass
		}
		if far == sum {
			equal += mass
		}
	}
	return min(1, p), equal
}

// gcd returns the greatest common divisor of two numbers that are not
// negative; gcd(0, b) is b.
func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
