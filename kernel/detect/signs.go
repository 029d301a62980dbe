package detect

// signs count, in one pass over a text, what suggests that something is hidden in
// it, so that ordinary text is not searched in every way. For the ASCII part of a
// text the counts are never too low.
type signs struct {
	foreign bool // bytes outside ASCII
	escapes bool // characters with which an escape begins
	run     int  // longest run of letters and digits of base64
	digits  int
	alone   int // letters or digits without a neighbour
	split   int // signs, or a row of them, between two letters
	joined  int // underscores between two letters
	marks   int // marks of emphasis after a letter and before another sign or letter
	odd     int // capitals after small letters
	dashes  int // dots and dashes that follow no letter
	dense   int // longest run without spaces, of ASCII
	lines   int
	leet    int // signs of leetspeak between two letters
}

// trait is what a byte can be.
type trait uint16

const (
	aLetter trait = 1 << iota
	aDigit
	ofBase64
	ofEscape
	ofSplit
	ofLeet
	ofJoin
	ofMorse
	capital
	visible
	newline
	ofMark
	beyond
	control // see cleanByte
)

// small are the traits of a small letter.
const small = aLetter | ofBase64 | visible

var traits = func() (table [256]trait) {
	for c := range 256 {
		switch {
		case asciiLetter(byte(c) | 0x20):
			table[c] = aLetter | ofBase64
		case '0' <= c && c <= '9':
			table[c] = aDigit | ofBase64
		case c >= 0x80:
			table[c] = beyond
		}
		table[c] |= flag(alphanumeric[c], ofBase64) | flag(escapes[c] && !asciiLetter(byte(c)|0x20), ofEscape) |
			flag('A' <= c && c <= 'Z', capital) | flag(c == '.' || c == '-' || c == '*' || c == '_', ofMorse) |
			flag(' ' < c && c < 0x7f, visible) | flag(c == '\n', newline) | flag(c < 0x80 && !cleanByte(byte(c)), control) | flag(c == '*' || c == '~' || c == '`' || c == '^' || c == '|' || c == '_', ofMark) | flag(splitting[c], ofSplit) | flag(c < 0x80 && leet[c&0x7f] != 0, ofLeet) | flag(c == '_', ofJoin)
	}
	return table
}()

func flag(on bool, c trait) trait {
	if on {
		return c
	}
	return 0
}

// findSigns reads a text once and counts its signs.
func findSigns(s string) (found signs) {
	const word = aLetter | aDigit
	var all, before, last trait // of the text, and of the two bytes before
	run, dense := 0, 0
	for i := 0; i < len(s); i++ {
		c := traits[s[i]]
		if c == last && (c == small || c == beyond) { // most of a text
			from := i
			for i+1 < len(s) && traits[s[i+1]] == c {
				i++
			}
			if c == small {
				run += i + 1 - from
				dense += i + 1 - from
			}
			before = last
			continue
		}
		all |= c
		if c&ofBase64 != 0 {
			run++
		} else {
			found.run = max(found.run, run)
			run = 0
		}
		if c&visible != 0 {
			dense++
		} else {
			found.dense = max(found.dense, dense)
			dense = 0
			found.lines += int(c & newline / newline)
		}
		switch {
		case c&aDigit != 0:
			found.digits++
		case c&capital != 0 && last&(aLetter|capital) == aLetter:
			found.odd++
		case c&ofMorse != 0 && last&word == 0:
			found.dashes++
		}
		if last&word != 0 && before&word == 0 && c&word == 0 {
			found.alone++
		}
		if before&aLetter != 0 && last&(ofSplit|ofLeet|ofJoin) != 0 {
			found.after(last, c)
		}
		before, last = last, c
	}
	if last&word != 0 && before&word == 0 {
		found.alone++
	}
	found.run, found.dense = max(found.run, run), max(found.dense, dense)
	found.foreign, found.escapes = all&beyond != 0, all&ofEscape != 0
	return found
}

// after counts a sign that follows a letter and stands before next.
func (s *signs) after(sign, next trait) {
	if sign&ofSplit != 0 && next&(aLetter|ofSplit) != 0 {
		s.split++
		s.marks += int(sign & ofMark / ofMark)
	}
	if sign&ofLeet != 0 && next&aLetter != 0 {
		s.leet++
	}
	if sign&ofJoin != 0 && next&aLetter != 0 {
		s.joined++
	}
}
