package detect

import (
	"math"
	"strings"
	"unicode/utf8"
)

// rank returns the place of a word of small letters among the words that the
// model knows, the most frequent first, or -1.
func rank(word string) int {
	h := fnvStep(fnvBasis, border)
	for i := range len(word) {
		h = fnvStep(h, word[i])
	}
	return wordsKnown().place(h)
}

func fnvStep(h uint32, c byte) uint32 { return (h ^ uint32(c)) * fnvPrime }

// wordsKnown are the words of the embedded model: what language is made of does
// not depend on who asks.
func wordsKnown() *Lexicon { return loadDefault().lexicon }

// place finds a word by the hash of all but its last border.
func (l *Lexicon) place(open uint32) int { return int(l.find(fnvStep(open, border))) }

// Words are weighed in bits, as by Zipf's law: a word costs the logarithm of
// its place. English costs some 2.7 bits a letter, letters at random 6.
const (
	bitsOfLanguage = 4.0
	bitsUnknown    = 14.0 // a letter that no word explains
	minSaid        = 6    // letters of which something can be said
	longestWord    = 20
)

func bitsOf(place int) float64 { return log2(float64(place + 32)) }

// saying tells bits and letters of a text of small letters: its words as they
// are parted, or the likeliest words of a row of letters.
type saying struct {
	bits    float64
	letters int
}

func (s saying) language() bool {
	return s.letters >= minSaid && s.bits <= bitsOfLanguage*float64(s.letters)
}

// isLanguage reports whether the words of a decoded text are language. What
// else stands in it must be little.
func isLanguage(text string) bool { return weighed(text).language() }

// weighed is the saying of a text's words. Where others than letters are many
// it has no letters.
func weighed(text string) (all saying) {
	others := 0
	for i := 0; i < len(text); {
		end := i
		for end < len(text) && asciiLetter(text[end]|0x20) {
			end++
		}
		if end == i {
			if c := text[i]; c != ' ' && c != '\n' && c != '\'' {
				others++
			}
			i++
			continue
		}
		word := strings.ToLower(text[i:min(end, i+maxRow)])
		if place := rank(word); place >= 0 {
			all.bits += bitsOf(place)
			all.letters += len(word)
		} else {
			one, _ := parted(word)
			all.bits += one.bits
			all.letters += len(word)
		}
		i = end
	}
	if others*2 > all.letters {
		return saying{}
	}
	return all
}

// maxRow bounds the rows of letters that are parted at once.
const maxRow = 1 << 10

// parted returns the likeliest words in a row of small letters, by dynamic
// programming over the places of their ends.
func parted(row string) (saying, []string) {
	best := make([]float64, len(row)+1)
	from := make([]int, len(row)+1)
	for i := range best[1:] {
		best[i+1] = math.Inf(1)
	}
	known := wordsKnown()
	for i := range len(row) {
		if c := best[i] + bitsUnknown; c < best[i+1] {
			best[i+1], from[i+1] = c, i
		}
		h := fnvStep(fnvBasis, border)
		for j := i; j < min(len(row), i+longestWord); j++ {
			h = fnvStep(h, row[j])
			place := known.place(h)
			if place < 0 || j == i && row[i] != 'a' && row[i] != 'i' {
				continue
			}
			if c := best[i] + bitsOf(place); c < best[j+1] {
				best[j+1], from[j+1] = c, i
			}
		}
	}
	var words []string
	for end := len(row); end > 0; end = from[end] {
		words = append(words, row[from[end]:end])
	}
	for i, j := 0, len(words)-1; i < j; i, j = i+1, j-1 {
		words[i], words[j] = words[j], words[i]
	}
	return saying{best[len(row)], len(row)}, words
}

// minRunOn is how many letters in a row are looked at for several words.
const minRunOn = 16

