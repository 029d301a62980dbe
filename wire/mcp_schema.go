package wire

import (
	"net/url"
	"strings"

	"github.com/tidwall/gjson"
)

// The schemas of the Model Context Protocol, in all its revisions from 2024-11-05 to
// 2026-07-28 (https://modelcontextprotocol.io/specification, schema.ts). Both sides send
// messages of every kind, so there is one set of schemas for calls and answers.

// matchMCP claims the endpoint's usual path. The protocol prescribes none.
func matchMCP(path string, _ *url.URL) Dialect {
	if strings.HasSuffix(path, "/mcp") {
		return mcp{}
	}
	return nil
}

// resemblesMCP reports whether a body is a JSON-RPC message with one of the protocol's
// methods, or a batch with one.
func resemblesMCP(root gjson.Result) bool {
	for _, message := range mcpMessages(root) {
		version, method := "", ""
		message.ForEach(func(key, value gjson.Result) bool {
			switch {
			case strings.EqualFold(key.Str, "jsonrpc"):
				version = value.Str
			case strings.EqualFold(key.Str, "method"):
				method = value.Str
			}
			return true
		})
		if _, known := mcpParams[method]; known && version == "2.0" {
			return true
		}
	}
	return false
}

// mcpBody reads one message or a batch.
func mcpBody(w *walk, root gjson.Result) {
	if root.IsArray() {
		list(mcpMessage)(w, root)
		return
	}
	mcpMessage(w, root)
}

// mcpMessage reads a message by its method. One without is an answer to the other side.
func mcpMessage(w *walk, v gjson.Result) {
	if !v.IsObject() {
		w.err = invalid("a message is not an object")
		return
	}
	method := v.Get("method")
	role, read := User, mcpByMethod[method.Str]
	if !method.Exists() {
		role = Tool
	}
	if read == nil {
		read = mcpAnyMethod
	}
	w.inMessage(role, v, read)
}

// mcpByMethod are the messages with a known method, mcpAnyMethod is any other.
var (
	mcpByMethod = func() map[string]schema {
		out := make(map[string]schema, len(mcpParams))
		for method, params := range mcpParams {
			out[method] = mcpMessageWith(params)
		}
		return out
	}()
	mcpAnyMethod = mcpMessageWith(unknown)
)

// mcpMessageWith is a message with these params. They are read in an answer too, and an
// answer in a request: whatever a server takes a message for that is both, it was read.
func mcpMessageWith(params schema) schema {
	return object(members{
		"jsonrpc": scalar, "id": scalar, "method": scalar,
		"params": params, "result": mcpResult, "error": mcpError,
	})
}

// mcpParams are the params of each method of either side, without the notifications/
// that only say that something changed.
var mcpParams = map[string]schema{
	"initialize": params(members{"protocolVersion": scalar, "capabilities": scalars, "clientInfo": mcpClient}),
	"ping":       params(nil), "server/discover": params(nil),
	"tools/list": params(nil), "prompts/list": params(nil), "resources/list": params(nil), "resources/templates/list": params(nil),
	"roots/list": params(nil), "tasks/list": params(nil),
	"tools/call":            params(members{"name": mcpNamed, "arguments": gathered(Arguments)}),
	"prompts/get":           params(members{"name": mcpNamed, "arguments": gathered(Arguments)}),
	"resources/read":        params(members{"uri": mcpNamed}),
	"resources/subscribe":   params(members{"uri": mcpNamed}),
	"resources/unsubscribe": params(members{"uri": mcpNamed}),
	"completion/complete": params(members{
		"ref":      object(members{"type": scalar, "name": mcpNamed, "title": mcpNamed, "uri": mcpNamed}),
		"argument": gathered(Arguments), "context": gathered(Arguments),
	}),
	"logging/setLevel":     params(members{"level": scalar}),
	"subscriptions/listen": params(members{"notifications": mcpSubscriptions}),
	"tasks/get":            params(members{"taskId": scalar}),
	"tasks/result":         params(members{"taskId": scalar}),
	"tasks/cancel":         params(members{"taskId": scalar}),
	"tasks/update":         params(members{"taskId": scalar}),

	"sampling/createMessage": as(Definition, params(mcpSampling)),
	"elicitation/create":     as(Definition, params(mcpElicitation)),

	"notifications/initialized":                params(nil),
	"notifications/cancelled":                  params(members{"requestId": scalar, "reason": text(Text)}),
	"notifications/progress":                   params(members{"progressToken": scalar, "progress": scalar, "total": scalar, "message": text(Text)}),
	"notifications/message":                    params(members{"level": scalar, "logger": text(Name), "data": gathered(Text)}),
	"notifications/roots/list_changed":         params(nil),
	"notifications/tools/list_changed":         params(nil),
	"notifications/prompts/list_changed":       params(nil),
	"notifications/resources/list_changed":     params(nil),
	"notifications/resources/updated":          params(members{"uri": text(Name), "title": text(Name)}),
	"notifications/subscriptions/acknowledged": params(members{"notifications": mcpSubscriptions}),
	"notifications/elicitation/complete":       params(members{"elicitationId": scalar}),
	"notifications/tasks/status":               params(mcpTaskMembers),
	"notifications/tasks":                      params(mcpTaskMembers),
}

