package caddymodule

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/store"
)

// Limits are the rates and sizes that requests are held to.
type Limits struct {
	Rates

	// Requests of one client address, or one key and client address, on the read
	// endpoints, and as many verifications. The admin secret is not counted.
	// Default: 600/1m.
	Read Rate `json:"read,omitzero"`

	// The plans of API keys, by name.
	Plans map[string]Plan `json:"plans,omitempty"`

	// The largest intercepted request or answer that is read, in bytes; a
	// larger one is refused. Default: 32 MiB.
	Body int64 `json:"body,omitempty"`
}

// Rates are the limits of governed requests.
type Rates struct {
	// Requests of one client address on the governance endpoints. Default: 20/1m.
	Anonymous Rate `json:"anonymous,omitzero"`

	// Requests of one key and client address there. Default: 120/1m.
	Keyed Rate `json:"keyed,omitzero"`

	// Requests of one client address on intercepted paths. Default: unlimited.
	Intercepted Rate `json:"intercepted,omitzero"`
}

// A Plan is what an API key may use.
type Plan struct {
	// Runs of each key in a window. A run is one accepted request, wherever it is
	// governed.
	Rate

	// The policy that requests with a key of this plan are governed under. Default:
	// the site's.
	Policy string `json:"policy,omitempty"`
}

// A Rate is a number of requests in a window that starts with a subject's
// first request. The zero value is no limit.
type Rate struct {
	Requests int            `json:"requests"`
	Window   caddy.Duration `json:"window"`
}

// defaultBody is the default of Limits.Body, in bytes.
const defaultBody = 32 << 20

// maxSize bounds every size, in bytes. It leaves room for what is added to one.
const maxSize = 1 << 40

// maxRequests bounds every rate: Redis counts in doubles, which tell larger numbers no longer
// apart.
const maxRequests = 1<<53 - 1

// tooManyRequests is the error for a rate above maxRequests.
const tooManyRequests = "give at most 9007199254740991 requests, the most that can be counted exactly"

func (l *Limits) provision() error {
	if l.Anonymous == (Rate{}) {
		l.Anonymous = Rate{Requests: 20, Window: caddy.Duration(time.Minute)}
	}
	if l.Keyed == (Rate{}) {
		l.Keyed = Rate{Requests: 120, Window: caddy.Duration(time.Minute)}
	}
	if l.Read == (Rate{}) {
		l.Read = Rate{Requests: 600, Window: caddy.Duration(time.Minute)} // a dashboard that asks for everything each second stays below it
	}
	if l.Body == 0 {
		l.Body = defaultBody
	}
	if err := l.check(); err != nil {
		return err
	}
	if l.Body < 0 || l.Body > maxSize {
		return errors.New("limits body: give a size up to 1TiB, such as 32MiB")
	}
	return nil
}

func (l *Limits) check() error {
	if l.Read != (Rate{}) && !l.Read.valid() {
		return l.Read.err("read")
	}
	for name, plan := range l.Plans {
		if !validIdentifier(name) {
			return fmt.Errorf("limits plan %q: %s", name, nameRule)
		}
		if !plan.valid() {
			return plan.err("plan " + name)
		}
	}
	return l.Rates.check()
}

func (r *Rates) check() error {
	for name, rate := range map[string]Rate{"anonymous": r.Anonymous, "keyed": r.Keyed, "intercepted": r.Intercepted} {
		if rate != (Rate{}) && !rate.valid() {
			return rate.err(name)
		}
	}
	return nil
}

func (r Rate) valid() bool {
	return r.Requests >= 1 && int64(r.Requests) <= maxRequests && r.Window > 0
}

// err says what is wrong with a rate that is not valid.
func (r Rate) err(name string) error {
	if int64(r.Requests) > maxRequests {
		return fmt.Errorf("limits %s: %s", name, tooManyRequests)
	}
	return fmt.Errorf("limits %s: give at least one request in a positive window, such as 20/1m", name)
}

// nameRule says what validIdentifier accepts.
const nameRule = "give a name of at most 64 letters, digits, dots, dashes and underscores"

