package evaluation

import "gonum.org/v1/gonum/mathext"

// tail is what a two-sided 95 % interval leaves on each side.
const tail = 0.025

// atLeast returns the probability of k or more successes in n trials that each succeed
// with the probability p, for 0 <= k <= n and 0 < p < 1. The binomial tail is a
// regularised incomplete beta function (Abramowitz and Stegun, 26.5.24).
func atLeast(k, n int64, p float64) float64 {
	if k == 0 {
		return 1
	}
	return mathext.RegIncBeta(float64(k), float64(n-k+1), p)
}

// atMost returns the probability of k or fewer successes, computed as that of n - k or more
// failures, so that small ones do not drown in rounding.
func atMost(k, n int64, p float64) float64 { return atLeast(n-k, n, 1-p) }

// ClopperPearson returns the exact 95 % interval of k successes in n trials, in per cent
// (Clopper and Pearson, Biometrika 26, 1934): it holds the true share with at least 95 %
// probability, however small the share is. n is at least 1.
func ClopperPearson(k, n int64) (interval [2]float64) {
	interval[1] = 100
	if k > 0 {
		interval[0] = 100 * mathext.InvRegIncBeta(float64(k), float64(n-k+1), tail)
	}
	if k < n {
		interval[1] = 100 * mathext.InvRegIncBeta(float64(k+1), float64(n-k), 1-tail)
	}
	return interval
}
