package evaluation

import "math"

// The thresholds that are looked at, in hundredths: those that a policy may have as
// refuse_at, which is over watch_at (0.30) and under 1.
const (
	LowestThreshold  = 31
	HighestThreshold = 99
)

// Levels counts texts by their level, the highest refuse_at that refuses them, in
// hundredths rounded down: refuse_at 0.81 refuses those at 81 and above. The texts at 100
// are refused whatever refuse_at is. Levels of two samples may be added, and nothing is
// lost at any threshold of whole hundredths.
type Levels [101]int64

// N returns how many texts there are.
func (l *Levels) N() int64 { return l.Refused(0) }

// Refused returns how many of the texts a threshold of so many hundredths refuses.
func (l *Levels) Refused(threshold int) (n int64) {
	for _, count := range l[threshold:] {
		n += count
	}
	return n
}

// Add adds the texts of another sample.
func (l *Levels) Add(more *Levels) {
	for level, n := range more {
		l[level] += n
	}
}

// A Threshold is the refuse_at that a rate of false alarms asks for, as far as a sample of
// harmless texts can tell.
type Threshold struct {
	// Rate is the share of harmless texts that may be refused, in (0, 1).
	Rate float64 `json:"rate"`
	// Needed is how many texts the rate needs. With fewer of them even a threshold that
	// refuses none may exceed the rate.
	Needed int64 `json:"needed"`
	// RefuseAt is the threshold, or nil if there are fewer texts, or if too many are
	// refused whatever refuse_at is. It is the lowest of whole hundredths that refuses the
	// next text of the same kind with at most the probability Rate.
	RefuseAt *float64 `json:"refuse_at"`
	// RefuseAtCI is the 95 % interval of the threshold at which the true rate is Rate. From
	// its upper end on the rate is kept with a confidence of 97.5 %; that is 1 if no
	// threshold is as sure. Nil without RefuseAt.
	RefuseAtCI *[2]float64 `json:"refuse_at_ci95"`
	// Refused is how many of the texts the threshold refuses.
	Refused int64 `json:"refused"`
	// RefusedCI is the exact 95 % interval of their share, in per cent. Nil without RefuseAt.
	RefusedCI *[2]float64 `json:"refused_ci95"`
}

// Needed returns how many texts a rate of false alarms in (0, 1) needs: the fewest of which
// at least one exceeds the true threshold with a probability of 97.5 %. That is the sample
// size of Wilks (Annals of Mathematical Statistics 12, 1941) for the largest value as a
// distribution-free tolerance limit.
func Needed(rate float64) int64 {
	return int64(math.Ceil(math.Log(tail) / math.Log1p(-rate)))
}

// ThresholdFor returns the threshold for a rate of false alarms in (0, 1).
//
// It assumes nothing of the severities but that the texts are independent and of the kind
// that will come. If k of n texts reach a threshold that lies above all others, the next
// text reaches it with a probability of at most (k+1)/(n+1), because all n+1 are equally
// likely to be among the k+1 highest (Vovk, Gammerman and Shafer, Algorithmic Learning in a
// Random World, 2005). The interval holds the thresholds that the binomial test at 5 % does
// not reject, which is the one between order statistics (David and Nagaraja, Order
// Statistics, 2003, section 7.1).
func ThresholdFor(l *Levels, rate float64) Threshold {
	n := l.N()
	t := Threshold{Rate: rate, Needed: Needed(rate)}
	most := int64(math.Floor(rate*float64(n+1)+1e-9)) - 1
	if n < t.Needed || l.Refused(HighestThreshold) > most {
		return t
	}
	at, low, high := HighestThreshold, LowestThreshold, 100
	for threshold := HighestThreshold; threshold >= LowestThreshold; threshold-- {
		k := l.Refused(threshold)
		if k <= most {
			at = threshold
		}
		if atMost(k, n, rate) <= tail {
			high = threshold
		}
		if atLeast(k, n, rate) <= tail {
			low = threshold
			break
		}
	}
	t.RefuseAt, t.RefuseAtCI = new(float64(at)/100), &[2]float64{float64(low) / 100, float64(high) / 100}
	t.Refused = l.Refused(at)
	t.RefusedCI = new(ClopperPearson(t.Refused, n))
	return t
}

// LevelsByType counts texts by attack type and level.
type LevelsByType map[string]*Levels

// Add adds a text with a level in hundredths.
func (m LevelsByType) Add(attackType string, level int) {
	l := m[attackType]
	if l == nil {
		l = new(Levels)
		m[attackType] = l
	}
	l[level]++
}

// Total returns the texts of all types.
func (m LevelsByType) Total() *Levels {
	total := new(Levels)
	for _, l := range m {
		total.Add(l)
	}
	return total
}
