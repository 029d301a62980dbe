package store_test

import (
	"testing"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// Places are stored, so they never change and none is used twice.
func TestPlacesOfLevels(t *testing.T) {
	for place := range uint16(808) {
		l := store.LevelOf(place)
		if !l.Counted() || l.Place() != place {
			t.Fatalf("place %d: %+v, which has %d", place, l, l.Place())
		}
	}
	for place, want := range map[uint16]store.Level{
		0:   {AttackType: kernel.NoAttack},
		182: {AttackType: kernel.Identity, At: 81},
		807: {AttackType: kernel.SlowDrip, At: 100},
		808: {}, // of a newer version
	} {
		if got := store.LevelOf(place); got != want {
			t.Errorf("place %d: %+v, want %+v", place, got, want)
		}
	}
	var s store.Stats
	s.AddLevel(store.LevelOf(808), 3)
	if s.Levels != nil {
		t.Errorf("levels that are not known are counted: %v", s.Levels)
	}
}
