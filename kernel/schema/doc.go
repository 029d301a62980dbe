// Package schema checks the arguments of a tool call against the JSON Schema that the request
// defines its tool with.
//
// A schema comes from strangers: from a client, or from a server of tools. So nothing is fetched for it,
// its size is bounded (schema.go), and before arguments are checked it is estimated how much work
// that takes (work.go), because schemas whose parts refer to each other can ask for work that
// grows exponentially. What cannot be read, or would take too much, checks nothing, and the caller
// learns that. Schemas of OpenAPI 3.0 and of Google's are rewritten as JSON Schema (openapi.go).
package schema
