package onnx

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A tokenizer turns text into the numbers that a model reads, as tokenizer.json of Hugging
// Face's tokenizers describes it
// (https://huggingface.co/docs/tokenizers/main/en/pipeline): normalize, split into words,
// look up pieces of words, put the special tokens around them. It is safe for concurrent
// use.
type tokenizer struct {
	normalize func(string) string
	split     func(words []string) []string
	pieces    vocabulary
	unknown   int64
	// special tokens are those that mean something to the model, such as [SEP]. A text
	// cannot contain them: where its words are spelled like one, they are unknown.
	special       map[int64]bool
	before, after []int64
}

// A vocabulary cuts a word into pieces and returns their numbers.
type vocabulary interface {
	lookUp(word string) []int64
}

// A tokenizerFile is tokenizer.json. Its truncation and padding are left out: the guard
// cuts texts itself, and calls nothing read that was cut off.
type tokenizerFile struct {
	AddedTokens []struct {
		ID      int64  `json:"id"`
		Content string `json:"content"`
		Special bool   `json:"special"`
	} `json:"added_tokens"`
	Normalizer    *step          `json:"normalizer"`
	PreTokenizer  *step          `json:"pre_tokenizer"`
	PostProcessor *step          `json:"post_processor"`
	Model         tokenizerModel `json:"model"`
}

// A step of the pipeline, with the members of all types of steps that are known.
type step struct {
	Type          string `json:"type"`
	Normalizers   []step `json:"normalizers"`
	PreTokenizers []step `json:"pretokenizers"`
	Processors    []step `json:"processors"`

	// BertNormalizer
	CleanText    bool  `json:"clean_text"`
	ChineseChars bool  `json:"handle_chinese_chars"`
	StripAccents *bool `json:"strip_accents"`
	Lowercase    bool  `json:"lowercase"`

	// Strip, Replace, Precompiled
	StripLeft  bool            `json:"strip_left"`
	StripRight bool            `json:"strip_right"`
	Pattern    replacedPattern `json:"pattern"`
	Content    string          `json:"content"`
	Charsmap   []byte          `json:"precompiled_charsmap"`

	// Metaspace
	Replacement    string `json:"replacement"`
	PrependScheme  string `json:"prepend_scheme"`
	AddPrefixSpace *bool  `json:"add_prefix_space"`
	Split          *bool  `json:"split"`

	// TemplateProcessing, BertProcessing and RobertaProcessing
	Single        []templatePart             `json:"single"`
	SpecialTokens map[string]templateSpecial `json:"special_tokens"`
	CLS           *tokenPair                 `json:"cls"`
	SEP           *tokenPair                 `json:"sep"`
}

type replacedPattern struct {
	String *string `json:"String"`
	Regex  *string `json:"Regex"`
}

type templatePart struct {
	SpecialToken *struct {
		ID string `json:"id"`
	} `json:"SpecialToken"`
	Sequence *struct {
		ID string `json:"id"`
	} `json:"Sequence"`
}

type templateSpecial struct {
	IDs []int64 `json:"ids"`
}

// A tokenPair is written as a list of a token and its number.
type tokenPair struct{ id int64 }

func (p *tokenPair) UnmarshalJSON(b []byte) error {
	var content string
	return json.Unmarshal(b, &[]any{&content, &p.id})
}

// errTokenizer is what all errors of parseTokenizer begin with.
var errTokenizer = errors.New("tokenizer.json")

// unsupported says what a tokenizer.json has that is not known here.
func unsupported(what, kind string) error {
	return fmt.Errorf("%w: a %s of the type %q is not supported", errTokenizer, what, kind)
}

// parseTokenizer reads tokenizer.json. What it does not know exactly is an error: a guard
// that reads other tokens than the model was trained on would be wrong silently.
func parseTokenizer(document []byte) (*tokenizer, error) {
	var file tokenizerFile
	if err := json.Unmarshal(document, &file); err != nil {
		return nil, fmt.Errorf("%w: %w", errTokenizer, err)
	}
	t := &tokenizer{special: make(map[int64]bool)}
	var err error
	if t.pieces, t.unknown, err = file.Model.vocabulary(); err != nil {
		return nil, err
	}
	if t.normalize, err = file.Normalizer.normalizer(); err != nil {
		return nil, err
	}
	if t.split, err = file.PreTokenizer.splitter(); err != nil {
		return nil, err
	}
	if t.before, t.after, err = file.PostProcessor.around(); err != nil {
		return nil, err
	}
	for _, added := range file.AddedTokens {
		if !added.Special {
			return nil, fmt.Errorf("%w: added tokens that are not special, such as number %d, are not supported", errTokenizer, added.ID)
		}
		t.special[added.ID] = true
	}
	for _, id := range slices.Concat(t.before, t.after) {
		t.special[id] = true
	}
	return t, nil
}

// encode returns the tokens of a text with those that the model wants around it.
func (t *tokenizer) encode(text string) []int64 {
	ids := slices.Clone(t.before)
	text = t.normalize(strings.ToValidUTF8(text, "?"))
	for _, word := range t.split([]string{text}) {
		for _, id := range t.pieces.lookUp(word) {
			if t.special[id] {
				id = t.unknown
			}
			ids = append(ids, id)
		}
	}
	return append(ids, t.after...)
}

// around returns the tokens that stand before and after a single text.
func (s *step) around() (before, after []int64, err error) {
	if s == nil {
		return nil, nil, nil
	}
	switch s.Type {
	case "BertProcessing", "RobertaProcessing":
		if s.CLS == nil || s.SEP == nil {
			return nil, nil, fmt.Errorf("%w: a %s without cls or sep", errTokenizer, s.Type)
		}
		return []int64{s.CLS.id}, []int64{s.SEP.id}, nil
	case "TemplateProcessing":
		return s.template()
	}
	return nil, nil, unsupported("post_processor", s.Type)
}

func (s *step) template() (before, after []int64, err error) {
	texts := 0
	for _, part := range s.Single {
		switch {
		case part.Sequence != nil:
			texts++
		case part.SpecialToken == nil:
			return nil, nil, fmt.Errorf("%w: a part of the template is neither a sequence nor a special token", errTokenizer)
		case texts == 0:
			before = append(before, s.SpecialTokens[part.SpecialToken.ID].IDs...)
		default:
			after = append(after, s.SpecialTokens[part.SpecialToken.ID].IDs...)
		}
	}
	if texts != 1 {
		return nil, nil, fmt.Errorf("%w: the template of a single text has %d texts", errTokenizer, texts)
	}
	return before, after, nil
}
