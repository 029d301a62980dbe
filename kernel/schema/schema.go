package schema

import (
	"bytes"
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
	maxBytes      = 64 << 10 // bytes
	maxTokens     = 8192     // of JSON
	maxNesting    = 64
	maxDepth      = 32 // of arguments, which toolcall bounds by it
	maxSubschemas = 1024
	maxPattern    = 1000      // instructions of one compiled pattern
	maxPatterns   = 10_000    // those of all together
	maxWork       = 2_000_000 // units of a part
	maxKept       = 128
)

// address is where a schema stands for its own references. It leads nowhere.
const address = "urn:lex:tool"

// errUnread says that a schema is not one that arguments are checked against.
var errUnread = errors.New("the schema cannot be read")

// A schema is one that was compiled, with what bounds the work of a check.
type schema struct {
	*jsonschema.Schema
	parts []part
	root  int
}

// Cache keeps the last compiled schemas, and which ones could not be read, by the hash
// of their text. The zero value is empty. It is safe for concurrent use.
type Cache struct {
	made sync.Once
	kept *lru.Cache[[sha256.Size]byte, *schema]
}

// Fit reports whether the arguments of a call, as [Read] reads them, fit the text of a schema.
// unread says that nothing was checked, because the schema cannot be read or asks for too much work.
func (c *Cache) Fit(text []byte, arguments any) (fits, unread bool) {
	s := c.get(text)
	if s == nil || s.work(arguments) > maxWork {
		return true, true
	}
	return s.Validate(arguments) == nil || s.Validate(withoutNulls(arguments)) == nil, false
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
func (c *Cache) get(text []byte) *schema {
	c.made.Do(func() { c.kept, _ = lru.New[[sha256.Size]byte, *schema](maxKept) }) // it fails for a size below one
	if len(text) > maxBytes {
		return nil
	}
	key := sha256.Sum256(text)
	s, ok := c.kept.Get(key)
	if !ok {
		s, _ = compile(text)
		c.kept.Add(key, s)
	}
	return s
}

// compile compiles a schema of draft 4 to 2020-12, which is the default, or one of
// OpenAPI 3.0 or Google. References that leave it are errors, and so are patterns that RE2
// does not know.
func compile(text []byte) (s *schema, err error) {
	defer func() {
		if r := recover(); r != nil { // the compiler panics at what it takes for impossible
			s, err = nil, fmt.Errorf("%w: %v", errUnread, r)
		}
	}()
	if err := bound(text); err != nil {
		return nil, err
	}
	var doc any
	if err := Read(text, &doc); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnread, err)
	}
	doc, err = fromOpenAPI(doc)
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(jsonschema.SchemeURLLoader{}) // knows no scheme, so nothing is fetched
	compiler.UseRegexpEngine(new(patterns).compile)
	if err := compiler.AddResource(address, doc); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnread, err)
	}
	compiled, err := compiler.Compile(address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnread, err)
	}
	s = &schema{Schema: compiled}
	if err := s.survey(); err != nil {
		return nil, err
	}
	return s, nil
}

// bound counts the tokens of a JSON text and their depth.
func bound(text []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for tokens := 0; ; tokens++ {
		if tokens > maxTokens || d.StackDepth() > maxNesting {
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

// patterns are those of one schema, in instructions.
type patterns int

func (ps *patterns) compile(text string) (jsonschema.Regexp, error) {
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
	if *ps += patterns(size); size > maxPattern {
		return nil, fmt.Errorf("%w: a pattern is too large", errUnread)
	}
	compiled, err := regexp.Compile(text)
	return pattern{compiled, size}, err
}
