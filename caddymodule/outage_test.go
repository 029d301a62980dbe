package caddymodule

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// One line when the store fails and one when it is back, also where it serves some requests and
// refuses others.
func TestHealthLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logged := observer.New(zap.WarnLevel)
		var h healthLog
		h.loggers.join(zap.New(core))
		fails := errors.New("no room")
		expect := func(when string, lines int) {
			t.Helper()
			if logged.Len() != lines {
				t.Errorf("%s: %d lines, want %d: %v", when, logged.Len(), lines, logged.All())
			}
		}
		h.record(nil)
		expect("at first", 0)
		h.record(fails)
		h.record(fails)
		expect("an outage", 1)
		h.record(nil)
		expect("its end, at once", 2)
		for range 1000 {
			h.record(fails)
			h.record(nil)
			time.Sleep(time.Millisecond)
		}
		expect("now and then", 3)
		time.Sleep(steadyTime)
		h.record(nil)
		h.record(nil)
		expect("steady again", 4)
		time.Sleep(steadyTime)
		h.record(fails)
		h.record(nil)
		expect("another outage", 6)
	})
}

// So does the log of an upstream, of which one server in two may be gone.
func TestUpstreamLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logged := observer.New(zap.WarnLevel)
		logger, u := zap.New(core), new(upstreamLog)
		for range 1000 {
			u.record(logger, "refused")
			u.record(logger, "")
			time.Sleep(time.Millisecond)
		}
		time.Sleep(steadyTime)
		u.record(logger, "")
		if logged.Len() != 4 {
			t.Errorf("%d lines: %v", logged.Len(), logged.All())
		}
	})
}
