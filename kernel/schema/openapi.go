package schema

import (
	"fmt"
	"strconv"
	"strings"
)

// Tools are also defined with schemas of OpenAPI 3.0, and Google's generateContent API with
// a subset of it whose types are written in capitals and whose limits, as all 64-bit integers
// in the JSON of protocol buffers, are strings. JSON Schema has no meaning for any of these.
// https://spec.openapis.org/oas/v3.0.3#schema-object, https://ai.google.dev/api/caching#Schema

// Where a schema has others: one, a list of them, or some by name. "items" may be either.
var (
	memberKeywords = []string{
		"additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
		"unevaluatedItems", "unevaluatedProperties",
	}
	listKeywords = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	mapKeywords  = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)

// limitKeywords are the keywords whose values are whole numbers.
var limitKeywords = []string{"maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties"}

// fromOpenAPI rewrites what is OpenAPI's or Google's in a decoded schema as JSON Schema, in
// place, and returns the schema. What is JSON Schema already stays as it is, except where it says
// nullable, which its author means as OpenAPI does.
func fromOpenAPI(doc any) (any, error) {
	s, ok := doc.(map[string]any)
	if !ok {
		return doc, nil
	}
	if err := eachSubschema(s, fromOpenAPI); err != nil {
		return nil, err
	}
	for _, limit := range limitKeywords {
		if text, ok := s[limit].(string); ok {
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				s[limit] = n
			}
		}
	}
	switch name, _ := s["type"].(string); name {
	case "TYPE_UNSPECIFIED":
		delete(s, "type")
	case "INTEGER", "NUMBER": // whose values Google lists as strings
		if s["enum"] != nil {
			return nil, fmt.Errorf("%w: its numbers are listed as strings", errUnread)
		}
		s["type"] = strings.ToLower(name)
	case "ARRAY", "BOOLEAN", "NULL", "OBJECT", "STRING":
		s["type"] = strings.ToLower(name)
	}
	if s["nullable"] == true {
		return map[string]any{"anyOf": []any{s, map[string]any{"type": "null"}}}, nil
	}
	return s, nil
}

// eachSubschema replaces each schema that stands directly in another one.
func eachSubschema(s map[string]any, replace func(any) (any, error)) (err error) {
	for _, name := range memberKeywords {
		if v, ok := s[name].(map[string]any); ok {
			if s[name], err = replace(v); err != nil {
				return err
			}
		}
	}
	for _, name := range listKeywords {
		list, _ := s[name].([]any)
		for i, v := range list {
			if list[i], err = replace(v); err != nil {
				return err
			}
		}
	}
	for _, name := range mapKeywords {
		named, _ := s[name].(map[string]any)
		for key, v := range named {
			if named[key], err = replace(v); err != nil {
				return err
			}
		}
	}
	return nil
}
