package detect

import "context"

// Rounds is how many layers of encoding are opened, one inside the other.
const Rounds = 4

// MaxViews bounds the views of a text: itself, two with invisible characters
// shown, one for each layer, and twelve each of the outermost and the innermost
// layer in which letters were played with.
const MaxViews = 3 + Rounds + 2*12

// MaxText is how many bytes of a text are read. It keeps positions in 32 bits
// whatever normalising does to the length; what a server takes is far less.
const MaxText = 1 << 27

// View is one reading of a text.
type View struct {
	// Text is normalised, see [Normalise].
	Text string
	from *derived
}

// Span returns the range of the original text that Text[from:to] was read
// from, 0 <= from <= to <= len(Text): to the character where a text is only
// normalised, the whole encoded piece where it was decoded.
func (v View) Span(from, to int) Span { return v.from.span(from, to) }

// Reading is a text as a detector should look at it.
type Reading struct {
	// Views of the text, without repetition. The first is the text itself,
	// normalised; the others are what is hidden in it.
	Views []View
	// Whole is false when something encoded remained after [Rounds] layers, or
	// the text was longer than [MaxText]: it must not be called clean then.
	Whole bool
}

// Read returns the normalised text and the texts hidden in it: behind percent
// escapes, entities, escapes of JSON and programming languages, tags inside
// words, base64, base32, hexadecimal, octal, decimal and binary codes, letters
// set apart, leetspeak, letters exchanged by Caesar's shifts or atbash, words
// or lines reversed, tag characters and variation selectors. What is decoded
// stands in its place within the rest of the text. A text is scored by its
// worst view, so that a harmless decoding changes nothing.
//
// It is pure, safe for concurrent use, linear in time and memory: at most
// [MaxViews], each at most about as long as the text. It stops soon after ctx
// is done, and gives its error then, and no other.
func Read(ctx context.Context, s string) (r Reading, err error) {
	defer catch(&err)
	return read(ctx, s), nil
}

func read(ctx context.Context, s string) Reading {
	o := opener{Reading: Reading{Whole: len(s) <= MaxText}}
	raw := original(ctx, s[:min(len(s), MaxText)])
	raw.ask()
	text := clean(raw)
	plain := folded(text)
	raw.ask()
	seen := look(text.text)
	o.add(plain)
	if text != raw { // only then can something invisible be in it
		for _, shown := range []*derived{unhide(raw), unglue(raw)} {
			if shown != nil {
				o.add(normalised(shown))
			}
		}
	}
	o.games(plain, seen)
	if last, seen := o.unwrap(text, seen); last != nil {
		o.games(last, seen)
	}
	return o.Reading
}

type opener struct{ Reading }

// add appends a view unless it is nil or was seen.
func (o *opener) add(d *derived) bool {
	if d == nil {
		return false
	}
	for _, v := range o.Views {
		if v.Text == d.text {
			return false
		}
	}
	o.Views = append(o.Views, View{d.text, d})
	return true
}

// unwrap opens layer after layer and returns the innermost text, normalised,
// or nil when nothing was encoded, and the signs in it. seen are those of d.
func (o *opener) unwrap(d *derived, seen signs) (*derived, signs) {
	var last *derived
	for range Rounds {
		next := layer(d, seen)
		if next == d {
			return last, seen
		}
		d = clean(next)
		last, seen = folded(d), look(d.text)
		o.add(last)
	}
	o.Whole = o.Whole && layer(d, seen) == d
	return last, seen
}

// layer opens what is encoded in a text, once, and returns the same text when
// nothing is.
func layer(d *derived, seen signs) *derived {
	d.ask()
	if seen.escapes {
		if next := unescape(d); next != d {
			d, seen = next, look(next.text)
		}
	}
	if seen.run >= minBlob || seen.digits >= minCodes {
		if next := decode(d); next != d {
			d, seen = next, look(next.text)
		}
	}
	if seen.foreign || seen.alone >= minApart {
		d = unspace(d)
	}
	return d
}

// games adds the readings of a normalised text in which letters were played
// with, as far as the signs suggest it. A text whose letters were set right is
// looked at once more.
func (o *opener) games(d *derived, seen signs) {
	d.ask()
	found := unkeyed(d)
	d.ask()
	if seen.foreign || seen.split >= minSplit {
		found = append(found, unsplit(d))
	}
	if seen.foreign || seen.joined > 1 {
		found = append(found, unjoin(d))
	}
	if seen.foreign || seen.leet > 1 {
		found = append(found, unleet(d))
	}
	for _, played := range found {
		d.ask()
		if played != nil && o.add(played) {
			o.add(unleet(played))
		}
	}
}
