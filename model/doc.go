// Package model holds clients of remote models that give evidence: embedders
// and judges.
//
// An [Embedder] turns texts into vectors in a space of its own. Vectors of two
// providers, or of two models of one provider, cannot be compared, so a
// comparison is always made inside one Embedder: the prompt against reference
// prompts that the same model embedded. A request is pinned to one provider.
// When that provider fails, no other takes its place; the caller gets the error
// and can count the detection as degraded.
//
// A [Judge] asks a chat model whether an answer gave in to its prompt. What the
// model says is read strictly: everything but a whole judgement in the agreed
// form is a failure, and never means that the answer is fine. The judged texts
// are data, and the request is built so that they cannot pass for instructions.
//
// The clients follow no redirects, since a redirect would carry a prompt and a
// key to a host that nobody configured. They stop asking a provider that keeps
// failing or that asked for a pause. Their errors have a kind, see [Failure],
// and hold no address, no key and no text. All of them are safe for concurrent
// use.
//
// Both clients ask through one path: the breaker refuses while the provider is
// down (breaker.go), the gate shares the requests between callers (gate.go), and
// client.go sends them. Start reading at [Judge.Judge] and [Embedder.Threat].
package model
