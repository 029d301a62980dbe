package toolcall

import (
	"github.com/caddy-lex/lex/kernel/schema"
)

// object returns the arguments as rules and schemas see them. A call without arguments,
// and one that takes any text, has none. It is as strict as readArguments.
func (c Call) object() (map[string]any, error) {
	object := make(map[string]any)
	if c.Free || noArguments(c.Arguments) {
		return object, nil
	}
	return object, schema.Read(c.Arguments, &object)
}