// params are a method's own and what every method may have. The 2026-07-28 revision
// repeats a request with the answers to what the server asked in between.
func params(own members) schema {
	return object(joined(mcpEveryParams, members{"inputResponses": as(Tool, each(mcpResult)), "requestState": scalar}, own))
}

var mcpEveryParams = members{"_meta": mcpMeta, "cursor": scalar, "task": object(members{"ttl": scalar})}

// mcpNamed is a name that the server gave to something of its own and that the client
// repeats: a tool may be called kill or poison, which would be alarming from a user.
var mcpNamed = as(Tool, text(Name))

// mcpMeta is what a message says of itself. No model reads it.
var mcpMeta = object(members{
	"progressToken": scalar, "traceparent": scalar, "tracestate": scalar, "baggage": scalar,
	"io.modelcontextprotocol/protocolVersion":    scalar,
	"io.modelcontextprotocol/clientInfo":         mcpClient,
	"io.modelcontextprotocol/serverInfo":         mcpServer,
	"io.modelcontextprotocol/clientCapabilities": scalars,
	"io.modelcontextprotocol/logLevel":           scalar,
	"io.modelcontextprotocol/subscriptionId":     scalar,
	"io.modelcontextprotocol/related-task":       object(members{"taskId": scalar}),
})

// mcpClient is how a client names itself. Agents show their models how a server does.
var (
	mcpClient = object(members{
		"name": scalar, "title": scalar, "version": scalar, "description": scalar, "websiteUrl": scalar, "icons": mcpIcons,
	})
	mcpServer = as(Definition, object(members{
		"name": text(Name), "title": text(Name), "version": scalar, "description": text(Text), "websiteUrl": scalar, "icons": mcpIcons,
	}))
	mcpIcons = list(object(members{"src": media(Image), "mimeType": scalar, "sizes": scalars, "theme": scalar}))
)

var mcpSubscriptions = object(members{
	"toolsListChanged": scalar, "promptsListChanged": scalar, "resourcesListChanged": scalar,
	"resourceSubscriptions": list(mcpNamed), "taskIds": list(scalar),
})

var mcpError = object(members{"code": scalar, "message": text(Text), "data": gathered(Text)})

// mcpResult is the result of any method. It does not say of which.
var mcpResult = object(joined(mcpTaskMembers, members{
	"_meta": mcpMeta, "resultType": scalar, "nextCursor": scalar, "ttlMs": scalar, "cacheScope": scalar,

	// initialize and server/discover
	"protocolVersion": scalar, "supportedVersions": list(scalar), "capabilities": scalars,
	"serverInfo": mcpServer, "instructions": as(Definition, text(Text)),
	// lists
	"tools": as(Definition, list(mcpTool)), "prompts": as(Definition, list(mcpPrompt)),
	"resources": as(Definition, list(mcpResource)), "resourceTemplates": as(Definition, list(mcpResource)),
	"roots": list(object(members{"_meta": mcpMeta, "uri": text(Name), "name": text(Name)})),
	"tasks": list(object(mcpTaskMembers)), "task": object(mcpTaskMembers),
	// tools/call, prompts/get, resources/read, completion/complete
	"content": mcpContent, "structuredContent": gathered(Text), "toolResult": gathered(Text), "isError": scalar,
	"description": as(Definition, text(Text)), "messages": as(Definition, list(mcpSaid)), "contents": list(mcpContents),
	"completion": object(members{"values": list(text(Text)), "total": scalar, "hasMore": scalar}),
	// sampling/createMessage and elicitation/create
	"role": scalar, "model": scalar, "stopReason": scalar, "action": scalar,
	// what the server asks before it answers
	"inputRequests": as(Definition, eachNamed(mcpInputRequest)), "requestState": scalar,
}))

func joined(all ...members) members {
	out := make(members)
	for _, some := range all {
		for name, read := range some {
			out[name] = read
		}
	}
	return out
}

var mcpTaskMembers = members{
	"taskId": scalar, "status": scalar, "statusMessage": text(Text), "createdAt": scalar, "lastUpdatedAt": scalar,
	"ttl": scalar, "pollInterval": scalar, "ttlMs": scalar, "pollIntervalMs": scalar,
}

// mcpInputRequest is a request of the server inside a result.
func mcpInputRequest(w *walk, v gjson.Result) {
	read := mcpInputRequests[v.Get("method").Str]
	if read == nil {
		read = unknown
	}
	object(members{"method": scalar, "params": read})(w, v)
}

var mcpInputRequests = map[string]schema{
	"sampling/createMessage": object(joined(mcpEveryParams, mcpSampling)),
	"elicitation/create":     object(joined(mcpEveryParams, mcpElicitation)),
	"roots/list":             object(mcpEveryParams),
}

var mcpTool = object(members{
	"name": text(Name), "title": text(Name), "description": text(Text), "inputSchema": gathered(Schema), "outputSchema": gathered(Schema),
	"annotations": object(members{
		"title": text(Name), "readOnlyHint": scalar, "destructiveHint": scalar, "idempotentHint": scalar, "openWorldHint": scalar,
	}),
	"execution": object(members{"taskSupport": scalar}), "icons": mcpIcons, "_meta": mcpMeta,
})

var mcpPrompt = object(members{
	"name": text(Name), "title": text(Name), "description": text(Text), "icons": mcpIcons, "_meta": mcpMeta,
	"arguments": list(object(members{"name": text(Name), "title": text(Name), "description": text(Text), "required": scalar})),
})

var mcpResource = object(members{
	"uri": text(Name), "uriTemplate": text(Name), "name": text(Name), "title": text(Name), "description": text(Text),
	"mimeType": scalar, "size": scalar, "annotations": mcpAnnotations, "icons": mcpIcons, "_meta": mcpMeta,
})

var mcpAnnotations = object(members{"audience": list(scalar), "priority": scalar, "lastModified": scalar})

// mcpContents is what a resource holds.
var mcpContents = object(members{
	"uri": text(Name), "mimeType": scalar, "text": text(Text), "blob": media(File), "_meta": mcpMeta,
})

// mcpContent is the content of a tool's result, of a sampled message, or of a form that
// was filled in.
func mcpContent(w *walk, v gjson.Result) {
	read := schema(mcpBlock)
	switch _, isBlock := mcpBlocks[v.Get("type").Str]; {
	case v.IsArray():
		read = list(mcpBlock)
	case !isBlock:
		read = gathered(Text)
	}
	read(w, v)
}

// mcpBlock is a block of content.
func mcpBlock(w *walk, v gjson.Result) {
	read, ok := mcpBlocks[v.Get("type").Str]
	if !ok {
		read = mcpUnknownBlock
	}
	read(w, v)
}

// mcpBlocks are the blocks by their type. The blocks that a model writes stand only in
// sampled messages.
var (
	mcpBlocks = map[string]schema{
		"text":          object(mcpPlainBlock(Image)),
		"image":         object(mcpPlainBlock(Image)),
		"audio":         object(mcpPlainBlock(Audio)),
		"resource":      object(mcpPlainBlock(Image)),
		"resource_link": object(mcpPlainBlock(Image)),
		"tool_use":      object(mcpModelBlock),
		"tool_result":   object(mcpModelBlock),
	}
	mcpUnknownBlock = object(joined(mcpModelBlock, members{"type": unknown}))
	mcpModelBlock   = joined(mcpPlainBlock(Image), members{
		"id": scalar, "toolUseId": scalar, "isError": scalar, "input": gathered(Arguments), "structuredContent": gathered(Text),
		"content": list(object(mcpPlainBlock(Image))),
	})
)

// mcpPlainBlock is a block whose data is of a kind.
func mcpPlainBlock(data Kind) members {
	return members{
		"type": scalar, "text": text(Text), "data": media(data), "resource": mcpContents,
		"uri": text(Name), "name": text(Name), "title": text(Name), "description": text(Text),
		"mimeType": scalar, "size": scalar, "annotations": mcpAnnotations, "icons": mcpIcons, "_meta": mcpMeta,
	}
}

// mcpSaid is a message of a prompt or for a model.
var mcpSaid = object(members{"role": scalar, "content": mcpContent, "_meta": mcpMeta})

// mcpSampling asks the client's model, mcpElicitation its user.
var mcpSampling = members{
	"messages": list(mcpSaid), "systemPrompt": text(Text), "stopSequences": list(text(Text)),
	"tools": list(mcpTool), "toolChoice": scalars, "includeContext": scalar, "modelPreferences": scalars,
	"temperature": scalar, "maxTokens": scalar, "metadata": gathered(Text),
}

var mcpElicitation = members{
	"mode": scalar, "message": text(Text), "requestedSchema": gathered(Schema), "elicitationId": scalar, "url": text(Name),
}
