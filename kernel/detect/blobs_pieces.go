package detect

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"
)

// A text in base64 may come in pieces: cut anywhere, or a word at a time, with
// spaces, lines, commas, quotes or operators between. Pieces look odd among
// words: small letters before capitals, digits between letters, a pad.

// minPieces is how many characters of base64 in pieces hold a text.
const minPieces = 12

// unpiece joins and decodes the pieces that stand in a row, and else decodes
// each that is a word by itself.
func unpiece(d *derived) *derived {
	p := pieces{from: d}
	return replaceAll(d, &pieceStarts, &p.seen, p.replace)
}

var pieceStarts = bytesOf(strings.TrimRight(base64Signs, "+/-_="))

// pieces remembers how far rows were tried and words were looked at.
type pieces struct {
	from        *derived
	tried, seen int
	space       []base64Piece // of a row, for the next one
}

// piece is a run that base64 may be in; its pad belongs to it.
type base64Piece struct {
	from, to int
	odd      bool
}

func (p *pieces) replace(s string, i int) (string, int) {
	first := pieceAt(s, i)
	if p.seen = first.to; !first.odd {
		return "", i
	}
	if i >= p.tried {
		if found, end := p.decodeRow(s, first); found != "" {
			return found, end
		}
	}
	if found := wordIn(strings.TrimRight(s[first.from:first.to], "=")); found != "" {
		return found, first.to
	}
	return "", i
}

// pieceAt returns the piece at s[i:].
func pieceAt(s string, i int) (p base64Piece) {
	p = base64Piece{from: i, to: smallWord(s, i)}
	if p.to == len(s) || p.to > i && traits[s[p.to]]&ofBase64 == 0 && s[p.to] != '=' {
		return p
	}
	for p.to < len(s) && (asciiAlnum(s[p.to]) || s[p.to] == '/' || s[p.to] == '+' && p.to+1 < len(s) && asciiAlnum(s[p.to+1])) {
		p.to++
	}
	p.odd = oddCase(s[i:p.to]) || evenHex(s[i:p.to])
	if end := min(padded(s, p.to), p.to+2); end > p.to && p.to-i > 1 {
		p.to, p.odd = end, true
	}
	return p
}

// smallWord returns the end of the small letters that may follow a letter at s[i:]. A word
// of these is not odd.
func smallWord(s string, i int) int {
	if i == len(s) || traits[s[i]]&aLetter == 0 {
		return i
	}
	for i++; i < len(s) && traits[s[i]] == small; i++ {
	}
	return i
}

// oddCase reports a capital or a digit where words have none, in a word of
// four characters or more.
func oddCase(word string) bool {
	for i := 1; i < len(word) && len(word) >= minApart; i++ {
		c, before := word[i], word[i-1]
		capital := 'A' <= c && c <= 'Z'
		switch {
		case capital && before >= 'a', asciiLetter(c|0x20) && '0' <= before && before <= '9':
			return true
		case asciiLetter(c) && i > 1 && 'A' <= before && before <= 'Z' && 'A' <= word[i-2] && word[i-2] <= 'Z':
			return true
		case '0' <= c && c <= '9' && asciiLetter(before|0x20):
			return true
		}
	}
	return false
}

// evenHex reports digits that may be the bytes of a word.
func evenHex(word string) bool {
	if len(word) < 6 || len(word)%2 != 0 {
		return false
	}
	digits := 0
	for i := range len(word) {
		if hexDigit(word[i]) < 0 {
			return false
		}
		digits += int(traits[word[i]] & aDigit / aDigit)
	}
	return digits*2 >= len(word)
}

// decodeRow joins the pieces from one on, up to the last odd one before two that are
// not odd, and decodes them together.
func (p *pieces) decodeRow(s string, first base64Piece) (string, int) {
	row := p.space[:0]
	row = append(row, first)
	defer func() { p.space = row }()
	upTo, letters := 1, len(p.body(s, first)) // of the row, and of the pieces up to there
	end, count, plain, pending := first.to, 1, 0, 0
	for last := first; ; {
		at := last.to
		for at < len(s) && at < last.to+6 && strings.IndexByte(" \r\n\t,;:|\"'`+.&()[]{}<>*-_=\\", s[at]) >= 0 {
			at++
		}
		if at == last.to || at == len(s) || !pieceStarts[s[at]] {
			break
		}
		last = pieceAt(s, at)
		row = append(row, last)
		pending += len(p.body(s, last))
		if last.odd {
			upTo, letters, pending = len(row), letters+pending, 0
			end, plain = last.to, 0
			count++
		} else if plain++; plain > 2 {
			break
		}
		if count%contextInterval == 0 {
			p.from.checkContext()
		}
	}
	p.tried = end
	if letters < minPieces || upTo < 2 && letters >= minBlob {
		return "", end
	}
	return p.decoded(s, row[:upTo]), end
}

// body is what a piece holds.
func (p *pieces) body(s string, piece base64Piece) string {
	return strings.TrimRight(s[piece.from:piece.to], "=")
}

// decoded is what a row holds.
func (p *pieces) decoded(s string, row []base64Piece) string {
	var joined, odd []byte
	words := make([]string, len(row))
	for i, piece := range row {
		words[i] = p.body(s, piece)
		joined = append(joined, words[i]...)
		if piece.odd {
			odd = append(odd, words[i]...)
		}
	}
	for _, blob := range [][]byte{joined, odd} { // names and numbers of pieces are not odd
		if found := languageIn(base64Bytes(string(blob))); found != "" {
			return found
		}
	}
	return wordsIn(words)
}

// wordsIn decodes pieces of which each is a word, all in one way.
func wordsIn(row []string) string {
	for _, decoded := range []func(string) []byte{base64Bytes, hexBytes} {
		var words []string
		for _, piece := range row {
			out := decoded(piece)
			if len(out) == 0 || len(words) > maxColumns || !allLetters(out) {
				words = nil
				break
			}
			words = append(words, string(out))
		}
		if found := strings.Join(words, " "); isLanguage(found) {
			return found
		}
	}
	return ""
}

func allLetters(b []byte) bool {
	for _, c := range b {
		if !asciiLetter(c|0x20) && strings.IndexByte(" .,'!?", c) < 0 {
			return false
		}
	}
	return true
}

// wordIn decodes a piece that holds a word, or a few, by itself: base64, or
// hexadecimal.
func wordIn(piece string) string {
	if len(piece) >= minBlob {
		return ""
	}
	for _, out := range [][]byte{base64Bytes(piece), hexBytes(piece)} {
		if len(out) >= 2 && isWord(out) {
			return string(out)
		}
	}
	return ""
}

func hexBytes(piece string) []byte {
	out, err := hex.DecodeString(piece)
	if err != nil {
		return nil
	}
	return out
}

// isNoLetter reports signs of ASCII that stand in no word.
func isNoLetter(c byte) bool {
	return c < utf8.RuneSelf && !asciiLetter(c|0x20) && c != ' ' && c != '\''
}

// isWord reports letters that are a known word, or language when they are
// more; marks may end them.
func isWord(b []byte) bool {
	b = bytes.TrimRight(b, " .,!?:;")
	if !utf8.Valid(b) || slices.ContainsFunc(b, isNoLetter) { // most of what is decoded
		return false
	}
	word := strings.ToLower(string(b))
	for i := range len(word) {
		if !asciiLetter(word[i]) && word[i] != ' ' && word[i] != '\'' {
			return false
		}
	}
	if strings.Contains(word, " ") {
		return isLanguage(word)
	}
	return len(word) > 1 && rank(word) >= 0
}