// unrun parts words that are written without spaces ("ignoreallprevious
// instructions"). It returns nil when no row of letters holds three words.
func unrun(d *derived) *derived {
	s, kept := d.text, 0
	var w *rewriter
	for i := 0; i < len(s); {
		if !asciiLetter(s[i]) {
			i++
			continue
		}
		end := i
		for end < len(s) && end < i+maxRow && asciiLetter(s[end]) {
			end++
		}
		row := s[i:end]
		if len(row) >= minRunOn && rank(row) < 0 {
			d.checkContext()
			if said, words := parted(row); isSentence(said, words) {
				if w == nil {
					w = rewrite(d)
				}
				w.keepSome(kept, i)
				for _, word := range words {
					last := i + len(word) - 1 // the space belongs to it: it comes from nothing of its own
					w.keepSome(i, last)
					w.put(s[last:last+1]+" ", last, last+1)
					i = last + 1
				}
				kept = end
			}
		}
		i = end
	}
	if w == nil {
		return nil
	}
	w.keepSome(kept, len(s))
	return w.done()
}

// isSentence tells a sentence without spaces from a long word and from a name
// in a program: it has words that only join others ("all", "your", "how").
func isSentence(said saying, words []string) bool {
	joining := 0
	for _, word := range words {
		if place := rank(word); place >= 0 && place < 100 {
			joining++
		}
	}
	return len(words) > 2 && joining > 0 && said.bits/float64(said.letters) <= 1.2+float64(0.65*float64(joining))
}

// spellingAlphabet are the words for letters that radio uses.
var spellingAlphabet = func() map[string]byte {
	out := map[string]byte{"alpha": 'a', "juliett": 'j', "whisky": 'w', "xray": 'x'}
	for _, w := range strings.Fields("alfa bravo charlie delta echo foxtrot golf hotel india juliet kilo lima mike november oscar papa quebec romeo sierra tango uniform victor whiskey x yankee zulu") {
		out[w] = w[0]
	}
	return out
}()

// unspell reads rows of four words or more of the spelling alphabet as
// letters. What stands between two of them besides one space or hyphen, or a
// hyphen where spaces part words, begins a word. It reads a text that is not
// normalised, because lines count.
func unspell(d *derived) *derived {
	s, kept := d.text, 0
	var w *rewriter
	for i := 0; i < len(s); {
		if !asciiLetter(s[i] | 0x20) {
			i++
			continue
		}
		letters, end := spelledRow(s, i)
		if len(letters) < minApart {
			for i < len(s) && asciiLetter(s[i]|0x20) {
				i++
			}
			continue
		}
		if w == nil {
			w = rewrite(d)
		}
		w.keepSome(kept, i)
		w.putBytes(letters, i, end)
		i, kept = end, end
	}
	if w == nil {
		return nil
	}
	w.keepSome(kept, len(s))
	return folded(w.done())
}

// spelledRow reads the row of words for letters at s[i:].
func spelledRow(s string, i int) (letters []byte, end int) {
	end = i
	inner := "" // what parts the letters of one word
	for next := i; next < len(s); {
		letter, to := spelledLetter(s, next)
		if to == next {
			break
		}
		gap := s[end:next]
		if inner == "" {
			inner = gap
		}
		if next > i && gap != inner {
			letters = append(letters, ' ')
		}
		letters, end = append(letters, letter), to
		for next = to; next < len(s) && next < to+4 && strings.IndexByte(" ,-/|.\r\n", s[next]) >= 0; next++ {
		}
		if next == to {
			break
		}
	}
	return letters, end
}

func spelledLetter(s string, i int) (letter byte, end int) {
	for end = i; end < len(s) && end < i+len("foxtrot")+1 && asciiLetter(s[end]|0x20); end++ {
	}
	word := strings.ToLower(s[i:end])
	if word == "x" {
		if !strings.HasPrefix(strings.ToLower(s[end:min(len(s), end+4)]), "-ray") && !strings.HasPrefix(strings.ToLower(s[end:min(len(s), end+4)]), " ray") {
			return 0, i
		}
		return 'x', end + len("-ray")
	}
	letter, ok := spellingAlphabet[word]
	if !ok {
		return 0, i
	}
	return letter, end
}

