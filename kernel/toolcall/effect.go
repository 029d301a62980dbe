package toolcall

import "github.com/caddy-lex/lex/kernel"

// effectOf is what a tool does to the world by its name and its definition.
func effectOf(Call) (e kernel.ToolEffect, highRisk bool) { return kernel.ToolOther, false }
