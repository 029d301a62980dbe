package caddymodule

import (
	"net/http"
	"time"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/toolcall"
)

// endpointTools is what receipts and metrics call POST /lex/tools/check.
const endpointTools = "lex/tools/check"

// checkedCall is where the call stands in the coverage of its receipt.
const checkedCall = "request.tool"

// maxToolName is in characters.
const maxToolName = 256

// toolRequest is the validated body of POST /lex/tools/check.
type toolRequest struct {
	SessionID string
	Call      toolcall.Call
}

// toolAnswer is its answer. Reason, Invariant and Rule are null for an approved call, and
// Flagged and Provenance where there is nothing to say. The opening is "" where there
// were no arguments.
type toolAnswer struct {
	Decision   kernel.ToolDecision `json:"decision"`
	Reason     *string             `json:"reason"`
	Invariant  *string             `json:"invariant"`
	Rule       *string             `json:"rule"`
	Flagged    *string             `json:"flagged"`
	Effect     kernel.ToolEffect   `json:"effect"`
	Provenance *kernel.Provenance  `json:"provenance"`
	ReceiptID  string              `json:"receipt_id"`
	Openings   argumentsOpening    `json:"openings"`
}

// argumentsOpening is the key of the commitment to the arguments.
type argumentsOpening struct {
	Arguments string `json:"arguments"`
}

// toolsCheck serves POST /lex/tools/check: may an agent run this tool call? The
// decision has its receipt in the session's chain before it is told.
func (g *request) toolsCheck(w http.ResponseWriter, r *http.Request) error {
	g.endpoint, g.dialectName = endpointTools, dialectLex
	ctx, started := r.Context(), time.Now()
	apiErr := g.authenticate(w, r, false)
	var body toolRequest
	if apiErr == nil {
		body, apiErr = decodeTool(w, r)
	}
	if apiErr == nil {
		apiErr = g.consumeQuota(ctx, w)
	}
	if apiErr != nil {
		return g.reject(apiErr)
	}
	body.Call.Session, body.Call.Key, body.Call.Dialect = body.SessionID, g.caller.key.ID, dialectLex
	decision, err := g.policy.governor.Interceptor().Decide(ctx, body.Call)
	if err != nil { // the client left before there was a decision: there is nothing to record, and the store did not fail
		g.refundQuota(ctx)
		return errGovernor
	}

	opened, err := g.policy.governor.Open(ctx, govern.Request{
		Mode: kernel.Mode(g.handler.Mode), Namespace: g.caller.namespace,
		Key: govern.SessionKey(g.caller.namespace, body.SessionID), PublicID: body.SessionID, Eval: g.auth.isEval(r, body.SessionID),
		Endpoint: endpointTools, Dialect: dialectLex, Started: started, TraceID: g.traceID,
	})
	if err != nil {
		return g.fail(r.Context(), "commit", err)
	}
	g.setTurnHeader(w.Header(), opened)
	coverage := opened.Coverage
	coverage.Ran(govern.DetectorToolCall, !decision.Allowed || decision.Flagged != "")
	coverage.Inspect(checkedCall, govern.DetectorToolCall, len(body.Call.Name)+len(body.Call.Arguments))
	if said := contextBytes(body.Call) - decision.Unread; said > 0 {
		coverage.Inspect("request.context", govern.DetectorToolCall, said)
	}
	if decision.Unread > 0 {
		coverage.Skip("request.context", "more than a tool call is compared with", decision.Unread)
	}

	judged, err := opened.CheckCall(ctx, checkedCall, body.Call, decision)
	if err != nil {
		return g.fail(r.Context(), "commit", err)
	}
	receipt, err := g.commit(r, judged, kernel.Answered, g.policy.governor.Sent("", ""))
	if err != nil {
		return g.fail(r.Context(), "commit", err)
	}
	return writeJSON(w, http.StatusOK, newToolAnswer(receipt))
}

// newToolAnswer tells the decision that the receipt records: in the mode observe a call
// is approved whatever it breaks.
func newToolAnswer(receipt *govern.Receipt) toolAnswer {
	call := receipt.Turn.Call
	a := toolAnswer{
		Decision: call.Decision, Flagged: orNull(call.Flagged), Effect: call.Effect,
		Provenance: orNull(call.Provenance), ReceiptID: receipt.ID, Openings: argumentsOpening{receipt.Openings.Arguments},
	}
	if call.Decision == kernel.Blocked {
		a.Reason, a.Invariant, a.Rule = orNull(govern.BlockedReason(call)), orNull(call.Invariant), orNull(call.Rule)
	}
	return a
}

// orNull is JSON's null for an empty text.
func orNull[T ~string](s T) *T {
	if s == "" {
		return nil
	}
	return &s
}

func contextBytes(c toolcall.Call) int {
	n := len(c.Request)
	for _, o := range c.Context {
		n += len(o.Text)
	}
	return n
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
