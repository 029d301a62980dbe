package caddymodule

import (
	"context"
	"errors"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
)

// An exit ends what is in flight, waits for it, and lets nothing new begin.
func TestExitWaitsForRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlights()
		var landed atomic.Int32
		began := time.Now()
		for range 3 {
			ctx, land, err := f.begin(t.Context(), httptest.NewRecorder())
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				<-ctx.Done()
				if !exits(ctx) || clientLeft(ctx) {
					t.Errorf("ended by %v", context.Cause(ctx))
				}
				time.Sleep(time.Second)
				landed.Add(1)
				land()
			}()
		}
		gone, leave := context.WithCancel(t.Context())
		ctx, land, err := f.begin(gone, httptest.NewRecorder())
		if err != nil {
			t.Fatal(err)
		}
		if leave(); exits(ctx) || !clientLeft(ctx) {
			t.Error("a client that left looks like an exit")
		}
		land()
		f.end(time.Minute)
		if landed.Load() != 3 || time.Since(began) != time.Second+lastBytesTime {
			t.Errorf("%d requests landed within %v", landed.Load(), time.Since(began))
		}
		if _, _, err := f.begin(t.Context(), httptest.NewRecorder()); !errors.Is(err, errExiting) {
			t.Errorf("a request that began during the exit got %v", err)
		}
	})
}

// An exit is not held up by a request that does not end, nor by none.
func TestExitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		newFlights().end(time.Minute)
		if time.Since(began) != 0 {
			t.Errorf("without requests it took %v", time.Since(began))
		}
		f := newFlights()
		_, land, err := f.begin(t.Context(), httptest.NewRecorder())
		if err != nil {
			t.Fatal(err)
		}
		f.end(exitTime)
		if time.Since(began) != exitTime {
			t.Errorf("it took %v", time.Since(began))
		}
		land() // late, and alone
	})
}

// A canary that the exit of the process ended says nothing of a guard; one whose chain
// panicked says that it does not work, and the process goes on.
func TestSelfTestDuringAnExit(t *testing.T) {
	running := process
	defer func() { process = running }()
	for _, ending := range []bool{true, false} {
		process = newFlights()
		if ending {
			process.end(0)
		}
		tested := &selfTest{
			canaries: []canary{{scratch: new(scratchStore)}}, // without a handler
			ok:       newSelfTestGauge(), logger: zap.NewNop(), first: make(chan struct{}), inert: make(map[selfTestCase]bool),
		}
		tested.pass(t.Context())
		if inert := tested.inert[selfTestCase{}]; inert == ending {
			t.Errorf("the process ends: %v; a guard is inert: %v", ending, inert)
		}
	}
}
