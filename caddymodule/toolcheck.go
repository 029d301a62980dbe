package caddymodule

import (
	"net/http"
	"time"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/toolcall"
	"github.com/caddy-lex/lex/store"
)

// What receipts and metrics call POST /lex/tools/check, and who reads there.
const (
	endpointTools    = "lex/tools/check"
	detectorToolcall = "toolcall"
)

// maxToolName is in characters.
const maxToolName = 256

// toolRequest is the validated body of POST /lex/tools/check.
type toolRequest struct {
	SessionID string
	Call      toolcall.Call
}

// toolAnswer is its answer. Reason and Invariant are null for an approved call.
type toolAnswer struct {
	Decision  kernel.ToolDecision `json:"decision"`
	Reason    *string             `json:"reason"`
	Invariant *string             `json:"invariant"`
	ReceiptID string              `json:"receipt_id"`
}

// toolsCheck serves POST /lex/tools/check: may an agent run this tool call? The
// decision has its receipt in the session's chain before it is told.
func (g *request) toolsCheck(w http.ResponseWriter, r *http.Request) error {
	g.endpoint = endpointTools
	started := time.Now()
	body, apiErr := g.admitTool(w, r)
	if apiErr != nil {
		return g.reject(apiErr)
	}
	decision, err := toolcall.Default().Decide(r.Context(), body.Call)
	if err != nil { // the client left before there was a decision: there is nothing to record, and the store did not fail
		g.refundQuota(r.Context())
		return errGovernor
	}
	x := g.openTool(r, body, decision, started)
	err = x.open(r.Context())
	if err == nil {
		err = x.step()
	}
	if err == nil {
		err = x.commit(r.Context(), toolOutcome(decision, x.mode), g.app.sent("", ""))
	}
	setPlaceholders(r, x.placeholders())
	g.setTurnHeader(w.Header(), x)
	if err != nil {
		return g.failed(r, "commit", err)
	}
	return writeJSON(w, http.StatusOK, x.toolAnswer(decision))
}

func (g *request) admitTool(w http.ResponseWriter, r *http.Request) (toolRequest, *apiError) {
	if apiErr := g.authenticate(w, r); apiErr != nil {
		return toolRequest{}, apiErr
	}
	body, apiErr := decodeTool(w, r)
	if apiErr != nil {
		return toolRequest{}, apiErr
	}
	return body, g.consumeQuota(r.Context(), w)
}

func toolOutcome(d toolcall.Decision, m kernel.Mode) kernel.Outcome {
	if !d.Allowed && m == kernel.Enforce {
		return kernel.Refused
	}
	return kernel.Answered
}

func (g *request) openTool(r *http.Request, body toolRequest, d toolcall.Decision, started time.Time) *exchange {
	x := &exchange{
		app: g.app, engine: g.engine, mode: kernel.Mode(g.handler.Mode), namespace: g.caller.namespace,
		key: sessionKey(g.caller.namespace, body.SessionID), publicID: body.SessionID, eval: g.isEval(r, body.SessionID),
		endpoint: endpointTools, dialect: dialectLex, started: started,
		prompt: string(body.Call.Arguments),
		call:   &kernel.ToolCall{Tool: body.Call.Name, Invariant: string(d.Invariant)},
	}
	x.ran(detectorToolcall, !d.Allowed)
	x.cover("request.tool", detectorToolcall, len(body.Call.Name)+len(body.Call.Arguments))
	if said := contextBytes(body.Call); said > 0 {
		x.cover("request.context", detectorToolcall, said)
	}
	return x
}

func contextBytes(c toolcall.Call) int {
	n := len(c.Request)
	for _, o := range c.Context {
		n += len(o.Text)
	}
	return n
}

func (x *exchange) toolAnswer(d toolcall.Decision) toolAnswer {
	a := toolAnswer{Decision: x.turn.Call.Decision, ReceiptID: x.receipt.ID}
	if a.Decision == kernel.Blocked {
		invariant := string(d.Invariant)
		a.Reason, a.Invariant = &d.Reason, &invariant
	}
	return a
}

