package toolcall

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"iter"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/regex"
)

// A call is also judged by how much its words resemble those of hostile calls, as a filter of
// mail judges mail: logistic regression on the words and the pairs of words of the tool's name
// and of the arguments, hashed into buckets (Weinberger et al. 2009, arXiv:0902.2206). The
// readers know what they were told, the words also trades that nobody thought of. They judge
// in both directions: a call that resembles hostile ones is blocked as [HarmfulAction], and one
// that resembles ordinary ones gets the benefit of the doubt where the user asked for it. The
// weights are fitted by TestResemblance (resemblance_fit_test.go).

// The log-odds from which on a call is blocked and flagged (TestResemblance shows what others would do).
const (
	harmfulFrom = 2.2
	harmfulNear = 1.4
)

// doubts are the invariants that ordinary calls can look like, with the log-odds under which a reader
// may have found harm in an ordinary call that was asked for. They were chosen on authors of whom the
// weights had seen nothing. Of a call that nobody is known to have asked for, words acquit of nothing:
// those of one that empties a table or reads a secret can be as ordinary as any.
var doubts = map[Invariant]float64{
	DestructiveCommand:       -1,
	DestructiveOperation:     -1,
	DestructiveQuery:         -1,
	ServerSideRequestForgery: -0.5,
	Persistence:              -0.5,
	PathTraversal:            -0.5,
	PrivilegeEscalation:      -0.5,
	CredentialAccess:         -0.5,
	ConstraintTampering:      -1.5,
}

// losses are the doubts about what cannot be had back.
var losses = []Invariant{DestructiveCommand, DestructiveOperation, DestructiveQuery}

// partOdds is how much more a part of a call has to resemble hostile ones. Parts are judged so that
// whatever is ordinary beside the harm does not outweigh it.
const partOdds = 0.4

// maxDoubted is how many features a call has at most that gets the benefit of the doubt: some
// fifty words. Among more of them, harm could hide behind what is ordinary.
const maxDoubted = 250

// weigh judges the call by its words, and then what the readers found.
func (r *reading) weigh(c Call, leaves []leaf) {
	if len(c.Arguments) > maxResembling || !r.spend(costSearch*(len(c.Arguments)+min(len(c.Request), maxResembling))) {
		return
	}
	parts := impressionsOf(c, r.tool)
	odds := shippedResemblance.odds(parts)
	switch {
	case odds >= harmfulFrom:
		r.breaks(HarmfulAction)
	case odds >= harmfulNear:
		r.flags(HarmfulAction)
	case len(parts[0]) <= maxDoubted && len(r.broken) > 0 && r.doubtful(c, odds, leaves):
		for _, v := range precedence {
			if r.broken[v] {
				r.near = v
				break
			}
		}
		clear(r.broken)
	}
}

// doubtful reports whether all that the readers found may be an ordinary act that the user asked
// for, in few enough words to mean it. What is lost has to be asked for as such, in words of the call
// that tell what it is, and of marked names that the user says one has to be in the call. No text may
// have told the agent anything, nor have given it a name or an address.
func (r *reading) doubtful(c Call, odds float64, leaves []leaf) bool {
	if !r.asked || len(r.asks) > maxNamingRequest || !r.spend(costScreen*len(r.asks)) || len(r.instructions()) > 0 {
		return false
	}
	for _, v := range precedence { // in one order, so that equal calls take equal work
		if !r.broken[v] {
			continue
		}
		if below, ok := doubts[v]; !ok || odds >= below {
			return false
		}
		if slices.Contains(losses, v) && (!r.asksForLoss() && !upheaval.MatchString(r.asks) || !r.speaksOfAny(leaves)) {
			return false
		}
	}
	if markedShare(c.Request, c.Arguments) == "others" {
		return false
	}
	from := r.provenance(leaves)
	return from != kernel.FromUntrusted && from != kernel.FromInstruction
}

// speaksOfAny reports whether the user said a word of the arguments that tells one thing from another.
func (r *reading) speaksOfAny(leaves []leaf) bool {
	said := make(map[string]bool)
	for w := range singularWords(r.asks) {
		said[w] = true
	}
	for _, l := range leaves {
		if !l.text {
			continue
		}
		for w := range singularWords(l.value) {
			if said[w] && !grantWords[w] && !lossWords.MatchString(w) && !upheaval.MatchString(w) {
				return true
			}
		}
	}
	return false
}