// validIdentifier reports whether a plan or a policy can be configured under the name.
func validIdentifier(name string) bool {
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(c rune) bool {
		return !strings.ContainsRune("-_.", c) && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
}

// A limit is a rate and the group of requests that are counted together for it.
type limit struct {
	Rate
	group string
}

// newLimit returns the limit of a group under a policy: its own rate, which is
// counted for it alone, or else the app's.
func newLimit(group string, p *Policy, own, app Rate) limit {
	if own != (Rate{}) {
		return limit{own, group + "@" + p.name}
	}
	return limit{app, group}
}

// countRequest counts a request of a caller on the governance endpoints or on
// intercepted paths.
func (g *request) countRequest(ctx context.Context, w http.ResponseWriter, intercepted bool) *apiError {
	l := g.policy.anonymous
	switch {
	case intercepted:
		l = g.policy.intercepted
	case g.caller.keyed:
		l = g.policy.keyed
	}
	return g.limits.take(ctx, w, l.Rate, g.caller.subject(l.group))
}

// A limiter counts requests in the store.
type limiter struct{ store store.Store }

// take counts one request of subject, writes into the headers what is left, and
// returns the error to answer with when nothing is.
func (l limiter) take(ctx context.Context, w http.ResponseWriter, rate Rate, subject string) *apiError {
	if rate == (Rate{}) {
		return nil
	}
	got, err := l.store.Consume(ctx, subject, "", rate.Requests, time.Duration(rate.Window))
	if err != nil {
		return errGovernor.because("limit", err)
	}
	w.Header().Set("X-RateLimit-Limit", strconv.Itoa(got.Limit))
	w.Header().Set("X-RateLimit-Remaining", strconv.Itoa(got.Remaining))
	if !got.Allowed {
		w.Header().Set("Retry-After", retryAfter(got))
		return errRateLimited
	}
	return nil
}

// retryAfter is at least the 60 seconds that errRateLimited promises, and longer if
// the window is.
func retryAfter(a store.Allowance) string {
	return strconv.Itoa(int(math.Max(60, math.Ceil(a.Reset.Seconds()))))
}

// consumeQuota counts one accepted request against the plan of the caller's key,
// and returns the error to answer with when the plan is used up. A key without a
// plan has no quota; one whose plan is no longer configured is refused, because
// a renamed plan must not become an unlimited one.
func (g *request) consumeQuota(ctx context.Context, w http.ResponseWriter) *apiError {
	if g.caller.key.Plan == "" {
		return nil
	}
	plan, known := g.app.Limits.Plans[g.caller.key.Plan]
	if !known {
		return errPlanUnavailable
	}
	run := planRun{"plan:" + g.caller.key.ID, rand.Text(), time.Now().Add(time.Duration(plan.Window))}
	got, err := g.shared.store.Consume(ctx, run.subject, run.id, plan.Requests, time.Duration(plan.Window))
	if err != nil {
		g.shared.refunds.owe(run) //nolint:contextcheck // it may have been counted, and is refunded after the request
		return errGovernor.because("limit", err)
	}
	if !got.Allowed {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(got.Reset.Seconds()))))
		return errPlanExhausted
	}
	run.ends = time.Now().Add(got.Reset)
	g.quota = &run
	return nil
}

// refundQuota undoes consumeQuota for a request that we or the provider failed,
// once. Once the model was called the client must still be there: otherwise
// hanging up would make calls for free. ctx is the request's. A store that fails owes the
// refund.
func (g *request) refundQuota(ctx context.Context) {
	if g.quota == nil || g.asked.Load() && clientLeft(ctx) {
		return
	}
	run := *g.quota
	g.quota = nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), govern.CommitTime)
	defer cancel()
	if err := g.shared.store.Refund(ctx, run.subject, run.id); err != nil {
		g.shared.refunds.owe(run) //nolint:contextcheck // it is refunded after the request
		g.failures.storeFailed("limit", err)
	}
}

// providerFailed reports whether an answer with this status is a failure of the provider:
// its own, or one of the account that the operator has there. The other errors are about
// what the client sent.
func providerFailed(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	}
	return status >= http.StatusInternalServerError
}

// clientAddress is the client's address as Caddy trusts it; an IPv6 client is
// its /64, because one subscriber has the whole of it.
func clientAddress(r *http.Request) string {
	ip, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return "unknown"
	}
	addr = addr.Unmap().WithZone("")
	prefix, err := addr.Prefix(64)
	if err != nil { // an IPv4 address is not as long
		return addr.String()
	}
	return prefix.String()
}
