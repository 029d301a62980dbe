package caddymodule

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"
)

// openAPIDocument describes our own endpoints. Tests hold it against the
// handlers and their answers.
//
//go:embed openapi.json
var openAPIDocument []byte

// The target of a link to a schema stands inside its details, because browsers
// open those that hold a target (HTML standard, ancestor revealing algorithm).
//
//go:embed docs.html
var docsHTML string

//go:embed docs.css
var docsStyle string

// openAPI serves GET /lex/openapi.json.
func openAPI(_ *request, w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Cache-Control", "public, max-age=3600")
	_ = writeBody(w, http.StatusOK, "application/json", openAPIDocument) // a failure means that the client left
	return nil
}

// docs serves GET /lex/docs: the same description as a page that needs nothing
// from anywhere else. Its policy allows its own style sheet, by its hash, and
// nothing more.
func docs(_ *request, w http.ResponseWriter, _ *http.Request) error {
	h := w.Header()
	h.Set("Content-Security-Policy", docsPolicy())
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "public, max-age=3600")
	_ = writeBody(w, http.StatusOK, "text/html; charset=utf-8", docsPage()) // a failure means that the client left
	return nil
}

var docsPolicy = sync.OnceValue(func() string {
	sum := sha256.Sum256([]byte(docsStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
})

// docsPage renders the page once.
var docsPage = sync.OnceValue(func() []byte {
	page := template.Must(template.New("docs").Parse(docsHTML))
	var out bytes.Buffer
	if err := page.Execute(&out, newDocsView(gjson.ParseBytes(openAPIDocument))); err != nil {
		panic(err) // template and document are part of the program
	}
	return out.Bytes()
})

// docsView is the document as the page shows it.
type docsView struct {
	Title, Description string
	Style              template.CSS
	Groups             []docsGroup
	Schemas            []docsSchema
}

type docsGroup struct {
	Name, Description string
	Operations        []docsOperation
}

type docsOperation struct {
	ID, Method, Path, Summary string
	Parameters                []docsParameter
	Body                      docsType
	Responses                 []docsResponse
}

type docsParameter struct {
	Name, In, Description string
	Type                  string
}

type docsResponse struct {
	Status, Description string
	Body                docsType
}

type docsSchema struct {
	Name, Description string
	Members           []docsMember
}

type docsMember struct {
	Name, Description string
	Required          bool
	Type              docsType
}

// docsType is a type in words, some of which are names of schemas.
type docsType []docsWord

type docsWord struct{ Text, Schema string }

func newDocsView(doc gjson.Result) docsView {
	v := docsView{
		Title: doc.Get("info.title").Str, Description: doc.Get("info.description").Str,
		Style: template.CSS(docsStyle), //nolint:gosec // G203: a file of this program
	}
	for _, tag := range doc.Get("tags").Array() {
		v.Groups = append(v.Groups, docsGroup{tag.Get("name").Str, tag.Get("description").Str, operationsOf(doc, tag.Get("name").Str)})
	}
	doc.Get("components.schemas").ForEach(func(name, schema gjson.Result) bool {
		v.Schemas = append(v.Schemas, docsSchema{name.Str, schema.Get("description").Str, membersOf(schema)})
		return true
	})
	return v
}

// operationsOf returns a tag's operations in the document's order.
func operationsOf(doc gjson.Result, tag string) (found []docsOperation) {
	doc.Get("paths").ForEach(func(path, item gjson.Result) bool {
		item.ForEach(func(method, op gjson.Result) bool {
			if op.Get("tags.0").Str == tag {
				found = append(found, operation(doc, path.Str, method.Str, op))
			}
			return true
		})
		return true
	})
	return found
}

func operation(doc gjson.Result, path, method string, op gjson.Result) docsOperation {
	o := docsOperation{
		ID: op.Get("operationId").Str, Method: strings.ToUpper(method), Path: path, Summary: op.Get("summary").Str,
		Body: typeOf(op.Get("requestBody.content.application/json.schema")),
	}
	for _, p := range op.Get("parameters").Array() {
		o.Parameters = append(o.Parameters, docsParameter{p.Get("name").Str, p.Get("in").Str, p.Get("description").Str, p.Get("schema.type").Str})
	}
	statuses := op.Get("responses").Map()
	for _, status := range slices.Sorted(maps.Keys(statuses)) {
		r := statuses[status]
		if name, ok := strings.CutPrefix(r.Get("$ref").Str, "#/components/responses/"); ok {
			r = doc.Get("components.responses." + name)
		}
		o.Responses = append(o.Responses, docsResponse{status, r.Get("description").Str, bodyOf(r)})
	}
	return o
}

// bodyOf is the type of a response's only content.
func bodyOf(response gjson.Result) docsType {
	var found docsType
	response.Get("content").ForEach(func(media, content gjson.Result) bool {
		if found = typeOf(content.Get("schema")); media.Str != "application/json" {
			found = docsType{{Text: media.Str}}
		}
		return false
	})
	return found
}

// membersOf returns an object's members, also those that it takes from others.
func membersOf(schema gjson.Result) []docsMember {
	var found []docsMember
	for _, base := range schema.Get("allOf").Array() {
		found = append(found, membersOf(base)...)
	}
	required := schema.Get("required").Array()
	schema.Get("properties").ForEach(func(name, member gjson.Result) bool {
		needed := slices.ContainsFunc(required, func(r gjson.Result) bool { return r.Str == name.Str })
		found = append(found, docsMember{name.Str, member.Get("description").Str, needed, typeOf(member)})
		return true
	})
	return found
}

// typeOf says a schema in a few words.
func typeOf(schema gjson.Result) docsType {
	ref, isRef := strings.CutPrefix(schema.Get("$ref").Str, "#/components/schemas/")
	switch {
	case !schema.Exists():
		return nil
	case isRef:
		return docsType{{Schema: ref}}
	case schema.Get("oneOf").Exists():
		return joined(schema.Get("oneOf").Array(), " or ")
	case schema.Get("const").Exists():
		return docsType{{Text: schema.Get("const").Raw}}
	case schema.Get("enum").Exists():
		return docsType{{Text: enumText(schema.Get("enum").Array())}}
	case schema.Get("type").Str == "array":
		return append(docsType{{Text: "array of "}}, typeOf(schema.Get("items"))...)
	case schema.Get("type").Str == "object" && schema.Get("properties").Exists():
		return docsType{{Text: "{" + strings.Join(memberNames(schema), ", ") + "}"}}
	case schema.Get("type").IsArray():
		return docsType{{Text: enumText(schema.Get("type").Array())}}
	case schema.Get("type").Exists():
		return docsType{{Text: schema.Get("type").Str}}
	}
	return docsType{{Text: "any"}}
}

func joined(alternatives []gjson.Result, between string) (out docsType) {
	for i, a := range alternatives {
		if i > 0 {
			out = append(out, docsWord{Text: between})
		}
		out = append(out, typeOf(a)...)
	}
	return out
}

func enumText(values []gjson.Result) string {
	words := make([]string, len(values))
	for i, v := range values {
		if words[i] = v.String(); words[i] == "" {
			words[i] = "null"
		}
	}
	return strings.Join(words, ", ")
}

func memberNames(schema gjson.Result) []string {
	var names []string
	schema.Get("properties").ForEach(func(name, _ gjson.Result) bool {
		names = append(names, name.Str)
		return true
	})
	return names
}