// observeTool counts a committed tool call and tells the subscribers.
func (x *exchange) observeTool() {
	m := x.app.metrics
	m.requests.WithLabelValues(x.endpoint, x.dialect, string(x.receipt.Outcome)).Inc()
	m.receipts.WithLabelValues(store.KindToolCall, "true").Inc()
	if x.turn.Call.Decision == kernel.Blocked {
		x.app.emit("lex_tool_blocked", map[string]any{"receipt_id": x.receipt.ID, "endpoint": x.endpoint, "invariant": x.turn.Call.Invariant})
	}
}

// decodeTool reads and checks a body: size, JSON, session_id, tool, context.
func decodeTool(w http.ResponseWriter, r *http.Request) (toolRequest, *apiError) {
	body, apiErr := readBody(w, r, maxGovernBody)
	if apiErr != nil {
		return toolRequest{}, apiErr
	}
	m, apiErr := decodeObject(body, "session_id", "tool", "context")
	if apiErr != nil {
		return toolRequest{}, apiErr
	}
	var session governRequest
	if apiErr := session.readSession(m); apiErr != nil {
		return toolRequest{}, apiErr
	}
	q := toolRequest{SessionID: session.SessionID}
	if apiErr := q.readTool(m["tool"]); apiErr != nil {
		return toolRequest{}, apiErr
	}
	return q, q.readContext(m["context"])
}

func (q *toolRequest) readTool(tool gjson.Result) *apiError {
	if !tool.Exists() || tool.Type == gjson.Null {
		return errMissingTool
	}
	if !tool.IsObject() {
		return errInvalidTool
	}
	m, apiErr := members(tool, "name", "arguments")
	if apiErr != nil {
		return apiErr
	}
	name := m["name"]
	if !name.Exists() || name.Type == gjson.Null {
		return errMissingTool
	}
	if name.Type != gjson.String || !validName(name.Str, maxToolName) {
		return errInvalidTool
	}
	q.Call.Name, q.Call.Arguments = name.Str, rawArguments(m["arguments"])
	return nil
}

// rawArguments is what the tool would be given. Some model APIs write the
// arguments as an object, others as a text that holds one; whatever is neither
// is for the interceptor to refuse.
func rawArguments(v gjson.Result) []byte {
	switch {
	case !v.Exists(), v.Type == gjson.Null:
		return nil
	case v.Type == gjson.String:
		return []byte(v.Str)
	}
	return []byte(v.Raw)
}

// readContext reads what the session holds besides the call. A bare text or
// array is content that the user did not write; an object may also tell what
// the user asked for.
func (q *toolRequest) readContext(v gjson.Result) *apiError {
	switch {
	case !v.Exists(), v.Type == gjson.Null:
		return nil
	case v.IsObject():
		return q.readContextObject(v)
	}
	return q.readObservations(v)
}

func (q *toolRequest) readContextObject(v gjson.Result) *apiError {
	m, apiErr := members(v, "request", "observations")
	if apiErr != nil {
		return apiErr
	}
	if request := m["request"]; request.Exists() && request.Type != gjson.Null {
		if request.Type != gjson.String {
			return errInvalidContext
		}
		q.Call.Request = request.Str
	}
	if seen := m["observations"]; seen.Exists() && seen.Type != gjson.Null {
		return q.readObservations(seen)
	}
	return nil
}

func (q *toolRequest) readObservations(v gjson.Result) *apiError {
	if v.Type == gjson.String {
		q.Call.Context = append(q.Call.Context, toolcall.Observation{Text: v.Str})
		return nil
	}
	if !v.IsArray() {
		return errInvalidContext
	}
	for _, item := range v.Array() {
		text, tool := item, gjson.Result{}
		if item.IsObject() {
			m, apiErr := members(item, "tool", "text")
			if apiErr != nil {
				return apiErr
			}
			text, tool = m["text"], m["tool"]
		}
		if text.Type != gjson.String || (tool.Exists() && tool.Type != gjson.String && tool.Type != gjson.Null) {
			return errInvalidContext
		}
		q.Call.Context = append(q.Call.Context, toolcall.Observation{Tool: tool.Str, Text: text.Str})
	}
	return nil
}