// singularWords are the words of a text, of letters and digits, in the singular and in small letters.
func singularWords(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for w := range strings.FieldsFuncSeq(text, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }) {
			if w = strings.TrimSuffix(strings.ToLower(w), "s"); len(w) >= minSaid && !yield(w) {
				return
			}
		}
	}
}

// minSaid is how long a word is at least that tells anything.
const minSaid = 3

// upheaval finds requests for what is grave and no loss of a thing that they name: machines
// that stop, data that are put back or hidden, what is forced.
var upheaval = regex.New(`(?i)\b(?:terminat\w*|releas(?:e|ing)|drain\w*|reboot\w*|restart\w*|shut ?(?:it )?down|power off|format|eras(?:e|ing)|archiv\w*|yank|revok\w*|prun(?:e|ing)|replac\w*|reinstall\w*|rebuild\w*|restor\w*|refresh\w*|roll ?back|revert\w*|forc(?:e|ing)|mask\w*|anonymi[sz]\w*|rotat\w*|stop|abort|cancel\w*|` +
	`archivier\w*|herunterfahren|fahr\w* .{0,40}herunter|neu ?start\w*|start\w* .{0,40}neu|formatier\w*|überschreib\w*|beende\w*|stopp\w*|maskier\w*|ersetz\w*|erzwing\w*|rotier\w*|` +
	`redémarr\w*|arrêt\w*|formate[rz]?|restaur\w*|remplac\w*|reinici\w*|formatea\w*|reemplaz\w*|deten\w*|para[r]?|reinstala\w*|riavvia\w*|sostitui\w*|zrestart\w*|yeniden başlat\w*)\b|再起動|フォーマット|重启|格式化`)

// resemblanceBuckets is how many weights there are, a power of two.
const resemblanceBuckets = 1 << 17

// scale is what each feature of a call counts: a long call says as much in all as a shorter
// one, and a call of a few words less, since chance may have chosen them.
func scale(features []uint32) float64 { return 4 / math.Sqrt(float64(len(features)+fewFeatures)) }

// maxParts bounds the parts of a call that are judged by themselves; what is behind them is one.
const maxParts = 64

// fewFeatures is how many features some ten words have.
const fewFeatures = 40

// maxResembling bounds the arguments, in bytes, of which anything is said: what was learnt is
// of calls, and a program or a text of pages is none. Of the conversation as much is read, the
// beginning and the end.
const maxResembling = 4 << 10

// impression collects the features of a call, or of a part of it, each once.
type impression struct {
	seen     [resemblanceBuckets / 64]uint64
	features []uint32
}

func (i *impression) add(kind byte, words ...string) {
	h := (uint32(0x811c9dc5) ^ uint32(kind)) * 0x01000193 // FNV-1a
	for _, w := range words {
		for _, b := range []byte(w) {
			h = (h ^ uint32(b)) * 0x01000193
		}
		h = (h ^ ' ') * 0x01000193
	}
	i.put((h ^ h>>17) & (resemblanceBuckets - 1))
}

func (i *impression) put(features ...uint32) {
	for _, f := range features {
		if bit := uint64(1) << (f % 64); i.seen[f/64]&bit == 0 {
			i.seen[f/64] |= bit
			i.features = append(i.features, f)
		}
	}
}

// take returns the features and begins anew.
func (i *impression) take() []uint32 {
	features := i.features
	*i = impression{}
	return features
}

