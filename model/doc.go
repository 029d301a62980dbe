// Package model holds clients of remote models that give evidence: embedders
// and judges.
//
// An [Embedder] turns texts into vectors in a space of its own. Vectors of two
// providers, or of two models of one provider, cannot be compared, so a
// comparison is always made inside one Embedder: the prompt against reference
// prompts that the same model embedded. A request is pinned to one provider;
// when that fails nothing else stands in, and the caller is told so that it can
// count the detection as degraded.
//
// A [Judge] asks a chat model whether an answer gave in to its prompt. What it
// answers is read strictly: everything but a whole verdict in the agreed form
// is a failure, never an acquittal. The judged texts are data, and the request
// is built so that they cannot pass for instructions.
//
// The clients follow no redirects, since a redirect would carry a prompt and a
// key to a host that nobody configured. They stop asking a provider that keeps
// failing or that asked for a pause. Their errors have a kind, see [Failure],
// and hold no address, no key and no text. All of them are safe for concurrent use.
package model
