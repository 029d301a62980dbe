package toolcall

import (
	"encoding/binary"
	"index/suffixarray"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/prose"
	"github.com/caddy-lex/lex/kernel/regex"
)

// destinations judges where an act that cannot be undone is aimed. A destination that
// stands in untrusted content and in nothing that the user or the application said was
// chosen by the author of that content. Data may come from anywhere, but it may not
// choose who gets the money, unless the user left that choice to it: "pay the bill", "answer
// him". (The idea is the capability tracking of CaMeL, arXiv:2503.18813, done by comparing
// texts instead of following data.)
func (r *reading) destinations(leaves []leaf) {
	if !r.tool.commits || r.untrusted.empty() {
		return
	}
	var foreign []value // that only a text names
	for _, l := range leaves {
		if !r.spend(costSearch * len(l.value)) {
			return
		}
		if !l.text {
			if !l.number() || roleOfKey(l.key) != roleDestination {
				continue
			}
		}
		for _, d := range destinationsIn(l, r.tool.roleOf(l.key)) {
			if r.observed(d) && !r.requested(d) {
				foreign = append(foreign, value{form: prose.Fold(strings.TrimSpace(d)), kind: kindOf("", d, roleDestination)})
			}
		}
	}
	imposed := r.toldOf(foreign, func(p passage, v value) bool { return p.hostile || r.others(v) })
	for _, v := range foreign {
		if r.mayChoose(v) && !imposed {
			r.flags(UntrustedDestination)
		} else {
			r.breaks(UntrustedDestination)
		}
	}
}

// mayChoose reports whether the user left a destination to what is read: the request, or the
// application, asks for the act and names no destination of that kind. No hostile text may name it, and a
// text that tells to use it no other.
func (r *reading) mayChoose(v value) bool {
	switch {
	case !r.user.act && !r.delegates() && !r.application(r.deed):
		return false
	case v.kind == account:
		return !r.wish.names(account) && !r.hostile()
	}
	return !r.wish.names(mailbox) && !r.wish.names(handle)
}

// toldOf reports whether an instruction names one of some values, under a condition.
func (r *reading) toldOf(values []value, when func(passage, value) bool) bool {
	if len(values) == 0 {
		return false
	}
	near := newMention(unlike(values), maxAkin)
	return r.anyInstruction(func(p passage) bool {
		found := near.in(&p)
		return r.spend(costScreen*len(p.folded)+costCompare*len(found)*len(p.folded)/2) &&
			slices.ContainsFunc(found, func(v value) bool { return p.named(v) && when(p, v) })
	})
}

// hostile reports whether any instruction that was read is.
func (r *reading) hostile() bool {
	return slices.ContainsFunc(r.instructions(), func(p passage) bool { return p.hostile })
}

// others reports whether the observations name a second account.
func (r *reading) others(v value) bool {
	if v.kind != account {
		return false
	}
	form := prose.DestinationForm(v.form)
	for _, text := range r.seen {
		for _, s := range text {
			for _, m := range accounts.FindAllString(s.Text, 8) {
				if prose.DestinationForm(m) != form {
					return true
				}
			}
		}
	}
	return false
}

// provenance returns where the sensitive arguments come from: the worst of them, or "" if
// there are none or the conversation is not known.
func (r *reading) provenance(leaves []leaf) kernel.Provenance {
	if r.request.empty() && r.untrusted.empty() {
		return ""
	}
	worst := kernel.Provenance("")
	var foreign []value // that only a text names
	for _, l := range leaves {
		if !r.sensitive(l) || !r.spend(costSearch*len(l.value)) {
			continue
		}
		as, named := r.tool.roleOf(l.key), []string{l.value}
		if as == roleDestination {
			named = receiversIn(l.value)
		}
		for _, text := range named {
			p := r.origin(text)
			if p == kernel.FromUntrusted {
				foreign = append(foreign, value{form: prose.Fold(strings.TrimSpace(text)), kind: kindOf(l.key, text, as)})
			}
			if slices.Index(provenances, p) > slices.Index(provenances, worst) {
				worst = p
			}
		}
	}
	if r.toldOf(foreign, func(passage, value) bool { return true }) {
		return kernel.FromInstruction
	}
	return worst
}