// impressionsOf reads the name of a tool, its arguments, and which of their words the user said or
// only a text did: of the whole call first, then of each of its parts, which are the scalars of the
// arguments and the commands in them. What a tool passes on to people or looks up is told from
// what it does.
//
// The kinds of features are t and T, words and pairs of the tool's name; k, words of members'
// names; a, A and S, words of values, pairs, and pairs over one word between; p, P and Q, the same
// of prose; f, the first word behind the tool's; K, words of short values with their members';
// q and n, words that the user said and did not say; r and o, the shares of words that the user
// said and that only a text did; m, whether the marked names of the request are in the call.
func impressionsOf(c Call, t tool) (parts [][]uint32) {
	i := new(impression)
	name := wordsOf(c.Name)
	for n, w := range name {
		i.add('t', w)
		if n > 0 {
			i.add('T', name[n-1], w)
		}
	}
	tool := i.take()
	asked, read := wordSet(c.Request), make(map[string]bool)
	if last := len(c.Context) - 1; last >= 0 {
		read = wordSet(c.Context[last].Text)
	}
	words, said, copied := 0, 0, 0
	parts = append(parts, nil)
	eachMember(c.Arguments, func(member, text string) {
		key := wordsOf(member)
		one, two, over := byte('a'), byte('A'), byte('S')
		if !t.writes && t.roleOf(fold(member)) == roleProse {
			one, two, over = 'p', 'P', 'Q'
		}
		before, last := "", "" // words of the part before
		for part := range commandsIn(text) {
			value := wordsOf(part)
			for _, w := range key {
				i.add('k', w)
			}
			for n, w := range value {
				i.add(one, w)
				if last != "" {
					i.add(two, last, w)
				} else if n == 0 && len(name) > 0 {
					i.add('f', name[0], w)
				}
				if before != "" {
					i.add(over, before, w)
				}
				before, last = last, w
				if len(key) > 0 && len(value) <= 3 {
					i.add('K', key[len(key)-1], w)
				}
				if len(w) <= 2 {
					continue
				}
				words++
				switch {
				case asked[w]:
					said++
					i.add('q', w)
				case len(asked) > 0:
					i.add('n', w)
				}
				if read[w] && !asked[w] {
					copied++
				}
			}
			if len(parts) < maxParts {
				parts = append(parts, i.take())
			}
		}
	})
	parts = append(parts, i.take()) // what is left
	if len(asked) > 0 {
		i.add('r', sixths(said, words))
	}
	if len(read) > 0 {
		i.add('o', sixths(copied, words))
	}
	if len(asked) > 0 {
		i.add('m', markedShare(c.Request, c.Arguments))
	}
	share := append(i.take(), tool...)
	for n, part := range parts[1:] {
		i.put(part...)
		parts[n+1] = append(part, share...)
	}
	i.put(share...)
	parts[0] = i.take()
	return parts
}

// markedShare tells whether the call has the names that the request has: the marked ones, such as
// orders_old, web-sp-02 or 7f1c-22, of which a request seldom has another than that of the thing meant.
func markedShare(request string, arguments []byte) string {
	call := ""
	names, found := 0, 0
	for name := range markedNames(ends(request, maxResembling)) {
		if names++; names == 1 {
			call = strings.ToLower(string(arguments))
		}
		if strings.Contains(call, name) {
			found++
		}
	}
	switch {
	case names == 0:
		return "unnamed"
	case found == names:
		return "all"
	case found > 0:
		return "some"
	}
	return "others"
}

// markedNames are the names in a text that have figures, or parts, in small letters. Numbers, times
// and the numbers of tickets are none.
func markedNames(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for w := range strings.FieldsFuncSeq(text, func(c rune) bool {
			return !isAlphanumeric(c) && !strings.ContainsRune("./@:-_", c)
		}) {
			w = strings.Trim(w, ".:-/_")
			if len(w) >= minSaid && strings.ContainsAny(w, "0123456789._/@-") && !ticketOrNumber.MatchString(w) && !yield(strings.ToLower(w)) {
				return
			}
		}
	}
}

var ticketOrNumber = regex.New(`^(?:[A-Z]{2,6}-\d+|[\d.:,/-]+[A-Za-z]{0,3})$`)

// commandsIn cuts a text where a shell begins a new command.
func commandsIn(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := 0
		for n := 0; n < len(text); n++ {
			if c := text[n]; c == '\n' || c == ';' || (c == '&' || c == '|') && n+1 < len(text) && text[n+1] == c {
				if n > start && !yield(text[start:n]) {
					return
				}
				start = n
			}
		}
		if start < len(text) || start == 0 {
			yield(text[start:])
		}
	}
}

// sixths names the share of words.
func sixths(of, words int) string { return strconv.Itoa(min(5, 6*of/max(1, words))) }

// wordSet is the set of the words of a text.
func wordSet(text string) map[string]bool {
	set := make(map[string]bool)
	for _, w := range wordsOf(ends(text, maxResembling)) {
		set[w] = true
	}
	return set
}

// eachMember calls f with each scalar of the arguments and the name of the member that it stands
// in. A text that is JSON itself is read as if its members stood there: wrapping a call says
// nothing of it.
func eachMember(arguments []byte, f func(member, text string)) { eachMemberOf(arguments, "", f) }

func eachMemberOf(arguments []byte, member string, f func(member, text string)) {
	d := jsontext.NewDecoder(bytes.NewBuffer(arguments), jsontext.AllowDuplicateNames(true)) // which is read where it stands
	for {
		token, err := d.ReadToken()
		if err != nil {
			return
		}
		in, n := d.StackIndex(d.StackDepth())
		switch kind := token.Kind(); {
		case kind == '{' || kind == '[' || kind == '}' || kind == ']':
		case in == '{' && n%2 == 1:
			member = token.String()
		default:
			if text := token.String(); quotesJSON(text) && jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true)) {
				eachMemberOf([]byte(text), member, f)
			} else {
				f(member, text)
			}
		}
	}
}

