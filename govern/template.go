package govern

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
)

// A Template is what an application puts around its users' words in their own turn: the orders to
// summarise a conversation, to use only what was found, to answer in a form. To the detector such
// orders look like a user's who gives the assistant other rules. The operator, who knows the
// template, says by it that these words are the application's, and they are read like its
// instructions (see readApplication). What fills its places is read as the user's.
//
// A user who writes the words of a template gains nothing by it: they are what the operator wrote,
// and what stands between them is read.
type Template struct {
	pieces [][]string // the words before, between and behind the places
	sha256 string     // of its text
}

// place is where a template is filled in.
var place = regexp.MustCompile(`\{\{[^{}]*\}\}`)

// ParseTemplate reads a template: a text with places {{…}}, of which it may have none. White space
// around it and around its places means nothing.
func ParseTemplate(text string) (Template, error) {
	text = strings.TrimSpace(text)
	pieces := place.Split(text, -1)
	t := Template{pieces: make([][]string, len(pieces)), sha256: sha256Hex([]byte(text))}
	for i, piece := range pieces {
		t.pieces[i] = strings.Fields(piece)
		if len(t.pieces[i]) == 0 && i > 0 && i < len(pieces)-1 {
			return Template{}, errors.New("two places stand side by side, and nobody could tell where one ends; write a word between them, or make them one")
		}
	}
	switch {
	case !utf8.ValidString(text):
		return Template{}, errors.New("it is not UTF-8")
	case !strings.ContainsFunc(place.ReplaceAllString(text, ""), unicode.IsLetter):
		return Template{}, errors.New("it has no word beside its places {{…}}, so every text would be one")
	}
	return t, nil
}

// Match divides a text that was made by the template into the words of the template and what was
// filled in, which together are all of the text but for white space at its ends. Any white space
// is as good as that of the template. Where a piece of the template stands several times, the
// first one counts. ok is false for any other text.
func (t *Template) Match(text string) (own, filled []string, ok bool) {
	rest, last := strings.TrimSpace(text), len(t.pieces)-1
	end := after(rest, t.pieces[0])
	if end < 0 || last == 0 && end < len(rest) {
		return nil, nil, false
	}
	own, rest = append(own, rest[:end]), rest[end:]
	if last == 0 {
		return own, nil, true
	}
	from, _, ok := find(rest, t.pieces[last], true)
	if !ok {
		return nil, nil, false
	}
	tail, rest := rest[from:], rest[:from]
	for _, piece := range t.pieces[1:last] {
		from, to, ok := find(rest, piece, false)
		if !ok {
			return nil, nil, false
		}
		own, filled, rest = append(own, rest[from:to]), append(filled, rest[:from]), rest[to:]
	}
	return append(own, tail), append(filled, rest), true
}

// find returns where a piece stands in a text: the first time, or at the text's end.
func find(text string, piece []string, atEnd bool) (from, to int, ok bool) {
	if len(piece) == 0 {
		return len(text), len(text), true
	}
	for {
		next := strings.Index(text[from:], piece[0])
		if next < 0 {
			return 0, 0, false
		}
		from += next
		if n := after(text[from:], piece); n >= 0 && (!atEnd || from+n == len(text)) {
			return from, from + n, true
		}
		from++
	}
}

// after returns the length of the piece that a text begins with, or -1.
func after(text string, piece []string) int {
	left := text
	for i, word := range piece {
		if i > 0 {
			next := strings.TrimLeftFunc(left, unicode.IsSpace)
			if len(next) == len(left) {
				return -1
			}
			left = next
		}
		var ok bool
		if left, ok = strings.CutPrefix(left, word); !ok {
			return -1
		}
	}
	return len(text) - len(left)
}

// unframe takes the words of the operator's templates out of what people say, and returns the
// rest and these words.
func (g *Governor) unframe(texts []detect.Text) (rest, framing []detect.Text) {
	if len(g.Templates) == 0 {
		return texts, nil
	}
	for _, t := range texts {
		own, filled, ok := g.ofTemplate(t)
		if !ok {
			filled = []detect.Text{t}
		}
		rest, framing = append(rest, filled...), append(framing, own...)
	}
	return rest, framing
}

// OwnWords returns of a user's text what fills the places of a template, and all of a text that
// no template made.
func (g *Governor) OwnWords(text string) string {
	rest, framing := g.unframe([]detect.Text{{Source: detect.User, Body: text}})
	if len(framing) == 0 {
		return text
	}
	return joinTexts(rest)
}

// ofTemplate divides a text that people say and one of the templates made. Of several, the one
// counts that has the most words of its own.
func (g *Governor) ofTemplate(t detect.Text) (own, filled []detect.Text, ok bool) {
	if t.Source != detect.User {
		return nil, nil, false
	}
	most := -1
	for i := range g.Templates {
		words, places, made := g.Templates[i].Match(t.Body)
		if size := len(strings.Join(words, "")); made && size > most {
			own, filled, most = textsLike(t, detect.System, words), textsLike(t, t.Source, places), size
		}
	}
	return own, filled, most >= 0
}

// textsLike returns texts that are parts of another one, without those that are empty.
func textsLike(t detect.Text, source detect.Source, bodies []string) (texts []detect.Text) {
	for _, body := range bodies {
		if body = strings.TrimSpace(body); body != "" {
			texts = append(texts, detect.Text{Source: source, Body: body, Part: t.Part})
		}
	}
	return texts
}

// recordTemplates records how many bytes of each part are the words of templates.
func (o *Opened) recordTemplates(framing []detect.Text) {
	for _, t := range framing {
		at := slices.IndexFunc(o.Coverage.Inspected, func(p kernel.CoveredPart) bool { return p.Part == t.Part && p.Detector == DetectorTemplate })
		if at < 0 {
			at = len(o.Coverage.Inspected)
			o.Coverage.Inspected = append(o.Coverage.Inspected, kernel.CoveredPart{Part: t.Part, Detector: DetectorTemplate})
		}
		o.Coverage.Inspected[at].Bytes += len(t.Body)
	}
}
