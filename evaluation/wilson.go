package evaluation

import "math"

// z95 is the 97.5 % quantile of the normal distribution.
const z95 = 1.959963984540054

// Percent returns the share of k in n, in per cent; 0 where n is 0.
func Percent(k, n int) float64 { return 100 * float64(k) / float64(max(1, n)) }

// Wilson returns the 95 % score interval of k successes in n trials, in per cent
// (Wilson, JASA 22, 1927). n is at least 1. The interval always contains the estimate,
// even if k is 0 or n.
func Wilson(k, n int) [2]float64 {
	total := float64(n)
	p := float64(k) / total
	centre := p + z95*z95/(2*total)
	half := z95 * math.Sqrt(p*(1-p)/total+z95*z95/(4*total*total))
	scale := 100 / (1 + z95*z95/total)
	low, high := (centre-half)*scale, (centre+half)*scale
	return [2]float64{max(0, min(low, 100*p)), min(100, max(high, 100*p))}
}
