// Command caddy is Caddy with Lex built in: the plain `go build` way to the
// same binary that xcaddy makes from xcaddy.json.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/caddy-lex/lex"
)

func main() {
	caddycmd.Main()
}
