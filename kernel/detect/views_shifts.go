package detect

import (
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

// commonWords are frequent English words, and those that attacks are made of: what
// a reading must consist of to be taken for language.
var commonWords = strings.Fields(`
	a to of by in on the and you your all for how what this that with are not now have will can from tell make give show write about
	please ignore previous prior instructions instruction rules rule system prompt reveal answer question forget disregard
	guidelines guideline pretend without restrictions restriction assistant user following above told before after
	explain steps step build bomb weapon create anything everything must should would could like was were they them
	their there here when where who why which into over just only any every person people do does did
	print repeat secret password hidden original full text message act role unrestricted filter filters filtered policy
	policies illegal legal kill steal hack virus malware drug drugs tell told all will well always also else still
	until people possible full help model language small simple initial safely violate violent list limit limits life like`)

var commonSet = func() map[string]bool {
	out := make(map[string]bool, len(commonWords))
	for _, w := range commonWords {
		out[w] = true
	}
	return out
}()

func isCommonWord(word string) bool { return commonSet[word] }

// A key is a way to exchange letters: 1 to 25 are Caesar's shifts that undo
// themselves by it, then come atbash and words written backwards.
const (
	atbash    = 26
	backwards = 27
	pigLatin  = 28
	spelling  = 29 // no key of words, but those of a spelling alphabet
	keys      = 30
)

// disguised maps what the common words look like under a key to the set of
// such keys. Words that are common themselves are left out.
var disguised = func() map[string]uint32 {
	out := make(map[string]uint32, len(commonWords)*keys)
	for _, w := range commonWords {
		if len(w) < 3 {
			continue
		}
		for key := 1; key < backwards; key++ {
			out[string(exchange([]byte(w), unkey(key)))] |= 1 << key
		}
		out[mirrored(w)] |= 1 << backwards
		for _, pig := range pigs(w) {
			out[pig] |= 1 << pigLatin
		}
	}
	for w := range spellingAlphabet {
		if len(w) > 2 {
			out[w] |= 1 << spelling
		}
	}
	for _, w := range commonWords {
		delete(out, w)
	}
	return out
}()

// beginnings and endings have the first and the last three letters of the disguised words,
// so that most words of a text need not be looked up.
var beginnings, endings = func() (first, last threes) {
	for w := range disguised {
		first.add(w)
		last.add(w[len(w)-3:])
	}
	return first, last
}()

// threes is a set of three small letters.
type threes [26*26*26/64 + 1]uint64

// at is the place of the first three letters of a word.
func (t *threes) at(word string) int {
	return (int(word[0]-'a')*26+int(word[1]-'a'))*26 + int(word[2]-'a')
}

func (t *threes) add(word string) {
	at := t.at(word)
	t[at/64] |= 1 << (at % 64)
}

func (t *threes) has(word string) bool {
	at := t.at(word)
	return t[at/64]>>(at%64)&1 == 1
}

// unkey is the key that undoes a key.
func unkey(key int) int {
	if key == atbash {
		return atbash
	}
	return 26 - key
}

// exchange applies a key to the lower-case letters of b.
func exchange(b []byte, key int) []byte {
	for i, c := range b {
		switch {
		case !asciiLetter(c):
		case key == atbash:
			b[i] = 'a' + 'z' - c
		default:
			b[i] = 'a' + (c-'a'+byte(key))%26 //nolint:gosec // G115: 0 < key < 26
		}
	}
	return b
}

// Enough disguised words under one key must stand in a text, most of them
// different, for it to be read so: chance brings one now and then.
const minDisguised = 3

// keysOf returns the set of keys under which a text holds language.
func keysOf(d *derived) uint32 {
	var count [keys]int
	var last [keys]string
	normal, asked := d.text, 0
	for i := 0; i < len(normal); {
		if i-asked >= contextInterval {
			d.checkContext()
			asked = i
		}
		if !asciiLetter(normal[i]) {
			i++
			continue
		}
		end := i + 1
		for end < len(normal) && asciiLetter(normal[end]) {
			end++
		}
		word := normal[i:end]
		i = end
		if len(word) < 3 || !beginnings.has(word) || !endings.has(word[len(word)-3:]) {
			continue
		}
		for set := disguised[word]; set != 0; set &= set - 1 {
			key := bits.TrailingZeros32(set)
			if last[key] != word {
				count[key]++
				last[key] = word
			}
		}
	}
	best := slices.Max(count[:backwards])
	var found uint32
	for key, n := range count {
		if n >= minDisguised && (n == best || key >= backwards) {
			found |= 1 << key
		}
	}
	return found
}

// unkeyed returns the readings of a text under the keys that fit it: the shift
// or atbash undone, the text turned around, each of its words turned around,
// Pig Latin undone, spelt words joined.
func unkeyed(text, d *derived) (out []*derived) {
	set := keysOf(d)
	if key := bits.TrailingZeros32(set); key < backwards {
		out = append(out, &derived{text: string(exchange([]byte(d.text), key)), up: d})
	}
	if set&(1<<backwards) != 0 {
		out = append(out, &derived{text: mirrored(d.text), mirror: true, up: d}, wordsMirrored(d))
	}
	if set&(1<<pigLatin) != 0 {
		out = append(out, unpig(d))
	}
	if set&(1<<spelling) != 0 {
		out = append(out, unspell(text))
	}
	return out
}

func wordsMirrored(d *derived) *derived {
	s, w := d.text, rewrite(d)
	for i := 0; i < len(s); {
		end := i
		for end < len(s) && s[end] != ' ' {
			end++
		}
		if end > i {
			w.swap(mirrored(s[i:end]), i)
		} else {
			end++
			w.keep(i, end)
		}
		i = end
	}
	return w.done()
}

// mirrored returns a text backwards, character by character.
func mirrored(s string) string {
	out := make([]byte, 0, len(s))
	for len(s) > 0 {
		r, size := utf8.DecodeLastRuneInString(s)
		out = utf8.AppendRune(out, r)
		s = s[:len(s)-size]
	}
	return string(out)
}
