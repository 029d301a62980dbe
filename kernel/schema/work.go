package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A schema whose parts refer to each other may ask for work that grows exponentially with
// the depth of the arguments, and the library that checks it knows no bound. So before
// arguments are checked, [schema.work] bounds what that takes: how often the parts of the
// schema are applied to one value of the arguments, times the values.

// A part is what is known of one subschema. Values and text are what one application
// costs, in units of some hundred nanoseconds: for a value, and for 16 bytes of text in
// it. The others are indices of parts.
type part struct {
	values, text float64
	same         []int // applied to the same value
	each         []int // applied to the values within it
	one          []int // applied to some of these, but only one of them to each
}

// survey lists the parts of a schema so that each stands behind those that it applies to
// the same value, the whole schema last. Parts that refer to each other in a circle,
// choose what to apply by where they are applied (dynamic references), or lie elsewhere
// are errors. It takes out formats, which JSON Schema leaves to the application since
// 2019, so that all drafts are checked alike.
func (s *schema) survey() error {
	v := surveyor{places: make(map[*jsonschema.Schema]int)}
	if err := v.same(s.Schema); err != nil {
		return err
	}
	for len(v.later) > 0 { // what is applied to other values may be a circle
		next := v.later[0]
		v.later = v.later[1:]
		if err := v.same(next); err != nil {
			return err
		}
	}
	s.parts, s.root = v.link(), v.places[s.Schema]
	return nil
}

type surveyor struct {
	places map[*jsonschema.Schema]int // -1: under way
	found  []*jsonschema.Schema
	later  []*jsonschema.Schema
}

func (v *surveyor) same(s *jsonschema.Schema) error {
	switch place, known := v.places[s]; {
	case known && place < 0:
		return fmt.Errorf("%w: it goes round in a circle", errUnread)
	case known:
		return nil
	case len(v.places) >= maxSubschemas:
		return fmt.Errorf("%w: it has too many parts", errUnread)
	case s.RecursiveRef != nil || s.DynamicRef != nil || !strings.HasPrefix(s.Location, address+"#"):
		return fmt.Errorf("%w: it refers to what is not in it", errUnread)
	}
	s.Format = nil
	v.places[s] = -1
	for _, t := range sameValue(s) {
		if err := v.same(t); err != nil {
			return err
		}
	}
	v.places[s] = len(v.found)
	v.found = append(v.found, s)
	v.later = append(append(v.later, eachValue(s)...), oneValue(s)...)
	return nil
}

func (v *surveyor) link() []part {
	parts := make([]part, len(v.found))
	for i, s := range v.found {
		parts[i] = part{same: v.indices(sameValue(s)), each: v.indices(eachValue(s)), one: v.indices(oneValue(s))}
		parts[i].values, parts[i].text = applying(s)
	}
	return parts
}

func (v *surveyor) indices(of []*jsonschema.Schema) (out []int) {
	for _, s := range of {
		out = append(out, v.places[s])
	}
	return out
}

// sameValue returns the subschemas that are applied to the value itself.
func sameValue(s *jsonschema.Schema) []*jsonschema.Schema {
	out := slices.Concat(s.AllOf, s.AnyOf, s.OneOf, []*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else})
	for _, d := range s.DependentSchemas {
		out = append(out, d)
	}
	for _, d := range s.Dependencies {
		out = appendSchema(out, d)
	}
	return withoutNil(out)
}

// eachValue returns those that may be applied to any value within it, or to its names.
func eachValue(s *jsonschema.Schema) []*jsonschema.Schema {
	out := []*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems}
	for _, p := range s.PatternProperties {
		out = append(out, p)
	}
	return withoutNil(appendSchema(appendSchema(appendSchema(out, s.AdditionalProperties), s.Items), s.AdditionalItems))
}

// oneValue returns those that are applied to one value each, by its name or place.
func oneValue(s *jsonschema.Schema) []*jsonschema.Schema {
	out := slices.Clone(s.PrefixItems)
	for _, p := range s.Properties {
		out = append(out, p)
	}
	if items, ok := s.Items.([]*jsonschema.Schema); ok {
		out = append(out, items...)
	}
	return withoutNil(out)
}

// appendSchema adds what is a schema, and not a bool or a list of something.
func appendSchema(to []*jsonschema.Schema, v any) []*jsonschema.Schema {
	if s, ok := v.(*jsonschema.Schema); ok {
		to = append(to, s)
	}
	return to
}

func withoutNil(schemas []*jsonschema.Schema) []*jsonschema.Schema {
	return slices.DeleteFunc(schemas, func(s *jsonschema.Schema) bool { return s == nil })
}

// applying is what it costs to apply the keywords of a schema that are no schemas.
func applying(s *jsonschema.Schema) (values, text float64) {
	values = 4 + float64(len(s.Required)+len(s.DependentRequired)+len(s.Dependencies)+len(s.DependentSchemas))
	for _, names := range s.DependentRequired {
		values += float64(len(names))
	}
	for _, d := range s.Dependencies {
		if names, ok := d.([]string); ok {
			values += float64(len(names))
		}
	}
	if s.Enum != nil {
		values += 4 * float64(measure(s.Enum.Values).values)
	}
	if s.Const != nil {
		values += 4 * float64(measure(*s.Const).values)
	}
	if s.Minimum != nil || s.Maximum != nil || s.ExclusiveMinimum != nil || s.ExclusiveMaximum != nil || s.MultipleOf != nil {
		values += 16
	}
	if s.UniqueItems {
		values, text = values+64, text+maxDepth
	}
	if s.MinLength != nil || s.MaxLength != nil {
		text++
	}
	if s.Pattern != nil {
		text += patternSize(s.Pattern)
	}
	for p := range s.PatternProperties {
		text += patternSize(p)
	}
	return values, text
}

func patternSize(r jsonschema.Regexp) float64 {
	if p, ok := r.(pattern); ok {
		return float64(p.size)
	}
	return maxPattern
}

// size is what there is to check in a value.
type size struct{ values, bytes, depth int }

func measure(v any) (z size) {
	z.values = 1
	within := func(v any) {
		y := measure(v)
		z.values, z.bytes, z.depth = z.values+y.values, z.bytes+y.bytes, max(z.depth, y.depth+1)
	}
	switch v := v.(type) {
	case string:
		z.bytes = len(v)
	case []any:
		for _, item := range v {
			within(item)
		}
	case map[string]any:
		for name, member := range v {
			within(name)
			within(member)
		}
	}
	return z
}

// work bounds what it takes to check a value, in the units of a part.
func (s *schema) work(v any) float64 {
	z := measure(v)
	type cost struct{ values, text float64 }
	var deeper []cost // of each part, applied one level below
	costs := make([]cost, len(s.parts))
	for range z.depth + 1 {
		for i, p := range s.parts {
			c := cost{p.values, p.text}
			for _, j := range p.same { // they stand before the part
				c.values, c.text = c.values+costs[j].values, c.text+costs[j].text
			}
			if deeper != nil {
				var most cost
				for _, j := range p.one {
					most.values, most.text = max(most.values, deeper[j].values), max(most.text, deeper[j].text)
				}
				for _, j := range p.each {
					most.values, most.text = most.values+deeper[j].values, most.text+deeper[j].text
				}
				c.values, c.text = c.values+most.values, c.text+most.text
			}
			costs[i] = c
		}
		deeper = append(deeper[:0], costs...)
	}
	whole := costs[s.root]
	return whole.values*float64(z.values) + whole.text*(float64(z.values)+float64(z.bytes)/16)
}
