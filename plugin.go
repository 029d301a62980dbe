// Package lex is a set of Caddy modules that govern the traffic to a language
// model: they assess prompts, answers and tool calls, refuse attacks in the format
// of the caller's own API, and store a receipt of every decision.
//
// The package contains no code. Importing it registers the modules, so that
//
//	xcaddy build --with github.com/caddy-lex/lex
//
// builds a Caddy with all of them. The modules are in caddymodule, the commands in
// caddymodule/commands, the demo model in caddymodule/demo, the pipeline in govern
// and the mathematics in kernel. docs/architecture.md follows a request through them.
package lex

import (
	_ "github.com/caddy-lex/lex/caddymodule"
	_ "github.com/caddy-lex/lex/caddymodule/commands"
	_ "github.com/caddy-lex/lex/caddymodule/demo"
)
