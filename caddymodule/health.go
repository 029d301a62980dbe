package caddymodule

import (
	"context"
	"net/http"
	"time"
)

// The states of a component, and of all of them together.
const (
	stateOK       = "ok"
	stateDegraded = "degraded"
	stateStarting = "starting" // the self-test has not ended yet
)

// healthAnswer is the answer of GET /lex/health: the components and whether they work,
// nothing else.
type healthAnswer struct {
	Status     string            `json:"status"`
	Components map[string]string `json:"components"`
	// Breakers are those of remote models: open, where one is not asked for at least one
	// caller, or closed.
	Breakers map[string]string `json:"breakers"`
}

// health serves GET /lex/health.
func health(g *request, w http.ResponseWriter, r *http.Request) error {
	status, a := g.health(r.Context())
	return writeJSON(w, status, a)
}

// health asks the components. The status is 503 where turns fail, and where the self-test
// has not ended yet or found that something does not work. While a remote model fails,
// turns go on as the policy says, and so it is 200 with the state degraded: another
// replica, which asks the same model, would do no better.
func (g *request) health(ctx context.Context) (status int, a healthAnswer) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	status = http.StatusOK
	a = healthAnswer{stateOK, map[string]string{"store": stateOK, "detector": stateOK}, map[string]string{}}
	if err := g.shared.store.Check(ctx); err != nil {
		g.failures.storeFailed("check", err)
		status, a.Status, a.Components["store"] = http.StatusServiceUnavailable, stateDegraded, stateDegraded
	}
	g.app.remoteHealth(&a)
	a.Components["self_test"] = g.app.selfTest.state(ctx)
	if state := a.Components["self_test"]; state != stateOK {
		status, a.Status = http.StatusServiceUnavailable, state
	}
	return status, a
}

// A remoteModel is a module that asks a model over the network.
type remoteModel interface{ health() remoteHealth }

// watchRemote makes a module a part of a component of the health, if it asks a remote model.
func (a *App) watchRemote(component string, module any) {
	remote, ok := module.(remoteModel)
	if !ok {
		return
	}
	if a.remotes == nil {
		a.remotes = make(map[string][]remoteModel)
	}
	a.remotes[component] = append(a.remotes[component], remote)
}

// remoteHealth adds the remote models. Policies may have one each: the worst counts.
func (a *App) remoteHealth(to *healthAnswer) {
	for component, models := range a.remotes {
		to.Components[component], to.Breakers[component] = stateOK, "closed"
		for _, m := range models {
			h := m.health()
			if h.failing {
				to.Status, to.Components[component] = stateDegraded, stateDegraded
			}
			if h.open {
				to.Breakers[component] = "open"
			}
		}
	}
}
