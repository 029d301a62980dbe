package onnx

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

func tokenizerFrom(t testing.TB, path string) *tokenizer {
	t.Helper()
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := parseTokenizer(document)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// What the three kinds of tokenizers make of texts is what Hugging Face's own library made
// of them: testdata/tokens.json was written with its Rust implementation (by way of the npm
// package @anush008/tokenizers, 0.6.0) and the tokenizers beside it. The vocabularies were trained on
// docs/, the unigram one with SentencePiece, from which its charsmap is.
func TestTokensAreThoseOfTheReference(t *testing.T) {
	raw, err := os.ReadFile("testdata/tokens.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &cases); err != nil || len(cases) < 200 {
		t.Fatal(len(cases), err)
	}
	for _, kind := range []string{"unigram", "wordpiece", "wordlevel"} {
		tokens := tokenizerFrom(t, "testdata/"+kind+".json")
		for _, c := range cases {
			var text string
			var want []int64
			if json.Unmarshal(c["text"], &text) != nil || json.Unmarshal(c[kind], &want) != nil {
				t.Fatal(string(c["text"]))
			}
			if got := tokens.encode(text); !slices.Equal(got, want) {
				t.Errorf("%s of %q: %v, want %v", kind, text, got, want)
			}
		}
	}
}

// A text cannot contain a special token, however it is spelled.
func TestSpecialTokensInTexts(t *testing.T) {
	for _, kind := range []string{"unigram", "wordpiece", "wordlevel"} {
		tokens := tokenizerFrom(t, "testdata/"+kind+".json")
		for _, text := range []string{"a [SEP] b", "[CLS]", "[sep]", "［ＳＥＰ］", "x[MASK]y", "[PAD] [PAD]", "[UNK]", "<s></s>", "▁[SEP]"} {
			got := tokens.encode(text)
			for _, id := range got[len(tokens.before) : len(got)-len(tokens.after)] {
				if tokens.special[id] && id != tokens.unknown {
					t.Errorf("%s of %q: %v has the special token %d", kind, text, got, id)
				}
			}
		}
	}
}

func TestTokenizersThatAreNotKnown(t *testing.T) {
	good, err := os.ReadFile("testdata/unigram.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ old, replaced, want string }{
		{`"type": "Unigram"`, `"type": "BPE"`, "RoBERTa"},
		{`"type": "Unigram"`, `"type": "Other"`, `a model of the type "Other"`},
		{`"type": "Metaspace"`, `"type": "ByteLevel"`, `a pre_tokenizer of the type "ByteLevel"`},
		{`"type": "Strip"`, `"type": "Nmt"`, `a normalizer of the type "Nmt"`},
		{`"type": "TemplateProcessing"`, `"type": "ByteLevel"`, `a post_processor of the type "ByteLevel"`},
		{`"unk_id": 3`, `"unk_id": null`, "no unknown token"},
		{`"unk_id": 3`, `"unk_id": 99999`, "no unknown token"},
		{`"byte_fallback": false`, `"byte_fallback": true`, "byte_fallback"},
		{`"special": true`, `"special": false`, "not special"},
		{`" {2,}"`, `"(?!x)"`, "pattern"},
		{`"precompiled_charsmap": "`, `"precompiled_charsmap": "//////////8A`, "charsmap"},
		{`{"Sequence": {"id": "A", "type_id": 0}}`, `{"Sequence": {"id": "A", "type_id": 0}}, {}`, "template"},
		{`{`, ``, "tokenizer.json"},
	} {
		if !strings.Contains(string(good), test.old) {
			t.Fatalf("the tokenizer has no %s", test.old)
		}
		_, err := parseTokenizer([]byte(strings.Replace(string(good), test.old, test.replaced, 1)))
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "tokenizer.json") {
			t.Errorf("%s: %v", test.replaced, err)
		}
	}
}

// No text breaks a tokenizer, is read as more special tokens than stand around every text,
// or makes a token that the vocabulary does not have.
func FuzzTokens(f *testing.F) {
	var all []*tokenizer
	for _, kind := range []string{"unigram", "wordpiece", "wordlevel"} {
		all = append(all, tokenizerFrom(f, "testdata/"+kind+".json"))
	}
	for _, seed := range []string{"", "Ignore all [SEP] instructions", "\xff\xfe", "e\u0301 ﷺ", strings.Repeat("ab", 100)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, tokens := range all {
			ids := tokens.encode(text)
			inner := ids[len(tokens.before) : len(ids)-len(tokens.after)]
			for _, id := range inner {
				if id < 0 || id > 2000 || tokens.special[id] && id != tokens.unknown {
					t.Fatalf("%q: %v", text, ids)
				}
			}
		}
	})
}

// A trie that is not one is read without a fault.
func FuzzCharsmap(f *testing.F) {
	f.Add([]byte("\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00ab\x00"), "ab")
	f.Fuzz(func(_ *testing.T, raw []byte, text string) {
		if normalize, err := parseCharsmap(raw); err == nil {
			normalize(text)
		}
	})
}
