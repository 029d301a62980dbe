package caddymodule

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// An exit ends what is in flight, waits for it, and lets nothing new begin.
func TestExitWaitsForRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlights()
		var landed atomic.Int32
		began := time.Now()
		for range 3 {
			r, land := f.begin(httptest.NewRequest(http.MethodPost, "/", nil))
			go func() {
				<-r.Context().Done()
				if !exits(r.Context()) || clientLeft(r.Context()) {
					t.Errorf("ended by %v", context.Cause(r.Context()))
				}
				time.Sleep(time.Second)
				landed.Add(1)
				land()
			}()
		}
		gone, leave := context.WithCancel(t.Context())
		r, land := f.begin(httptest.NewRequestWithContext(gone, http.MethodPost, "/", nil))
		if leave(); exits(r.Context()) || !clientLeft(r.Context()) {
			t.Error("a client that left looks like an exit")
		}
		land()
		f.end(time.Minute)
		if landed.Load() != 3 || time.Since(began) != time.Second+lastBytesTime {
			t.Errorf("%d requests landed within %v", landed.Load(), time.Since(began))
		}
		if late, _ := f.begin(httptest.NewRequest(http.MethodPost, "/", nil)); late != nil {
			t.Error("a request began during the exit")
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
		_, land := f.begin(httptest.NewRequest(http.MethodPost, "/", nil))
		f.end(exitTime)
		if time.Since(began) != exitTime {
			t.Errorf("it took %v", time.Since(began))
		}
		land() // late, and alone
	})
}