// provenances goes from the best to the worst.
var provenances = []kernel.Provenance{"", kernel.FromUser, kernel.FromModel, kernel.FromUntrusted, kernel.FromInstruction}

// sensitive reports whether an argument says where an act goes or what it is done to.
func (r *reading) sensitive(l leaf) bool {
	if strings.TrimSpace(l.value) == "" || l.composed || l.value == "true" || l.value == "false" || l.value == "null" {
		return false
	}
	switch r.tool.roleOf(l.key) {
	case roleShell, roleCode, roleQuery, rolePath, roleURL, roleDestination:
		return true
	case roleProse:
		return false
	}
	return strings.HasSuffix(l.key, "id") || strings.HasSuffix(l.key, "ids") || strings.HasSuffix(l.key, "account") || strings.HasSuffix(l.key, "number") || amountKey(l.key)
}

// origin returns who names a value.
func (r *reading) origin(value string) kernel.Provenance {
	switch {
	case r.request.holds(value):
		return kernel.FromUser
	case !r.untrusted.holds(value):
		return kernel.FromModel
	}
	return kernel.FromUntrusted
}

func (l leaf) number() bool { return l.value != "" && strings.ContainsAny(l.value[:1], "0123456789") }

// destinationsIn returns what an argument names as a receiver.
func destinationsIn(l leaf, as role) []string {
	switch as {
	case roleDestination:
		return receiversIn(l.value)
	case roleURL:
		return []string{l.value}
	case roleProse, roleCode, roleShell:
		return nil
	}
	return receiver.FindAllString(l.value, 16)
}

// receiversIn returns whom a text names as those who get something: the addresses and numbers in
// it, without the names beside them, and what has neither as it stands.
func receiversIn(text string) (out []string) {
	if strings.Contains(text, "%40") {
		if plain, err := url.PathUnescape(text); err == nil {
			text = plain
		}
	}
	if strings.Contains(text, "@") && len(text) <= maxValue {
		if list, err := mail.ParseAddressList(text); err == nil {
			for _, a := range list {
				out = append(out, a.Address)
			}
			return out
		}
	}
	for piece := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == ',' || c == ';' }) {
		found := reachable.FindAllString(piece, 16)
		out = append(out, found...)
		isName := len(found) == 0 && strings.Contains(text, "<") // half of one: Miller, Ann <ann@example.com>
		if len(found) == 0 && !isName || strings.Contains(piece, "://") {
			out = append(out, strings.TrimPrefix(strings.TrimSpace(piece), "mailto:"))
		}
	}
	return out
}

// reachable finds what reaches somebody however it is introduced: mail addresses, IBANs, wallet
// addresses and international telephone numbers.
var reachable = regex.New(`[\w.+-]+@[\w-]+(?:\.[\w-]+)+|\b[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]{4}){3,7}(?:[ -]?[A-Za-z0-9]{1,3})?\b|\b0x[0-9a-fA-F]{40}\b|\b(?:bc1|[13])[a-zA-HJ-NP-Z0-9]{25,59}\b|\+\d[\d ().-]{6,18}\d\b`)

// receiver finds mail addresses, IBANs and wallet addresses.
var receiver = regex.New(`[\w.+-]+@[\w-]+(?:\.[\w-]+)+|\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b|\b0x[0-9a-fA-F]{40}\b|\b(?:bc1|[13])[a-zA-HJ-NP-Z0-9]{25,59}\b`)

// grams is the length of the pieces that long destinations are compared by.
const grams = 8

// observed reports whether untrusted content names a destination, wholly or, for
// a long one, in four fifths of its pieces.
func (r *reading) observed(d string) bool { return r.untrusted.named(d) }

// requested reports whether the user or the application names a destination.
func (r *reading) requested(d string) bool { return r.request.named(d) }

