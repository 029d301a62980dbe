package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// A rpcCall is one message of a client of the Model Context Protocol.
type rpcCall struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ProtocolVersion string            `json:"protocolVersion"`
		Name            string            `json:"name"`
		Arguments       map[string]string `json:"arguments"`
		Meta            map[string]any    `json:"_meta"`
	} `json:"params"`
}

// serveMCP is a server of the Model Context Protocol in both of its generations: with
// sessions (up to 2025-11-25), and stateless, with the version in each request
// (2026-07-28). It answers in JSON; the tool browse answers as an event stream.
func serveMCP(w http.ResponseWriter, r *http.Request, body string) {
	switch r.Method {
	case http.MethodGet: // it has nothing to say by itself
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case http.MethodDelete:
		w.WriteHeader(http.StatusOK)
		return
	}
	var call rpcCall
	if err := json.Unmarshal([]byte(body), &call); err != nil {
		writeWhole(w, http.StatusBadRequest, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`, "")
		return
	}
	if call.ID == nil {
		w.WriteHeader(http.StatusAccepted) // a notification
		return
	}
	how := manner("")
	if call.Method == "tools/call" {
		how = manner(r.Header.Get(mannerHeader))
	}
	if call.Method == "initialize" {
		w.Header().Set("Mcp-Session-Id", "e2e-session")
	}
	answered := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, call.ID, mcpResult(call))
	switch {
	case how == dead:
		panic(http.ErrAbortHandler)
	case how == overloaded:
		writeWhole(w, http.StatusServiceUnavailable, `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"overloaded"}}`, how)
	case call.Params.Name != "browse":
		writeWhole(w, http.StatusOK, answered, how)
	default:
		writeStream(w, r, mcpStream(call, answered), "", answer{}, how)
	}
}

// mcpStream is an answer as an event stream: what the server notifies of first, and
// the answer last.
func mcpStream(call rpcCall, result string) api {
	note := sse("message", `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"searching"}}`)
	return api{
		stream:     func(string, answer) []string { return []string{note, note, sse("message", result)} },
		streamType: "text/event-stream",
		idle:       ": keep-alive\n\n",
		broken:     sse("message", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"Internal error"}}`, call.ID)),
	}
}

// mcpResult is the result of a call, with what the newer generation requires.
func mcpResult(call rpcCall) string {
	result := mcpAnswer(call)
	if _, stateless := call.Params.Meta["io.modelcontextprotocol/protocolVersion"]; stateless {
		result = strings.Replace(result, "{", `{"resultType":"complete",`, 1)
	}
	return result
}

func mcpAnswer(call rpcCall) string {
	switch call.Method {
	case "initialize":
		return fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"e2e","version":"1.0.0"}}`, call.Params.ProtocolVersion)
	case "server/discover":
		return `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"e2e","version":"1.0.0"}}}`
	case "tools/list":
		const input = `"inputSchema":{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`
		return `{"tools":[{"name":"search","description":"Searches an encyclopedia.",` + input + `},` +
			`{"name":"browse","description":"Searches the web.",` + input + `},` +
			`{"name":"lookup","description":"Looks up a capital.",` + input + `,` +
			`"outputSchema":{"type":"object","properties":{"capital":{"type":"string"}},"required":["capital"]}}],"ttlMs":0,"cacheScope":"private"}`
	case "tools/call":
		return mcpToolResult(call)
	}
	return `{}`
}

// poisoned is what to search for to find an attack.
const poisoned = "a page that somebody prepared"

func mcpToolResult(call rpcCall) string {
	found := "The capital of France is the city of Paris."
	if call.Params.Arguments["query"] == poisoned {
		found = attack
	}
	content := `"content":[{"type":"text","text":` + quote(found) + `}],"isError":false`
	if call.Params.Name == "lookup" {
		content += `,"structuredContent":{"capital":"Paris"}`
	}
	return "{" + content + "}"
}
