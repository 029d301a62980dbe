package onnx

import (
	"strings"
	"unicode"
)

// splitter returns how a step splits a text into words.
func (s *step) splitter() (func([]string) []string, error) {
	if s == nil {
		return func(words []string) []string { return words }, nil
	}
	switch s.Type {
	case "Sequence":
		return s.splitters()
	case "BertPreTokenizer":
		return each(splitBERT), nil
	case "Whitespace":
		return each(splitWords), nil
	case "WhitespaceSplit":
		return each(strings.Fields), nil
	case "Punctuation":
		return each(func(text string) []string { return isolate(text, isPunctuation) }), nil
	case "Metaspace":
		return each(s.splitMetaspace), nil
	}
	return nil, unsupported("pre_tokenizer", s.Type)
}

func (s *step) splitters() (func([]string) []string, error) {
	var all []func([]string) []string
	for _, one := range s.PreTokenizers {
		split, err := one.splitter()
		if err != nil {
			return nil, err
		}
		all = append(all, split)
	}
	return func(words []string) []string {
		for _, split := range all {
			words = split(words)
		}
		return words
	}, nil
}

func each(split func(string) []string) func([]string) []string {
	return func(words []string) (out []string) {
		for _, word := range words {
			out = append(out, split(word)...)
		}
		return out
	}
}

// splitBERT splits at spaces, and makes each punctuation mark a word.
func splitBERT(text string) (words []string) {
	for _, word := range strings.Fields(text) {
		words = append(words, isolate(word, isPunctuation)...)
	}
	return words
}

// isPunctuation is BERT's: all of ASCII that is no letter, digit, space or control
// character counts.
func isPunctuation(r rune) bool {
	return r > ' ' && r < unicode.MaxASCII && !unicode.IsLetter(r) && !unicode.IsDigit(r) || unicode.IsPunct(r)
}

// isolate makes each rune that is alone a word.
func isolate(text string, alone func(rune) bool) (words []string) {
	from := 0
	for at, r := range text {
		if !alone(r) {
			continue
		}
		if from < at {
			words = append(words, text[from:at])
		}
		from = at + len(string(r))
		words = append(words, text[at:from])
	}
	if from < len(text) {
		words = append(words, text[from:])
	}
	return words
}

// splitWords splits where the pattern \w+|[^\w\s]+ does.
func splitWords(text string) (words []string) {
	from, last := 0, rune(' ')
	for at, r := range text + " " {
		kind := kindOf(r)
		if kind == last {
			continue
		}
		if last != ' ' {
			words = append(words, text[from:at])
		}
		from, last = at, kind
	}
	return words
}

// kindOf tells letters from spaces and the rest. \w is that of Unicode's regular
// expressions (UTS 18, annex C).
func kindOf(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic) || r == '\u200c' || r == '\u200d':
		return 'w'
	}
	return '.'
}

// splitMetaspace writes spaces as a mark, puts one before the text, and splits before each.
func (s *step) splitMetaspace(text string) (words []string) {
	if text == "" {
		return nil
	}
	mark := s.Replacement
	if mark == "" {
		mark = "\u2581"
	}
	text = strings.ReplaceAll(text, " ", mark)
	if s.prepends() && !strings.HasPrefix(text, mark) {
		text = mark + text
	}
	if s.Split != nil && !*s.Split {
		return []string{text}
	}
	from := 0
	for at := strings.Index(text, mark); at >= 0; {
		if from < at {
			words = append(words, text[from:at])
		}
		from = at
		if at = strings.Index(text[from+len(mark):], mark); at >= 0 {
			at += from + len(mark)
		}
	}
	if from < len(text) {
		words = append(words, text[from:])
	}
	return words
}

func (s *step) prepends() bool {
	if s.PrependScheme != "" {
		return s.PrependScheme != "never"
	}
	return s.AddPrefixSpace == nil || *s.AddPrefixSpace
}