// index holds texts in which many destinations are looked up: one look takes
// the time of the destination, whatever the length of the texts.
type index struct {
	*budget
	text   string // folded by destinationForm
	plain  string // folded by foldText, with its spaces
	pieces *gramSet
	words  map[string]bool // of plain
	suffix *suffixarray.Index
	looks  int             // in text, before there is a suffix
	prints map[uint64]bool // fingerprints
}

// gramSet tells of pieces of a text that they do not stand in it: each that does sets the
// bit of its hash (Bloom 1970).
type gramSet [1 << 13]uint64

func newGramSet(text string) *gramSet {
	var s gramSet
	for i := 0; i+grams <= len(text); i++ {
		at := gramHash(text[i:])
		s[at>>6] |= 1 << (at & 63)
	}
	return &s
}

// gramHash is a number below 1 << 19 (Knuth's multiplicative hashing).
func gramHash(text string) uint64 {
	return binary.LittleEndian.Uint64([]byte(text[:grams])) * 0x9E3779B97F4A7C15 >> 45
}

func (s *gramSet) lacks(gram string) bool {
	at := gramHash(gram)
	return s[at>>6]&(1<<(at&63)) == 0
}

func newIndex(b *budget, texts ...string) *index {
	var folded, plain strings.Builder
	whole, read := 0, 0
	for _, t := range texts {
		whole += len(t) + 1
	}
	folded.Grow(whole)
	plain.Grow(whole)
	for _, t := range texts {
		if t == "" {
			continue
		}
		if !b.spend(costIndex * len(t)) {
			break
		}
		folded.WriteString(prose.DestinationForm(t))
		folded.WriteByte('\n')
		plain.WriteString(prose.Fold(t))
		plain.WriteByte('\n')
		if grown := folded.Len() + plain.Len() - read; !b.spend(costIndex * max(0, grown-2*len(t))) { // one character may become eighteen
			break
		}
		read = folded.Len() + plain.Len()
	}
	return &index{budget: b, text: folded.String(), plain: plain.String()}
}

func (x *index) empty() bool { return x.text == "" }

// contains reports whether a form stands in the texts. Most forms do not, and have a
// piece that no text has.
func (x *index) contains(form string) bool {
	if !x.spend(costWord + costScreen*len(form)) {
		return false
	}
	for i := 0; i+grams <= len(form); i++ {
		if x.lacks(form[i:]) {
			return false
		}
	}
	if x.looks++; x.looks <= maxScans {
		return x.spend(len(x.text)/8) && strings.Contains(x.text, form) // eight bytes at once
	}
	if x.suffix == nil {
		if !x.spend(costIndex * len(x.text)) {
			return false
		}
		x.suffix = suffixarray.New([]byte(x.text))
	}
	return len(x.suffix.Lookup([]byte(form), 1)) > 0
}

// maxScans is how many forms are looked for in the texts before they are sorted, which
// takes as long as so many looks.
const maxScans = 32

// lacks reports that a piece stands in no text. It may err the other way.
func (x *index) lacks(gram string) bool {
	if x.pieces == nil {
		x.pieces = newGramSet(x.text)
	}
	return x.pieces.lacks(gram)
}

func (x *index) named(d string) bool {
	if x.empty() || !x.spend(costIndex*len(d)) {
		return false
	}
	form := prose.DestinationForm(d)
	if len(form) < 4 || !x.spend(costIndex*max(0, len(form)-len(d))) {
		return false
	}
	if x.contains(form) {
		return true
	}
	if len(form) < 2*grams || len(form) > maxValue {
		return false
	}
	total := len(form) - grams + 1
	misses := 0
	for i := range total {
		if x.lacks(form[i:]) || !x.contains(form[i:i+grams]) {
			misses++
		}
		if misses*5 > total {
			return false
		}
	}
	return true
}

