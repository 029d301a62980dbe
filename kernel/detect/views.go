package detect

// Rounds is how many layers of encoding are opened, one inside the other.
const Rounds = 4

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
// 2 + Rounds + 2·7 views, each at most about as long as the text.
func Read(s string) Reading {
	o := opener{Reading: Reading{Whole: len(s) <= MaxText}}
	raw := original(s[:min(len(s), MaxText)])
	plain := normalised(raw)
	o.add(plain)
	for _, shown := range []*derived{unhide(raw), unglue(raw)} {
		if shown != nil {
			o.add(normalised(shown))
		}
	}
	o.games(plain)
	last := o.unwrap(clean(raw))
	if last != nil {
		o.games(last)
	}
	return o.Reading
}

// Views returns the texts of [Read].
func Views(s string) []string {
	r := Read(s)
	out := make([]string, len(r.Views))
	for i, v := range r.Views {
		out[i] = v.Text
	}
	return out
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
// or nil when nothing was encoded.
func (o *opener) unwrap(d *derived) (last *derived) {
	for range Rounds {
		next := layer(d)
		if next == d {
			return last
		}
		d = clean(next)
		last = fold(d)
		o.add(last)
	}
	o.Whole = o.Whole && layer(d) == d
	return last
}

// layer opens what is encoded in a text, once, and returns the same text when
// nothing is.
func layer(d *derived) *derived {
	d = unescape(d)
	d = decode(d)
	return unspace(d)
}

// games adds the readings of a normalised text in which letters were played
// with. A text whose letters were set right is looked at once more.
func (o *opener) games(d *derived) {
	for _, played := range append(unkeyed(d), unsplit(d), unjoin(d), unleet(d)) {
		if played != nil && o.add(played) {
			o.add(unleet(played))
		}
	}
}
