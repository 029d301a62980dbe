// Package caddymodule is the imperative shell around the kernel. Only this package
// and those below it, caddymodule/commands and caddymodule/demo, import Caddy.
//
// A request takes one of two ways in and meets one pipeline:
//
//	assess(prompt) → decide → generate → conclude(output) → commit receipt → answer
//
// POST /lex/govern (govern.go, govern_stream.go) asks the handlers after lex
// twice, once with the prompt alone and once with the constitutional context,
// and answers with both. Intercepted traffic (intercept.go, writer.go, settle.go)
// is the caller's own API call on its way to the model: its newest turn is judged
// and its history cleaned (history.go), it is forwarded otherwise as it came, and
// its answer is governed on the way back. Both are an [exchange] (exchange.go),
// which knows nothing of HTTP. What no dialect claims (unknown.go) is read loosely
// (loose.go); its answer is not.
//
// The [App] holds what all sites share; what must outlive a reload (the open
// store, the locks of sessions, the metrics) is an [engine] in a usage pool; so
// are the clients of remote models (remote.go), which evidence on prompts
// (embedders.go) and answers (judges.go) may come from.
package caddymodule
