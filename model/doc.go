// Package model holds clients of remote models that give evidence: embedders
// now, judges later.
//
// An embedder turns texts into vectors in a space of its own. Vectors of two
// providers, or of two models of one provider, cannot be compared, so a
// comparison is always made inside one [Embedder]: the prompt against reference
// prompts that the same model embedded. A request is pinned to one provider;
// when that fails nothing else stands in, and the caller is told so that it can
// count the detection as degraded.
//
// The clients follow no redirects, since a redirect would carry a prompt and a
// key to a host that nobody configured, and their errors hold no address, no
// key and no text.
package model
