// Package lex puts a governance kernel in front of a language model: a set of
// Caddy modules that assess the prompt, the model's answer and its tool calls,
// refuse attacks in the caller's own dialect and leave a receipt of every
// decision.
//
// This package holds no code. Importing it registers the modules, so that
//
//	xcaddy build --with github.com/caddy-lex/lex
//
// makes a Caddy that has them. The modules themselves are in caddymodule, the
// commands in caddymodule/commands, the demo model in caddymodule/demo and the
// mathematics in kernel.
package lex

import (
	_ "github.com/caddy-lex/lex/caddymodule"
	_ "github.com/caddy-lex/lex/caddymodule/commands"
	_ "github.com/caddy-lex/lex/caddymodule/demo"
)
