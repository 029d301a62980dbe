package detect

import (
	"strings"
	"unicode/utf8"
)

// leet maps the signs of leetspeak to the letter they stand for; 1, ! and |
// stand for l where that makes a known word.
var leet = [utf8.RuneSelf]byte{
	'0': 'o', '1': 'i', '3': 'e', '4': 'a', '5': 's', '7': 't', '8': 'b', '9': 'g', '2': 'z', '6': 'g',
	'@': 'a', '$': 's', '!': 'i', '|': 'i',
}

// unleet spells leetspeak out. It returns nil unless two words need it.
func unleet(d *derived) *derived {
	if d == nil || !leetWords(d.text, 2) {
		return nil
	}
	b := []byte(d.text)
	for i := 0; i < len(b); {
		if b[i] == ' ' {
			i++
			continue
		}
		end := i
		for end < len(b) && b[end] != ' ' {
			end++
		}
		spell(b[i:end])
		i = end
	}
	return &derived{text: string(b), up: d}
}

// leetWords reports whether n words hold a leet sign between two letters.
func leetWords(normal string, n int) bool {
	for i := 1; i+1 < len(normal); i++ {
		if c := normal[i]; c >= utf8.RuneSelf || leet[c] == 0 || !asciiLetter(normal[i-1]) || !asciiLetter(normal[i+1]) {
			continue
		}
		from := strings.LastIndexByte(normal[max(0, i-longestLeet):i], ' ') + 1 + max(0, i-longestLeet)
		to := i + strings.IndexByte(normal[i:min(len(normal), i+longestLeet)]+" ", ' ')
		if maybeLeet(normal[from:to]) {
			if n--; n == 0 {
				return true
			}
		}
		i = to
	}
	return false
}

// longestLeet bounds the words that are read as leetspeak; longer ones are
// data.
const longestLeet = 32

// maybeLeet tells words from hashes, keys and version numbers.
func maybeLeet[T string | []byte](word T) bool {
	letters, digits, others := 0, 0, 0
	for i := range len(word) {
		switch c := word[i]; {
		case 'a' <= c && c <= 'f':
			letters++
		case asciiLetter(c):
			letters++
			others++
		case '0' <= c && c <= '9':
			digits++
		}
	}
	hash := len(word) >= 8 && others == 0
	return len(word) < longestLeet && !hash && digits <= 3*letters
}

// spell replaces the signs of leetspeak in one word. A word of nothing but
// digits is a number, unless it spells a word that everybody knows.
func spell(word []byte) {
	from, to := trimmed(word)
	word = word[from:to]
	if len(word) > maxWord {
		return
	}
	spelt := make([]byte, len(word))
	var doubtful []int // where i or l may stand
	for i, c := range word {
		spelt[i] = c
		if c < utf8.RuneSelf && leet[c] != 0 {
			spelt[i] = leet[c]
			if leet[c] == 'i' {
				doubtful = append(doubtful, i)
			}
		}
	}
	choose(spelt, doubtful)
	if hasLetter(word) && maybeLeet(word) || isCommonWord(string(spelt)) {
		copy(word, spelt)
	}
}

// choose sets each of the first three doubtful letters to i or l so that a
// known word comes out, and to i when none does.
func choose(word []byte, doubtful []int) {
	doubtful = doubtful[:min(len(doubtful), 3)]
	for subset := range 1 << len(doubtful) {
		for k, i := range doubtful {
			word[i] = "il"[subset>>k&1]
		}
		if isCommonWord(string(word)) {
			return
		}
	}
	for _, i := range doubtful {
		word[i] = 'i'
	}
}

func hasLetter(word []byte) bool {
	for _, c := range word {
		if asciiLetter(c) {
			return true
		}
	}
	return false
}

// trimmed leaves out the exclamation marks and brackets that a word ends with
// or begins with as everybody writes them.
func trimmed(word []byte) (from, to int) {
	to = len(word)
	for to > 1 && strings.IndexByte("!|(+<.,?:;)\"'", word[to-1]) >= 0 {
		to--
	}
	for from < to && strings.IndexByte("(+<\"'", word[from]) >= 0 {
		from++
	}
	return from, to
}
