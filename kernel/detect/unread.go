package detect

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A text in an unknown encoding decodes to nothing and scores like nothing. It must
// not be called clean, so its bytes are counted. Two tests find it: entropy, for
// long runs that mix capitals, small letters and digits and hold no words; and
// script, for words with hardly a vowel, which no language of the Latin alphabet
// has, and for letters of dead scripts. Keys, hashes and files are runs of that
// kind too; those that have a known form are not counted.

const (
	minUnread     = 48  // bytes of a run that may hold a text
	minEntropy    = 4.2 // bits a character: base32 has 5, prose 4
	minDeadScript = 16  // characters of scripts that nobody writes in
)

// unreadBytes counts the bytes of the original that are no language, once the text
// is decoded as far as it can be.
func unreadBytes(d *derived, seen signs) (n int) {
	last := 0 // where in the original the bytes counted last end
	count := func(from, to int) {
		s := d.span(from, to)
		if s.From = max(s.From, last); s.To > s.From {
			n += s.To - s.From
			last = s.To
		}
	}
	if seen.dense >= minUnread {
		inArmour := false
		replaceRuns(d, func(s string, i, end int) (string, int) {
			run := s[i:end]
			switch {
			case strings.HasPrefix(run, "-----BEGIN"):
				inArmour = true
			case strings.HasPrefix(run, "-----END"):
				inArmour = false
			case !inArmour && end-i >= minUnread && isNoise(run):
				count(i, end)
			}
			return "", i
		})
	}
	if seen.foreign {
		first, end, letters := 0, 0, 0
		for i, r := range d.text {
			if !deadScript(r) {
				continue
			}
			if letters++; letters == 1 {
				first = i
			}
			end = i + utf8.RuneLen(r)
		}
		if letters >= minDeadScript {
			count(first, end)
		}
	}
	return n
}

// knownRuns are the beginnings of binary data and of keys.
var knownRuns = strings.Fields(`iVBORw0KGgo /9j/ JVBERi0 UEsDB UEsFB R0lGOD d09GR d09GM UklGR AAABAA H4sI AAAAIGZ0eXA AAAAHGZ0eXA AAAAGGZ0eXA
	T2dnUw SUQz TVqQ TVpQ f0VMRg N3q8rw QlpoO /Td6WFo AAEAAAA T1RUTw 0M8R4KGxGuE KLUv/ TU0AKg SUkqA
	eyJ sk- pk- ghp_ gho_ github_pat_ glpat- xox AKIA ASIA AIza ya29. AAAAB3NzaC AAAAC3NzaC AAAAE2VjZ MII npm_ hf_ SG. sha256- sha384- sha512- age1 AGE-SECRET-KEY-`)

// isNoise reports whether a run is neither words nor data of a known form.
func isNoise(run string) bool {
	if strings.Contains(run, "://") || strings.HasPrefix(run, "www.") || strings.Contains(run, ";base64,") {
		return false
	}
	run = strings.Trim(run, "\"'`,.;:()[]{}<>=")
	if _, value, ok := strings.Cut(run, "="); ok && len(value) >= minUnread {
		run = strings.Trim(value, "\"'`=")
	}
	for _, beginning := range knownRuns {
		if strings.HasPrefix(run, beginning) {
			return false
		}
	}
	return len(run) >= minUnread && ofKinds(run) && entropy(run) >= minEntropy && !worded(run)
}

// ofKinds reports capitals, small letters and digits of which two kinds at least
// are a good share, in a run that is no number in hexadecimal.
func ofKinds(run string) bool {
	var capitals, small, digits, beyondHex int
	for i := range len(run) {
		c := run[i]
		switch {
		case 'A' <= c && c <= 'Z':
			capitals++
		case asciiLetter(c):
			small++
		case '0' <= c && c <= '9':
			digits++
		}
		if asciiLetter(c|0x20) && hexDigit(c) < 0 {
			beyondHex++
		}
	}
	share := len(run) / 12
	kinds := 0
	for _, n := range []int{capitals, small, digits} {
		if n > share {
			kinds++
		}
	}
	return kinds > 1 && beyondHex > share && (capitals+small+digits)*2 > len(run) && (capitals > share || digits > share)
}

// entropy returns the bits a character of a run, by the frequencies in it.
func entropy(run string) (bits float64) {
	var counts [256]int
	for i := range len(run) {
		counts[run[i]]++
	}
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(run))
			bits -= float64(p * log2(p))
		}
	}
	return bits
}

// worded reports a run of which a third of the letters are known words, parted
// by signs, digits or capitals as in programs and paths.
func worded(run string) bool {
	letters, known := 0, 0
	for i := 0; i < len(run); {
		if !asciiLetter(run[i] | 0x20) {
			i++
			continue
		}
		end := i + 1
		for end < len(run) && asciiLetter(run[end]|0x20) && (run[end] >= 'a' || run[end-1] < 'a') {
			end++
		}
		letters += end - i
		if end-i > 3 && end-i <= longestWord && rank(strings.ToLower(run[i:end])) >= 0 {
			known += end - i
		}
		i = end
	}
	return known*3 >= letters
}

// dead are the scripts that only ciphers use today, and characters that are
// nobody's.
var dead = []*unicode.RangeTable{
	unicode.Runic, unicode.Ogham, unicode.Egyptian_Hieroglyphs, unicode.Cuneiform, unicode.Linear_A, unicode.Linear_B, unicode.Old_Italic,
	unicode.Gothic, unicode.Deseret, unicode.Shavian, unicode.Phoenician, unicode.Ugaritic, unicode.Old_Persian, unicode.Old_Turkic,
	unicode.Anatolian_Hieroglyphs, unicode.Co,
}

func deadScript(r rune) bool {
	return r >= 0x1680 && (r < 0x1700 || r >= 0xe000) && (r < 0xf900 || r >= 0x10000) && (r < 0x1f000 || r >= 0xf0000) && unicode.In(r, dead...)
}

const (
	// Languages have 35 vowels and more in 100 letters, Czech and Welsh fewer
	// now and then, but then hardly a j, q or x.
	minVowels  = 0.30
	minRare    = 0.06
	minStrange = 32 // letters of a block of which that can be said
	// strange is how many words of a block must be unknown for it to be looked
	// at, of BlockWords.
	strange = 7
)

// voiceless returns the bytes of a block of unknown words in Latin letters if
// it has too few vowels, and too many rare letters, for any language.
func voiceless(block string) int {
	letters, vowels, rare := 0, 0, 0
	for i := range len(block) {
		switch c := block[i]; {
		case c >= utf8.RuneSelf, '0' <= c && c <= '9':
			return 0
		case strings.IndexByte("aeiouy", c) >= 0:
			vowels++
			letters++
		case c == 'j' || c == 'q' || c == 'x':
			rare++
			letters++
		case asciiLetter(c):
			letters++
		}
	}
	n := float64(letters)
	if letters < minStrange || letters*3 < len(block)*2 || float64(vowels) >= minVowels*n || float64(rare) < minRare*n {
		return 0
	}
	return len(block)
}