// ends returns the beginning and the end of a text.
func ends(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most/2] + "\n" + text[len(text)-most/2:]
}

// wordsOf cuts a text into its words, figures and signs. What is written together
// (camelCase, snake_case) is cut, capitals are small, of figures only their length counts
// beyond one digit, and all names of hosts and public addresses are one word: whose they are
// says nothing of a call that somebody else makes.
func wordsOf(text string) (out []string) {
	inside := false // a name, so that no host begins here
	for len(text) > 0 {
		c, size := utf8.DecodeRuneInString(text)
		letter, digit := unicode.IsLetter(c), unicode.IsDigit(c)
		if (letter || digit) && !inside {
			if w, end := hostIn(text); end > 0 {
				out, text = append(out, w), text[end:]
				continue
			}
		}
		inside = letter || digit || c == '-' || c == '.'
		switch {
		case letter:
			size = wordEnd(text)
			out = append(out, strings.ToLower(text[:size]))
		case digit:
			size = len(text) - len(strings.TrimLeftFunc(text, unicode.IsDigit))
			if w := text[:size]; len(w) > 1 {
				out = append(out, "0000"[:min(4, utf8.RuneCountInString(w))])
			} else {
				out = append(out, w)
			}
		case !unicode.IsSpace(c) && !unicode.IsControl(c) && !strings.ContainsRune(`"{},:_`, c):
			out = append(out, text[:size])
		}
		text = text[size:]
	}
	return out
}

// wordEnd is where the word ends that a text begins with: where the letters end, or where a
// capital follows a small one.
func wordEnd(text string) int {
	small := false
	for n, c := range text {
		if !unicode.IsLetter(c) || small && unicode.IsUpper(c) {
			return n
		}
		small = unicode.IsLower(c)
	}
	return len(text)
}

// hostIn returns the word for the name of a host, or the public address, that a text begins
// with, and where that ends; 0 if it begins with none.
func hostIn(text string) (word string, end int) {
	labels, figures := 1, true
	last := 0
	for end < len(text) {
		c := text[end]
		if c == '.' {
			labels++
			last = end + 1
		} else if isLetter := c|0x20 >= 'a' && c|0x20 <= 'z'; isLetter || c == '-' {
			figures = false
		} else if c < '0' || c > '9' {
			break
		}
		end++
	}
	for end > 0 && (text[end-1] == '.' || text[end-1] == '-') {
		end--
	}
	switch {
	case labels < 2 || last >= end:
		return "", 0
	case figures && labels == 4:
		a, err := netip.ParseAddr(text[:end])
		if err != nil || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() {
			return "", 0
		}
		return "<host>", end
	case hostEndings[strings.ToLower(text[last:end])]:
		return "<host>", end
	}
	return "", 0
}

// hostEndings are what names of hosts end in.
var hostEndings = words("example test invalid com net org io dev internal local lan corp home de co app cloud ai eu uk fr jp br pl nl it es ch at us ca au in info biz me gov edu")

// A resemblance is what the weights make of the features of calls.
type resemblance struct {
	bias, unit float64
	weights    []int8
}

//go:embed resemblance.bin
var resemblanceFile []byte

// shippedResemblance is the one in the binary: two numbers of 32 bits and a byte for each
// bucket.
var shippedResemblance = readResemblance(resemblanceFile)

func readResemblance(file []byte) resemblance {
	number := func(at int) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(file[at:]))) }
	w := make([]int8, resemblanceBuckets)
	for i, b := range file[8:] {
		w[i] = int8(b) //nolint:gosec // G115: the bits of an int8
	}
	return resemblance{number(0), number(4), w}
}

// odds returns the log-odds that a call is hostile, or one of its parts.
func (m *resemblance) odds(parts [][]uint32) float64 {
	odds := m.of(parts[0])
	for _, part := range parts[1:] {
		odds = max(odds, m.of(part)-partOdds)
	}
	return odds
}

// of returns the log-odds that what has these features is hostile.
func (m *resemblance) of(features []uint32) float64 {
	sum := 0
	for _, f := range features {
		sum += int(m.weights[f])
	}
	return m.bias + m.unit*float64(sum)*scale(features)
}
