package onnx

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
	"golang.org/x/text/unicode/norm"
)

// normalizer returns what a step does to a text.
func (s *step) normalizer() (func(string) string, error) {
	if s == nil {
		return func(text string) string { return text }, nil
	}
	switch s.Type {
	case "Sequence":
		return s.normalizers()
	case "BertNormalizer":
		return s.normalizeBERT, nil
	case "Lowercase":
		return strings.ToLower, nil
	case "StripAccents":
		return stripAccents, nil
	case "NFC":
		return norm.NFC.String, nil
	case "NFD":
		return norm.NFD.String, nil
	case "NFKC":
		return norm.NFKC.String, nil
	case "NFKD":
		return norm.NFKD.String, nil
	case "Strip":
		return s.strip, nil
	case "Replace":
		return s.replacer()
	case "Precompiled":
		return parseCharsmap(s.Charsmap)
	}
	return nil, unsupported("normalizer", s.Type)
}

func (s *step) normalizers() (func(string) string, error) {
	var all []func(string) string
	for _, one := range s.Normalizers {
		normalize, err := one.normalizer()
		if err != nil {
			return nil, err
		}
		all = append(all, normalize)
	}
	return func(text string) string {
		for _, normalize := range all {
			text = normalize(text)
		}
		return text
	}, nil
}

// normalizeBERT does what BERT's basic tokenizer does before it splits
// (https://github.com/google-research/bert/blob/master/tokenization.py).
func (s *step) normalizeBERT(text string) string {
	if s.CleanText {
		text = strings.Map(cleanRune, text)
	}
	if s.ChineseChars {
		text = spaceIdeographs(text)
	}
	if s.StripAccents != nil && *s.StripAccents || s.StripAccents == nil && s.Lowercase {
		text = stripAccents(norm.NFD.String(text))
	}
	if s.Lowercase {
		text = strings.ToLower(text)
	}
	return text
}

// cleanRune drops control characters and makes every kind of space a plain one.
func cleanRune(r rune) rune {
	switch {
	case r == '\t' || r == '\n' || r == '\r':
		return ' '
	case r == unicode.ReplacementChar || unicode.Is(unicode.C, r):
		return -1
	case unicode.IsSpace(r):
		return ' '
	}
	return r
}

func stripAccents(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, text)
}

// ideographs are the blocks that BERT takes for Chinese.
var ideographs = &unicode.RangeTable{
	R16: []unicode.Range16{{0x3400, 0x4dbf, 1}, {0x4e00, 0x9fff, 1}, {0xf900, 0xfaff, 1}},
	R32: []unicode.Range32{{0x20000, 0x2a6df, 1}, {0x2a700, 0x2b73f, 1}, {0x2b740, 0x2b81f, 1}, {0x2b920, 0x2ceaf, 1}, {0x2f800, 0x2fa1f, 1}},
}

func spaceIdeographs(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.Is(ideographs, r) {
			b.WriteString(" " + string(r) + " ")
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (s *step) strip(text string) string {
	if s.StripLeft {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
	}
	if s.StripRight {
		text = strings.TrimRightFunc(text, unicode.IsSpace)
	}
	return text
}

// replacer takes patterns of RE2. That of other engines, with a look-ahead, is an error.
func (s *step) replacer() (func(string) string, error) {
	switch {
	case s.Pattern.String != nil:
		return func(text string) string { return strings.ReplaceAll(text, *s.Pattern.String, s.Content) }, nil
	case s.Pattern.Regex != nil:
		pattern, err := regexp.Compile(*s.Pattern.Regex)
		if err != nil {
			return nil, fmt.Errorf("%w: a pattern that is replaced: %w", errTokenizer, err)
		}
		return func(text string) string { return pattern.ReplaceAllLiteralString(text, s.Content) }, nil
	}
	return nil, fmt.Errorf("%w: a Replace without a pattern", errTokenizer)
}

// A charsmap is the table of replacements of a SentencePiece model: a trie of the bytes of
// what is replaced, as a double array, and what stands in its place, each ended by a zero
// byte (https://github.com/google/sentencepiece/blob/master/src/normalizer.cc and
// https://github.com/huggingface/spm_precompiled).
type charsmap struct {
	trie         []uint32
	replacements string
}

func parseCharsmap(raw []byte) (func(string) string, error) {
	if len(raw) == 0 {
		return func(text string) string { return text }, nil
	}
	if len(raw) < 8 {
		return nil, fmt.Errorf("%w: a precompiled_charsmap of %d bytes", errTokenizer, len(raw))
	}
	size := binary.LittleEndian.Uint32(raw)
	if size%4 != 0 || size == 0 || int64(size) > int64(len(raw)-4) {
		return nil, fmt.Errorf("%w: a precompiled_charsmap whose trie is not in it", errTokenizer)
	}
	m := charsmap{replacements: string(raw[4+size:])}
	for at := uint32(4); at < 4+size; at += 4 {
		m.trie = append(m.trie, binary.LittleEndian.Uint32(raw[at:]))
	}
	return m.normalize, nil
}

// longestReplaced is under how many bytes a whole character of several code points is
// looked up, before its code points are one by one: that is how Hugging Face's do it.
const longestReplaced = 6

func (m charsmap) normalize(text string) string {
	var b strings.Builder
	for rest, state := text, -1; rest != ""; {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if replaced, found := m.replacement(cluster); len(cluster) < longestReplaced && found {
			b.WriteString(replaced)
			continue
		}
		for _, r := range cluster {
			if replaced, found := m.replacement(string(r)); found {
				b.WriteString(replaced)
			} else {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}

// replacement returns what stands for the shortest beginning of a text that the trie has.
// A unit of the trie holds, from its lowest bit, a label of 8 bits, whether it has a leaf,
// and where its children begin (https://github.com/s-yata/darts-clone).
func (m charsmap) replacement(text string) (string, bool) {
	node := offsetOf(m.trie[0])
	for i := range len(text) {
		if node ^= uint32(text[i]); text[i] == 0 || uint64(node) >= uint64(len(m.trie)) {
			return "", false
		}
		unit := m.trie[node]
		if unit&(1<<31|0xff) != uint32(text[i]) {
			return "", false
		}
		node ^= offsetOf(unit)
		if unit>>8&1 == 1 && uint64(node) < uint64(len(m.trie)) {
			return m.replacementAt(m.trie[node] &^ (1 << 31))
		}
	}
	return "", false
}

func (m charsmap) replacementAt(at uint32) (string, bool) {
	if uint64(at) >= uint64(len(m.replacements)) {
		return "", false
	}
	replaced, _, _ := strings.Cut(m.replacements[at:], "\x00")
	return replaced, true
}

func offsetOf(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }
