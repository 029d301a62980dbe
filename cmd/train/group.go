package main

import (
	"math/rand/v2"
	"sync"
)

const clusterRounds = 6

// cluster groups the words of the space by meaning: spherical k-means
// (Dhillon and Modha 2001), started from frequent words.
func (s *space) cluster(k int) []uint16 {
	n, w := len(s.d.words), s.width
	k = min(k, n)
	centres := make([]float32, k*w)
	random := rand.New(rand.NewPCG(seed, 6))
	for i, from := range random.Perm(min(n, 8*k))[:k] {
		copy(centres[i*w:(i+1)*w], s.row(int32(from)))
	}
	of := make([]uint16, n)
	for range clusterRounds {
		s.nearest(centres, of)
		clear(centres)
		for i, c := range of {
			for j, x := range s.row(int32(i)) {
				centres[int(c)*w+j] += x
			}
		}
		for i := range k {
			unit(centres[i*w : (i+1)*w])
		}
	}
	s.nearest(centres, of)
	return of
}

func (s *space) nearest(centres []float32, of []uint16) {
	var wait sync.WaitGroup
	const parts = 4
	for part := range parts {
		wait.Go(func() {
			for i := part; i < len(of); i += parts {
				row, best := s.row(int32(i)), float32(-2)
				for c := 0; c*s.width < len(centres); c++ {
					if x := dot(row, centres[c*s.width:(c+1)*s.width]); x > best {
						best, of[i] = x, uint16(c)
					}
				}
			}
		})
	}
	wait.Wait()
}
