package resemblance

import (
	"bytes"
	"iter"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxParts bounds the parts of a call that are judged by themselves; what is behind them is one.
const maxParts = 64

// MaxArguments bounds the arguments, in bytes, of which the weights say anything: what was
// learnt is of calls, and a program or a text of pages is none. Callers keep to it. Of the
// conversation as much is read, the beginning and the end.
const MaxArguments = 4 << 10

// A Call is what is read of one.
type Call struct {
	Tool      string // its name
	Arguments []byte // JSON
	Request   string // what the user asked for; "" if that is not known
	Read      string // what the agent has read last

	// IsProse reports whether a member of this name holds a text for people.
	IsProse func(member string) bool
}

// impression collects the features of a call, or of a part of it, each once.
type impression struct {
	seen     [Buckets / 64]uint64
	features []uint32
}

func (i *impression) add(kind byte, words ...string) {
	h := (uint32(0x811c9dc5) ^ uint32(kind)) * 0x01000193 // FNV-1a
	for _, w := range words {
		for _, b := range []byte(w) {
			h = (h ^ uint32(b)) * 0x01000193
		}
		h = (h ^ ' ') * 0x01000193
	}
	i.put((h ^ h>>17) & (Buckets - 1))
}

func (i *impression) put(features ...uint32) {
	for _, f := range features {
		if bit := uint64(1) << (f % 64); i.seen[f/64]&bit == 0 {
			i.seen[f/64] |= bit
			i.features = append(i.features, f)
		}
	}
}

// take returns the features and begins anew.
func (i *impression) take() []uint32 {
	features := i.features
	*i = impression{}
	return features
}

// Impressions returns the features of a call: of the whole of it first, then of each of its
// parts, which are the scalars of the arguments and the commands in them.
//
// The kinds of features are t and T, words and pairs of the tool's name; k, words of members'
// names; a, A and S, words of values, pairs, and pairs over one word between; p, P and Q, the same
// of prose; f, the first word behind the tool's; K, words of short values with their members';
// q and n, words that the user said and did not say; r and o, the shares of words that the user
// said and that only a text did; m, whether the marked names of the request are in the call.
func Impressions(c Call) (parts [][]uint32) {
	i := new(impression)
	name := wordsOf(c.Tool)
	for n, w := range name {
		i.add('t', w)
		if n > 0 {
			i.add('T', name[n-1], w)
		}
	}
	tool := i.take()
	asked, read := wordSet(c.Request), wordSet(c.Read)
	words, said, copied := 0, 0, 0
	parts = append(parts, nil)
	eachMember(c.Arguments, func(member, text string) {
		key := wordsOf(member)
		one, two, over := byte('a'), byte('A'), byte('S')
		if c.IsProse(member) {
			one, two, over = 'p', 'P', 'Q'
		}
		before, last := "", "" // words of the part before
		for part := range commandsIn(text) {
			value := wordsOf(part)
			for _, w := range key {
				i.add('k', w)
			}
			for n, w := range value {
				i.add(one, w)
				if last != "" {
					i.add(two, last, w)
				} else if n == 0 && len(name) > 0 {
					i.add('f', name[0], w)
				}
				if before != "" {
					i.add(over, before, w)
				}
				before, last = last, w
				if len(key) > 0 && len(value) <= 3 {
					i.add('K', key[len(key)-1], w)
				}
				if len(w) <= 2 {
					continue
				}
				words++
				switch {
				case asked[w]:
					said++
					i.add('q', w)
				case len(asked) > 0:
					i.add('n', w)
				}
				if read[w] && !asked[w] {
					copied++
				}
			}
			if len(parts) < maxParts {
				parts = append(parts, i.take())
			}
		}
	})
	parts = append(parts, i.take()) // what is left
	if len(asked) > 0 {
		i.add('r', sixths(said, words))
	}
	if len(read) > 0 {
		i.add('o', sixths(copied, words))
	}
	if len(asked) > 0 {
		i.add('m', string(NamedIn(c.Request, c.Arguments)))
	}
	share := append(i.take(), tool...)
	for n, part := range parts[1:] {
		i.put(part...)
		parts[n+1] = append(part, share...)
	}
	i.put(share...)
	parts[0] = i.take()
	return parts
}

// commandsIn cuts a text where a shell begins a new command.
func commandsIn(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := 0
		for n := 0; n < len(text); n++ {
			if c := text[n]; c == '\n' || c == ';' || (c == '&' || c == '|') && n+1 < len(text) && text[n+1] == c {
				if n > start && !yield(text[start:n]) {
					return
				}
				start = n
			}
		}
		if start < len(text) || start == 0 {
			yield(text[start:])
		}
	}
}

// sixths names the share of words.
func sixths(of, words int) string { return strconv.Itoa(min(5, 6*of/max(1, words))) }

// eachMember calls f with each scalar of the arguments and the name of the member that it stands
// in. A text that is JSON itself is read as if its members stood there: wrapping a call says
// nothing of it.
func eachMember(arguments []byte, f func(member, text string)) { eachMemberOf(arguments, "", f) }

func eachMemberOf(arguments []byte, member string, f func(member, text string)) {
	d := jsontext.NewDecoder(bytes.NewBuffer(arguments), jsontext.AllowDuplicateNames(true)) // which is read where it stands
	for {
		token, err := d.ReadToken()
		if err != nil {
			return
		}
		in, n := d.StackIndex(d.StackDepth())
		switch kind := token.Kind(); {
		case kind == '{' || kind == '[' || kind == '}' || kind == ']':
		case in == '{' && n%2 == 1:
			member = token.String()
		default:
			if text := token.String(); mayBeJSON(text) && jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true)) {
				eachMemberOf([]byte(text), member, f)
			} else {
				f(member, text)
			}
		}
	}
}

// mayBeJSON reports whether a text begins as an object or an array does, or one that is quoted
// once more.
func mayBeJSON(s string) bool {
	s = strings.TrimPrefix(strings.TrimSpace(s), `"`)
	return strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[")
}
