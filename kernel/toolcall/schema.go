package toolcall

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A schema comes from the client, or from a server of tools that it trusts too much, so
// these bound what it may cost. Schemas of real tools have some hundred tokens.
const (
	maxSchema       = 64 << 10 // bytes
	maxSchemaTokens = 8192     // of JSON
	maxSchemaDepth  = 64
	maxSubschemas   = 1024
	maxPattern      = 1000      // instructions of one compiled pattern
	maxPatterns     = 10_000    // those of all together
	maxSchemaWork   = 2_000_000 // units of a part
	keptSchemas     = 128
)

// schemaAddress is where a schema stands for its own references. It leads nowhere.
const schemaAddress = "urn:lex:tool"

// errUnread says that a schema is not one that arguments are checked against.
var errUnread = errors.New("the schema cannot be read")

// A schema is one that was compiled, with what bounds the work of a check.
type schema struct {
	*jsonschema.Schema
	parts []part
	root  int
}

// schemas keeps the last compiled schemas, and which ones could not be read, by the hash
// of their text. The zero value is empty. It is safe for concurrent use.
type schemas struct {
	made sync.Once
	kept *lru.Cache[[sha256.Size]byte, *schema]
}

// fit reports whether the arguments of a call fit the schema of its tool. unread says that
// there is a schema, and that nothing was checked.
func (ss *schemas) fit(c Call) (fits, unread bool) {
	defined := cmp.Or(c.Definition, c.BareDefinition)
	if defined == nil || len(defined.Schema) == 0 || c.Free {
		return true, false
	}
	s := ss.get(defined.Schema)
	if s == nil {
		return true, true
	}
	args, err := c.object()
	if err != nil || s.work(args) > maxSchemaWork {
		return true, true
	}
	return s.Validate(args) == nil || s.Validate(withoutNulls(args)) == nil, false
}

// withoutNulls returns a value without the members that are null. Models often write null
// for an optional member that they leave out.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			if member != nil {
				out[name] = withoutNulls(member)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, element := range v {
			out[i] = withoutNulls(element)
		}
		return out
	}
	return v
}

// get returns the compiled schema; nil if it cannot be read.
func (ss *schemas) get(text []byte) *schema {
	ss.made.Do(func() { ss.kept, _ = lru.New[[sha256.Size]byte, *schema](keptSchemas) }) // it fails for a size below one
	if len(text) > maxSchema {
		return nil
	}
	key := sha256.Sum256(text)
	s, ok := ss.kept.Get(key)
	if !ok {
		s, _ = compileSchema(text)
		ss.kept.Add(key, s)
	}
	return s
}

// compileSchema compiles a schema of draft 4 to 2020-12, which is the default, or one of
// OpenAPI 3.0 or Google. References that leave it are errors, and so are patterns that RE2
// does not know.
func compileSchema(text []byte) (s *schema, err error) {
	defer func() {
		if r := recover(); r != nil { // the compiler panics at what it takes for impossible
			s, err = nil, fmt.Errorf("%w: %v", errUnread, r)
		}
	}()
	if err := boundSchema(text); err != nil {
		return nil, err
	}
	var doc any
	if err := readJSON(text, &doc); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnread, err)
	}
	doc, err = fromOpenAPI(doc)
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(jsonschema.SchemeURLLoader{}) // knows no scheme, so nothing is fetched
	compiler.UseRegexpEngine(new(schemaPatterns).compile)
	if err := compiler.AddResource(schemaAddress, doc); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnread, err)
	}
	compiled, err := compiler.Compile(schemaAddress)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnread, err)
	}
	s = &schema{Schema: compiled}
	if err := s.survey(); err != nil {
		return nil, err
	}
	return s, nil
}

// boundSchema counts the tokens of a JSON text and their depth.
func boundSchema(text []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for tokens := 0; ; tokens++ {
		if tokens > maxSchemaTokens || d.StackDepth() > maxSchemaDepth {
			return fmt.Errorf("%w: it is too large or too deep", errUnread)
		}
		if _, err := d.ReadToken(); err != nil {
			return nil //nolint:nilerr // the end, or a mistake that readJSON reports
		}
	}
}

// A pattern is a regular expression of a schema, with its size.
type pattern struct {
	*regexp.Regexp
	size int
}

// schemaPatterns are those of one schema, in instructions.
type schemaPatterns int

func (ps *schemaPatterns) compile(text string) (jsonschema.Regexp, error) {
	if *ps > maxPatterns {
		return nil, fmt.Errorf("%w: its patterns are too large", errUnread)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	size := len(program.Inst)
	if *ps += schemaPatterns(size); size > maxPattern {
		return nil, fmt.Errorf("%w: a pattern is too large", errUnread)
	}
	compiled, err := regexp.Compile(text)
	return pattern{compiled, size}, err
}
