// Package caddymodule is Lex as Caddy modules: everything about Lex that needs
// Caddy or HTTP. What becomes of a turn is decided in package govern; this package
// reads requests, asks the model behind it and answers clients. Only this package
// and the packages below it import Caddy.
//
// # A request
//
// [Handler] is the middleware that the directive lex places before reverse_proxy.
// Its ServeHTTP sends each request one of three ways:
//
//   - A path of ours, such as POST /lex/govern or GET /audits/recent, is served by
//     its endpoint. The table in endpoints.go lists all of them.
//   - A call of a model API is intercepted: interception.serve (intercept.go) takes
//     it from its first byte to its receipt. That function is the place to start
//     reading.
//   - Any other request that may carry a prompt is read loosely (unknown.go).
//     Requests that carry none pass.
//
// The answer of the model goes through an answerWriter (writer.go), which knows
// HTTP, to a governedAnswer (answer.go), which knows the turn. Blocked tool calls are
// taken out of the answer while the turn is committed (calls.go). Every error that a
// client can get is defined in errors.go.
//
// # The configuration
//
// [App] holds what all sites share: the policies, each with its Governor, and the
// limits, secrets, store, metrics and rules on tools (tools.go). caddyfile.go reads its
// options and those of the handler. Stores, embedders, judges and guards are guest
// modules: [StoreOpener], [EmbedderModule], [JudgeModule] and [GuardModule].
//
// A reload replaces the App and every Handler. The open store, the locks of its
// sessions and the clients of remote models outlive it in usage pools (sharedstore.go,
// remote.go). A request keeps the store open until it ends, and a process that
// exits waits for its requests (exit.go).
//
// The file docs/architecture.md follows a prompt through all packages.
package caddymodule
