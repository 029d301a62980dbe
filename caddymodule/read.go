package caddymodule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/toolcall"
	"github.com/caddy-lex/lex/store"
)

const (
	defaultRecent = 20
	maxRecent     = 200
)

// publicReceipt is a receipt as the public list shows it.
type publicReceipt struct {
	ID             string  `json:"id"`
	SessionID      string  `json:"session_id"`
	Turn           int     `json:"turn"`
	PreEvalLabel   string  `json:"pre_eval_label"`
	MBefore        float64 `json:"m_before"`
	MAfter         float64 `json:"m_after"`
	GovernorMode   string  `json:"governor_mode"`
	Intervention   bool    `json:"intervention"`
	SlowDrip       bool    `json:"slow_drip"`
	GovernorEffort float64 `json:"governor_effort"`
	SigmaViol      float64 `json:"sigma_viol"`
	Timestamp      int64   `json:"timestamp"`

	// What became of the turn, beyond the interface.
	Refused     bool    `json:"refused"`
	WouldRefuse bool    `json:"would_refuse"`
	AttackType  string  `json:"attack_type"`
	Severity    float64 `json:"severity"`
}

// summarise makes what the list shows of a receipt. It is made when the receipt is
// written, so that the list reads no records.
func summarise(r *kernel.Receipt) ([]byte, error) {
	return json.Marshal(publicReceipt{
		ID: r.ID, SessionID: r.SessionID, Turn: r.Turn, PreEvalLabel: r.Label, MBefore: r.MBefore, MAfter: r.MAfter,
		GovernorMode: r.GovernorMode, Intervention: r.Intervened, SlowDrip: r.SlowDrip, GovernorEffort: r.Effort, SigmaViol: r.SigmaViol,
		Timestamp: r.Timestamp, Refused: r.Refused, WouldRefuse: r.WouldRefuse, AttackType: string(r.AttackType), Severity: r.Severity,
	})
}

// recent serves GET /audits/recent, newest first, with a link to the next page.
func (g *request) recent(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	limit, apiErr := recentLimit(query.Get("limit"), query.Has("limit"))
	if apiErr != nil {
		writeError(w, apiErr)
		return
	}
	summaries, err := g.engine.store.Summaries(r.Context(), query.Get("before"), limit)
	if errors.Is(err, store.ErrNotFound) {
		writeError(w, errInvalidCursor)
		return
	}
	receipts := make([]publicReceipt, len(summaries))
	for i := 0; i < len(summaries) && err == nil; i++ {
		receipts[i], err = g.shown(r.Context(), summaries[i])
	}
	if err != nil { // a receipt that is listed and not there is a fault, too
		g.storeFailed("read", err)
		writeError(w, errGovernor)
		return
	}
	if len(summaries) == limit {
		next := url.Values{"limit": {strconv.Itoa(limit)}, "before": {summaries[limit-1].Cursor}}
		w.Header().Set("Link", fmt.Sprintf(`<%s?%s>; rel="next"`, r.URL.Path, next.Encode()))
	}
	_ = writeJSON(w, http.StatusOK, map[string]any{"receipts": receipts})
}

// shown is what the list shows of a receipt. Of one that was written before
// there were summaries its record says the same.
func (g *request) shown(ctx context.Context, s store.Summary) (shown publicReceipt, err error) {
	text := s.JSON
	if text == nil {
		entry, err := g.engine.store.Receipt(ctx, s.ID)
		if err != nil {
			return shown, err
		}
		text = entry.JSON
	}
	if err := json.Unmarshal(text, &shown); err != nil {
		return shown, fmt.Errorf("reading receipt %s: %w", s.ID, err)
	}
	return shown, nil
}

func recentLimit(raw string, given bool) (int, *apiError) {
	if !given {
		return defaultRecent, nil
	}
	n, err := strconv.Atoi(raw)
	if errors.Is(err, strconv.ErrRange) && !strings.HasPrefix(raw, "-") {
		return maxRecent, nil // an integer, and more than there is
	}
	if err != nil || n < 1 {
		return 0, errInvalidLimit
	}
	return min(n, maxRecent), nil
}

var receiptID = regexp.MustCompile(`^(KRN|TCR)-[0-9A-F]{32}$`)

// receipt serves GET /audits/{id}: the whole record, byte for byte as hashed.
func (g *request) receipt(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Path, auditPrefix)
	if !receiptID.MatchString(id) {
		writeError(w, errNotFound)
		return
	}
	entry, err := g.engine.store.Receipt(r.Context(), id)
	if err != nil {
		g.readFailed(w, err)
		return
	}
	_ = writeBody(w, http.StatusOK, "application/json", entry.JSON)
}

// turnID is the form of what names a turn (randomID).
var turnID = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// receiptOfTurn serves GET /audits/turn/{id}: the receipt of the turn that
// X-Lex-Turn named, as soon as it is durable.
func (g *request) receiptOfTurn(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Path, turnPrefix)
	if !turnID.MatchString(id) {
		writeError(w, errNotFound)
		return
	}
	entry, err := g.engine.store.ReceiptOfTurn(r.Context(), id)
	if err != nil {
		g.readFailed(w, err)
		return
	}
	_ = writeBody(w, http.StatusOK, "application/json", entry.JSON)
}

var policyHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// policy serves GET /lex/policies/{hash}: the constants that a receipt of this
// policy replays with, byte for byte as hashed. They never change.
func (g *request) policy(w http.ResponseWriter, r *http.Request) {
	hash := strings.TrimPrefix(r.URL.Path, policiesPrefix)
	if !policyHash.MatchString(hash) {
		writeError(w, errNotFound)
		return
	}
	text, err := g.engine.store.Policy(r.Context(), hash)
	if err != nil {
		g.readFailed(w, err)
		return
	}
	_ = writeBody(w, http.StatusOK, "application/json", text)
}

// stats serves GET /stats.
func (g *request) stats(w http.ResponseWriter, r *http.Request) {
	s, err := g.engine.store.Stats(r.Context())
	if err != nil {
		g.readFailed(w, err)
		return
	}
	_ = writeJSON(w, http.StatusOK, map[string]any{
		"total_receipts": s.TotalReceipts, "intervention_rate": s.InterventionRate, "stability_margin": s.StabilityMargin,
	})
}

// simulation runs the scripted scenarios through the interceptor, once: the
// interceptor is deterministic and the script is part of the program.
var simulation = sync.OnceValue(toolcall.Simulate)

// agenticSim serves GET /agentic-sim. It leaves no receipt.
func (g *request) agenticSim(w http.ResponseWriter, _ *http.Request) {
	_ = writeJSON(w, http.StatusOK, simulation())
}

// health serves GET /lex/health: the components and whether they work, nothing else.
func (g *request) health(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	status, state := http.StatusOK, "ok"
	if err := g.engine.store.Check(ctx); err != nil {
		g.storeFailed("check", err)
		status, state = http.StatusServiceUnavailable, "degraded"
	}
	_ = writeJSON(w, status, map[string]any{"status": state, "components": map[string]string{"store": state, "detector": "ok"}})
}

// readFailed answers when the store did not, or has no such thing.
func (g *request) readFailed(w http.ResponseWriter, err error) {
	if errors.Is(err, store.ErrNotFound) {
		writeError(w, errNotFound)
		return
	}
	g.storeFailed("read", err)
	writeError(w, errGovernor)
}