// unpig undoes Pig Latin: words that end with their first consonants and "ay",
// or with "way" after a vowel.
func unpig(d *derived) *derived {
	s, w := d.text, rewrite(d)
	for i := 0; i < len(s); {
		end := i
		for end < len(s) && asciiLetter(s[end]) {
			end++
		}
		switch word, ok := fromPig(s[i:end]); {
		case end == i:
			w.keep(i, i+1)
			end++
		case ok:
			w.swap(word, i)
		default:
			w.keep(i, end)
		}
		i = end
	}
	return w.done()
}

// fromPig returns the commonest word that becomes w in Pig Latin.
func fromPig(w string) (word string, ok bool) {
	if len(w) < 4 || len(w) > longestWord || !strings.HasSuffix(w, "ay") {
		return "", false
	}
	stem := w[:len(w)-2]
	best := math.MaxInt
	try := func(candidate string) {
		if place := rank(candidate); place >= 0 && place < best {
			word, best = candidate, place
		}
	}
	if last := stem[len(stem)-1]; last == 'w' || last == 'y' {
		try(stem[:len(stem)-1])
	}
	for moved := 0; moved <= min(4, len(stem)-1); moved++ {
		try(stem[len(stem)-moved:] + stem[:len(stem)-moved])
	}
	return word, word != ""
}

// pigs returns the forms of a word in Pig Latin.
func pigs(w string) []string {
	at := max(0, strings.IndexAny(w, "aeiou"))
	if at == 0 {
		return []string{w + "way", w + "yay", w + "ay"}
	}
	return []string{w[at:] + w[:at] + "ay"}
}

const (
	minColumns = 4  // lines that may be read downwards
	maxColumns = 64 // lines, and characters of a line, that are
)

// uncolumn reads blocks of short lines downwards: a word in each column, or
// letters alone that fill them. It returns nil when that gives no language.
func uncolumn(d *derived) *derived {
	s, kept := d.text, 0
	var w *rewriter
	for i := 0; i < len(s); {
		rows, end := shortLines(s, i)
		if len(rows) >= minColumns {
			d.checkContext()
			if text := downwards(rows); text != "" {
				if w == nil {
					w = rewrite(d)
				}
				w.keepSome(kept, i)
				w.put(text, i, end)
				kept = end
			}
		}
		i = end
	}
	if w == nil {
		return nil
	}
	w.keepSome(kept, len(s))
	return folded(w.done())
}

// shortLines returns the lines from s[i:] on that belong to one block, without
// their ends: the longest first, as columns of words and letters are.
func shortLines(s string, i int) (rows []string, end int) {
	for end = i; end < len(s) && len(rows) < maxColumns; {
		line := strings.IndexByte(s[end:], '\n')
		if line < 0 {
			line = len(s) - end
		}
		row := strings.TrimRight(s[end:end+line], " \r")
		if row == "" || len(row) > maxColumns || len(rows) > 0 && len(row) > len(rows[0])+1 || strings.ContainsFunc(row, notColumn) {
			if len(rows) == 0 {
				end = min(len(s), end+line+1)
			}
			return rows, end
		}
		rows, end = append(rows, row), min(len(s), end+line+1)
	}
	return rows, end
}

func notColumn(r rune) bool {
	return r != ' ' && (r >= utf8.RuneSelf || !asciiLetter(byte(r)|0x20)) //nolint:gosec // G115: below utf8.RuneSelf
}

// downwards reads rows column by column.
func downwards(rows []string) string {
	var words, letters strings.Builder
	for c := range len(rows[0]) + 1 {
		for _, row := range rows {
			if c < len(row) && row[c] != ' ' {
				words.WriteByte(row[c] | 0x20)
				letters.WriteByte(row[c] | 0x20)
			}
		}
		words.WriteByte(' ')
	}
	across, down := weighed(strings.ToLower(strings.Join(rows, " "))), weighed(words.String())
	if down.letters < minRunOn || down.letters > maxRow || across.language() {
		return ""
	}
	run, parts := parted(letters.String())
	switch {
	case down.language() && down.bits <= run.bits:
		return words.String()
	case run.language():
		return strings.Join(parts, " ") + " "
	}
	return ""
}
