// Package lex is a set of Caddy modules that govern the traffic to a language
// model: they assess prompts, answers and tool calls, refuse attacks in the format
// of the caller's own API, and store a receipt of every decision.
//
// The package contains no code. Importing it registers the modules, so that
//
//	xcaddy build --with github.com/caddy-lex/lex
//
// builds a Caddy with all of them. The modules are in caddymodule, the mathematics
// is in kernel, and docs/architecture.md follows a request through the packages.
package lex

import _ "github.com/caddy-lex/lex/caddymodule"
