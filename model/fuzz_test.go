package model

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
)

// These tests stand inside the package: a fuzzer that went through a socket
// would read some hundred answers a second in place of some ten thousand.

// Whatever a provider answers: one vector a text, of one dimension and of unit
// length, or a failure.
func FuzzVectors(f *testing.F) {
	for _, seed := range []string{
		`{"data":[{"index":1,"embedding":[1,2]},{"index":0,"embedding":[2,1]}]}`, `{"embeddings":[{"values":[1,2]},{"values":[1e-30,2]}]}`,
		`{"data":[{"index":-1},{}]}`, `{"data":[{"index":9223372036854775807,"embedding":[1e400]},{"index":0,"embedding":[1e200]}]}`,
		`{"data":{"0":1}}`, `[`, ``, `{"data":[null,null]}`, `{"embeddings":[{"values":[null]},{"values":[true]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		for name, p := range providers {
			vectors, err := p.vectors(answer, 2)
			if err == nil {
				checkVectors(t, vectors)
			} else if Why(err) != Unusable {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func checkVectors(t *testing.T, vectors []detect.Vector) {
	t.Helper()
	if len(vectors) != 2 || len(vectors[0]) == 0 || len(vectors[0]) != len(vectors[1]) {
		t.Fatalf("%v", vectors)
	}
	for _, v := range vectors {
		if s := detect.Similarity(v, v); math.Abs(s-1) > 1e-6 {
			t.Errorf("%v has no direction: %v", v, s)
		}
	}
}

// Whatever a judge says: a judgement that agrees with itself and quotes nothing,
// or a failure.
func FuzzJudgements(f *testing.F) {
	for _, seed := range []string{
		`{"reason":"r","capitulated":true,"category":"harmful_compliance","confidence":0.8}`,
		`{"reason":"r","capitulated":false,"category":"none","confidence":1}`,
		"safe", "unsafe\nS1,S2", "unsafe", "Yes", "No. It is fine.", "0", "1", `{"violation":1,"policy_category":"x"}`, "\x00", "\xff",
	} {
		f.Add(seed)
	}
	forms := map[string]form{}
	for _, name := range []string{"gpt", "llama-guard", "shieldgemma", "gpt-oss-safeguard"} {
		forms[name] = formOf(name)
	}
	f.Fuzz(func(t *testing.T, content string) {
		for name, form := range forms {
			got, err := form.read(content)
			switch {
			case err != nil && (Why(err) != Unusable || got.Capitulated):
				t.Errorf("%s: %+v, %v", name, got, err)
			case err == nil && (got.Capitulated != (got.Category != kernel.NoCapitulation) || !(got.Confidence >= 0 && got.Confidence <= 1) || len(got.Reason) > 160):
				t.Errorf("%s: %+v", name, got)
			}
		}
	})
}

// Whatever an API answers: a message, or a failure.
func FuzzContent(f *testing.F) {
	f.Add([]byte(`{"choices":[{"finish_reason":"stop","message":{"content":"safe"}}]}`))
	f.Add([]byte(`{"choices":[{"finish_reason":"stop","message":{"content":"safe","refusal":"no"}}]}`))
	f.Add([]byte(`{"choices":{}}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		content, err := readContent(answer)
		if (err == nil) != (content != "") || (err != nil && Why(err) != Unusable) {
			t.Errorf("%q, %v", content, err)
		}
	})
}

// Pieces of a text read it from its start to the end of the reach: put together
// without their overlap they are the text. No character is cut.
func FuzzPieces(f *testing.F) {
	f.Add("Ein schöner Tag im Mai", uint8(6), uint8(3))
	f.Add("日本語日本語", uint8(4), uint8(9))
	f.Fuzz(func(t *testing.T, text string, size, most uint8) {
		r := reach{size: 8 + int(size), overlap: 4, most: 1 + int(most)%8}
		text = strings.ToValidUTF8(strings.Join(strings.Fields(text), "_"), "?")
		read := 0
		for _, p := range r.pieces(text) {
			at := offset(text, p)
			if at > read || len(p) > r.size+utf8.UTFMax || !utf8.ValidString(p) {
				t.Fatalf("piece %q of %q at %d after %d, %+v", p, text, at, read, r)
			}
			read = at + len(p)
		}
		if want := min(len(text), r.bytes()); read < want-utf8.UTFMax {
			t.Errorf("read %d of %d bytes, %+v", read, want, r)
		}
	})
}

// offset is where a piece stands in the text that it was cut from.
func offset(text, piece string) int {
	return int(uintptr(unsafe.Pointer(unsafe.StringData(piece))) - uintptr(unsafe.Pointer(unsafe.StringData(text))))
}

// Whatever a guard answers: probabilities of classes that texts of the role can be of, or a
// failure.
func FuzzGuardAnswers(f *testing.F) {
	for _, seed := range []string{
		`[[{"label":"INJECTION","score":0.9},{"label":"SAFE","score":0.1}]]`, `{"data":[{"index":0,"label":"SAFE","probs":[0.9,0.1]}]}`,
		`{"data":[{"index":0,"label":"LABEL_1","probs":[1e-400,1]}]}`, `[[{"label":"LABEL_1","score":1},{"label":"LABEL_0","score":null}]]`, `[]`, `[[]]`, `null`, ``,
		`{"results":[{"category_scores":{"illicit":0.5,"hate":1}}]}`, `{"results":[{"category_scores":null}]}`,
		`{"choices":[{"message":{"content":"unsafe\nS1"},"finish_reason":"stop","logprobs":{"content":[{"token":"unsafe","top_logprobs":[{"token":"unsafe","logprob":-0.1},{"token":"safe","logprob":-2}]}]}}]}`,
		`{"choices":[{"message":{"content":"Safety: Unsafe\nCategories: Violent, Jailbreak"},"finish_reason":"stop","logprobs":{"content":[{"token":"Safety:"},{"token":" Unsafe","top_logprobs":[{"token":"","logprob":1e308},null]}]}}]}`,
		`{"choices":[{"message":{"content":"<score> yes </score>"},"finish_reason":"stop"}]}`,
		`{"choices":[{"message":{"content":"{\"reason\":\"\",\"category\":\"identity\",\"probability\":0.7}"},"finish_reason":"stop"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		for _, role := range Roles {
			for _, name := range []string{"PIGuard", "Prompt-Guard-2"} {
				verdicts, err := readTEI(answer, name, role)
				checkGuard(t, role, verdicts, err)
				verdicts, err = readVLLM(answer, name, role)
				checkGuard(t, role, verdicts, err)
			}
			verdicts, err := readModeration(answer, role)
			checkGuard(t, role, verdicts, err)
			for _, family := range wordedFamilies {
				verdict, err := family.read(answer, role)
				checkGuard(t, role, []Verdict{verdict}, err)
			}
			if content, err := readContent(answer); err == nil {
				verdict, err := readGuardVerdict(content, role)
				checkGuard(t, role, []Verdict{verdict}, err)
				verdict, err = readViolation(content, role)
				checkGuard(t, role, []Verdict{verdict}, err)
			}
		}
	})
}

func checkGuard(t *testing.T, role Role, verdicts []Verdict, err error) {
	t.Helper()
	if err != nil {
		if Why(err) != Unusable {
			t.Error(err)
		}
		return
	}
	for _, v := range verdicts {
		for class, p := range v {
			if !isProbability(p) || class.Of(new(kernel.Scores)) == nil {
				t.Errorf("%s: %v", role, v)
			}
		}
	}
}