// holds reports whether the texts hold a value: a short one as a word of its own, a longer
// one wholly, and a long one in half of its fingerprints.
func (x *index) holds(value string) bool {
	if x.empty() {
		return false
	}
	form := prose.Fold(strings.TrimSpace(value))
	if len(form) < maxShort {
		return x.word(form)
	}
	return x.named(value) || len(form) >= minLong && x.shares(form)
}

const (
	maxShort = 8  // shorter values stand in longer words by chance
	minLong  = 48 // values of which a part is enough
)

// word reports whether a form is a word of the texts, or several.
func (x *index) word(form string) bool {
	if x.words == nil {
		if !x.spend(costIndex * len(x.plain)) {
			return false
		}
		x.words = make(map[string]bool)
		for w := range plainWords(x.plain) {
			x.words[w] = true
		}
	}
	if !x.spend(costWord) {
		return false
	}
	for w := range plainWords(form) {
		if !x.words[w] {
			return false
		}
		if len(w) == len(form) {
			return true
		}
	}
	return x.spend(len(x.plain)) && containsWord(x.plain, form)
}

// shares reports whether half of a value's fingerprints are those of the texts.
func (x *index) shares(form string) bool {
	if x.prints == nil {
		if !x.spend(costIndex * len(x.plain)) {
			return false
		}
		all := winnow(x.plain)
		x.prints = make(map[uint64]bool, len(all))
		for _, p := range all {
			x.prints[p] = true
		}
	}
	if !x.spend(costIndex * len(form)) {
		return false
	}
	found, all := 0, winnow(form)
	for _, p := range all {
		if x.prints[p] {
			found++
		}
	}
	return len(all) > 0 && 2*found >= len(all)
}

// Of every winnowWindow neighbouring pieces of winnowPiece bytes one is a fingerprint, so
// that texts which share winnowPiece+winnowWindow-1 bytes share one.
const (
	winnowPiece  = 12
	winnowWindow = 8
)

// winnow returns the fingerprints of a text: of the hashes of its pieces in a window, the
// least, and of equal ones the last (Schleimer, Wilkerson and Aiken, "Winnowing: local
// algorithms for document fingerprinting", SIGMOD 2003). Only letters and digits count.
func winnow(text string) []uint64 {
	hashes := pieces(withoutSpaces(text))
	out := make([]uint64, 0, len(hashes)/2)
	least, last := 0, -1
	for i, h := range hashes {
		switch begin := i - winnowWindow + 1; {
		case h <= hashes[least]:
			least = i
		case least < begin: // it has left the window
			least = begin
			for k := begin + 1; k <= i; k++ {
				if hashes[k] <= hashes[least] {
					least = k
				}
			}
		}
		if i+1 >= min(winnowWindow, len(hashes)) && least != last {
			out = append(out, hashes[least])
			last = least
		}
	}
	return out
}

// withoutSpaces leaves the letters and digits of a text.
func withoutSpaces(text string) []byte {
	out := make([]byte, 0, len(text))
	for i, c := range text {
		switch {
		case c < utf8.RuneSelf:
			if alphanumeric(text[i]) {
				out = append(out, text[i])
			}
		case unicode.IsLetter(c) || unicode.IsDigit(c):
			out = utf8.AppendRune(out, c)
		}
	}
	return out
}

// pieces returns the hash of every piece of a text, each from the one before (Karp and
// Rabin 1987).
func pieces(text []byte) []uint64 {
	if len(text) < winnowPiece {
		return nil
	}
	const base = 0x100000001b3
	var h, first uint64 = 0, 1
	for i := range winnowPiece {
		h = h*base + uint64(text[i]) + 1
		if i > 0 {
			first *= base
		}
	}
	out := make([]uint64, 0, len(text)-winnowPiece+1)
	out = append(out, h)
	for i := winnowPiece; i < len(text); i++ {
		h = (h-(uint64(text[i-winnowPiece])+1)*first)*base + uint64(text[i]) + 1
		out = append(out, h)
	}
	return out
}

// asksFor reports whether the user's request names a host.
func (r *reading) asksFor(host string) bool {
	return host != "" && !r.request.empty() && r.request.contains(prose.DestinationForm(host))
}
