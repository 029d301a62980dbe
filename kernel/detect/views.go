package detect

import "context"

// Rounds is how many layers of encoding are opened, one inside the other.
const Rounds = 4

// maxViews bounds the views of a text: the text itself, two with invisible
// characters shown, one for each layer, and thirty deobfuscations each of the
// outermost and the innermost layer.
const maxViews = 3 + Rounds + 2*30

// MaxText is how many bytes of a text are read. It keeps positions in 32 bits
// whatever normalising does to the length; what a server takes is far less.
const MaxText = 1 << 27

// view is one reading of a text.
type view struct {
	// Text is normalised, see [Normalise].
	Text string
	from *derived
}

// inspected is a text as a detector should look at it.
type inspected struct {
	// Views of the text, without repetition. The first is the text itself,
	// normalised; the others are texts hidden in it.
	Views []view
	// Whole is false when something encoded remained after [Rounds] layers, or
	// the text was longer than [MaxText]: it must not be called clean then.
	Whole bool
	// Unread counts the bytes of runs that are neither language nor data of a
	// known form: a text may be in them that nobody here can read. It is 0
	// for a reading that is not whole.
	Unread int

	played bool // a deobfuscation gave a reading
}

// read returns the normalised text and the texts hidden in it: behind percent
// escapes, entities, UTF-7, escapes, character codes and joined literals of
// programming languages, tags and comments inside words, base64 (whole, in
// pieces, turned by rot13, backwards, packed by gzip, zlib or deflate), base32,
// base58, base85 in three alphabets, uuencode, hexadecimal, octal, decimal and
// binary codes, places in the alphabet, Morse, Braille, spelling alphabets, Pig
// Latin, letters set apart, written downwards or without spaces, leetspeak,
// letters exchanged by Caesar's shifts or atbash, words or lines reversed, tag
// characters and variation selectors. What is decoded stands in its place
// within the rest of the text. A text is scored by its worst view, so that a
// harmless decoding changes nothing.
//
// What stays open: ciphers with a key (Vigenère, exchanged letters, XOR),
// transpositions other than columns, Bacon's and Polybius' codes, base36, base62,
// base91 and base65536, brotli, zstandard and LZMA, base58 and rows without
// spaces beyond some hundred letters, rows without spaces that are also turned
// around, shifted or in leetspeak, pairs of words that run together, base64 in
// pieces of three or fewer or with its case lost, one rare encoding in another,
// spelling alphabets and Morse of other languages, acrostics, words that are cut
// and pasted by a program's own logic, pictures made of signs, and what only a
// speaker of the language sees (Pig Latin of rare words, slang, made-up codes that
// the prompt itself explains). Unread counts parts of that, but neither a cipher
// in short words nor one that leaves the vowels. A decoding that may find language
// in noise must find English: base58, base85, uuencode, deflate without a header,
// base64 in pieces, places in the alphabet and rows without spaces are not read in
// other languages.
//
// It is pure, safe for concurrent use, linear in time and memory: at most
// maxViews, each at most about as long as the text. Soon after
// ctx is done it panics with a cancellation.
func read(ctx context.Context, s string) inspected {
	o := decoder{inspected: inspected{Whole: len(s) <= MaxText}}
	raw := newSource(ctx, s[:min(len(s), MaxText)])
	raw.checkContext()
	text := clean(raw)
	plain := folded(text)
	raw.checkContext()
	seen := findSigns(text.text)
	o.add(plain)
	if text != raw { // only then can something invisible be in it
		for _, shown := range []*derived{unhide(raw), unglue(raw)} {
			if shown != nil {
				o.add(normalised(shown))
			}
		}
	}
	o.addDeobfuscations(text, plain, seen)
	last, seen := o.decodeLayers(text, seen)
	if last != text {
		o.addDeobfuscations(last, folded(last), seen)
	}
	if o.Whole = o.Whole && !raw.packed; o.Whole {
		o.Unread = unreadBytes(last, seen)
	}
	return o.inspected
}

// A decoder collects the views of one text.
type decoder struct{ inspected }

// add appends a view unless it is nil or was seen.
func (o *decoder) add(d *derived) bool {
	if d == nil {
		return false
	}
	for _, v := range o.Views {
		if v.Text == d.text {
			return false
		}
	}
	o.Views = append(o.Views, view{d.text, d})
	return true
}

// decodeLayers opens layer after layer of encoding. It returns the innermost text,
// which is d when nothing was encoded, and its signs. seen are the signs of d.
func (o *decoder) decodeLayers(d *derived, seen signs) (*derived, signs) {
	for range Rounds {
		next := layer(d, seen)
		if next == d {
			return d, seen
		}
		d = clean(next)
		seen = findSigns(d.text)
		o.add(folded(d))
	}
	o.Whole = o.Whole && layer(d, seen) == d
	return d, seen
}

// layer opens what is encoded in a text, once, and returns the same text when
// nothing is.
func layer(d *derived, seen signs) *derived {
	d.checkContext()
	for _, open := range decodings {
		if open.suits(seen) {
			if next := open.by(d); next != d {
				d, seen = next, findSigns(next.text)
			}
		}
	}
	return d
}

// decodings are the decoders of a layer, in their order. A decoder runs only on a
// text whose signs suit it.
var decodings = []struct {
	suits func(seen signs) bool
	by    func(d *derived) *derived
}{
	{func(seen signs) bool { return seen.dense >= minDense }, undense},
	{func(seen signs) bool { return seen.escapes }, unescape},
	{func(seen signs) bool { return seen.run >= minBlob || seen.digits >= minCodes }, decode},
	{func(seen signs) bool { return seen.odd > 0 || seen.digits >= minCodes }, unpiece},
	{func(seen signs) bool { return seen.foreign || seen.dashes >= minMorse }, unmorse},
	{func(seen signs) bool { return seen.foreign || seen.alone >= minApart }, unspace},
}

// addDeobfuscations adds the readings of a text whose letters were exchanged,
// moved or set apart, as far as its signs suggest that. d is the text normalised.
// Each reading that is found is tried for leetspeak and missing spaces again.
func (o *decoder) addDeobfuscations(text, d *derived, seen signs) {
	d.checkContext()
	found := unkeyed(text, d)
	d.checkContext()
	if seen.lines >= minColumns {
		found = append(found, uncolumn(text))
	}
	if seen.run >= minRunOn {
		found = append(found, unrun(d))
	}
	if seen.foreign || seen.split >= minSplit || seen.marks > 1 {
		found = append(found, unsplit(d))
	}
	if seen.foreign || seen.joined > 1 {
		found = append(found, unjoin(d))
	}
	if seen.foreign || seen.leet > 1 {
		found = append(found, unleet(d))
	}
	for _, played := range found {
		d.checkContext()
		if played != nil && o.add(played) {
			o.played = true
			o.add(unleet(played))
			o.add(unrun(played))
		}
	}
}
