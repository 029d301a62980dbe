package detect

import (
	"strings"
	"unicode/utf8"
)

// minMorse is how many dots and dashes at least stand in a text in Morse.
const minMorse = 16

// morse are the signs of International Morse Code (ITU-R M.1677-1).
var morse = func() map[string]byte {
	out := make(map[string]byte)
	signs := strings.Fields(".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.. ----- .---- ..--- ...-- ....- ..... -.... --... ---.. ----. .-.-.- --..-- ..--.. .----.")
	for i, sign := range signs {
		out[sign] = "abcdefghijklmnopqrstuvwxyz0123456789.,?'"[i]
	}
	return out
}()

// unmorse reads rows of eight signs or more in Morse as letters. A space parts
// letters, more than that words.
func unmorse(d *derived) *derived {
	s, kept := d.text, 0
	var w *rewriter
	for i := 0; i < len(s); {
		if traits[s[i]]&(ofMorse|beyond) == 0 {
			i++
			continue
		}
		if _, size := morseMark(s, i); size == 0 || i > 0 && (asciiAlnum(s[i-1]) || s[i-1] == '/') {
			i += max(1, size)
			continue
		}
		letters, end, tried := morseRow(s, i)
		if len(letters) < 8 {
			i = max(tried, i+1)
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
		return d
	}
	w.keepSome(kept, len(s))
	return w.done()
}

// morseRow reads the signs at s[i:]; tried is how far it looked.
func morseRow(s string, i int) (letters []byte, end, tried int) {
	end, tried = i, i
	for next := i; ; {
		letter, to := morseLetter(s, next)
		if tried = max(tried, to); letter == 0 {
			return letters, end, tried
		}
		if gap := s[end:next]; next > i && gap != " " {
			letters = append(letters, ' ')
		}
		letters, end = append(letters, letter), to
		for next = to; next < len(s) && next < to+5 && strings.IndexByte(" /|\r\n", s[next]) >= 0; next++ {
		}
		if next == to {
			return letters, end, tried
		}
	}
}

// morseLetter reads one sign, or 0; end is behind its marks in any case.
func morseLetter(s string, i int) (letter byte, end int) {
	var sign [8]byte
	n := 0
	for end = i; ; n++ {
		mark, size := morseMark(s, end)
		if size == 0 {
			break
		}
		if n < len(sign) {
			sign[n] = mark
		}
		end += size
	}
	if n == 0 || n > len(sign) || end < len(s) && asciiAlnum(s[end]) {
		return 0, end
	}
	return morse[string(sign[:n])], end
}

// morseMark reads a dot or a dash in one of their shapes.
func morseMark(s string, i int) (mark byte, size int) {
	if i == len(s) {
		return 0, 0
	}
	switch s[i] {
	case '.', '*':
		return '.', 1
	case '-', '_':
		return '-', 1
	}
	if s[i] < utf8.RuneSelf {
		return 0, 0
	}
	r, size := utf8.DecodeRuneInString(s[i:])
	switch r {
	case '•', '·', '∙', '●', '・':
		return '.', size
	case '–', '—', '−', '‐', '‒', '▬', 'ー':
		return '-', size
	}
	return 0, 0
}
