package toolcall

import (
	"index/suffixarray"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// destinations judges where an act that cannot be undone is aimed. A
// destination that stands in untrusted content and not in the user's request
// was chosen by the author of that content. Data may come from anywhere, but it
// may not choose who gets the money. (The idea is the capability tracking of
// CaMeL, arXiv:2503.18813, done by comparing texts instead of following data.)
func (r *reading) destinations(leaves []leaf) {
	if !r.tool.commits || r.untrusted.empty() {
		return
	}
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
				r.breaks(UntrustedDestination)
			}
		}
	}
}

func (l leaf) number() bool { return l.value != "" && strings.ContainsAny(l.value[:1], "0123456789") }

// destinationsIn returns what an argument names as a receiver.
func destinationsIn(l leaf, as role) []string {
	switch as {
	case roleDestination:
		return strings.FieldsFunc(l.value, func(c rune) bool { return c == ',' || c == ';' })
	case roleURL:
		return []string{l.value}
	case roleProse, roleCode, roleShell:
		return nil
	}
	return receiver.FindAllString(l.value, 16)
}

// receiver finds mail addresses, IBANs and wallet addresses.
var receiver = regexp.MustCompile(`[\w.+-]+@[\w-]+(?:\.[\w-]+)+|\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b|\b0x[0-9a-fA-F]{40}\b|\b(?:bc1|[13])[a-zA-HJ-NP-Z0-9]{25,59}\b`)

// grams is the length of the pieces that long destinations are compared by.
const grams = 8

// observed reports whether untrusted content names a destination, wholly or, for
// a long one, in four fifths of its pieces.
func (r *reading) observed(d string) bool { return r.untrusted.named(d) }

func (r *reading) requested(d string) bool { return r.request.named(d) }

// index holds texts in which many destinations are looked up: one look takes
// the time of the destination, whatever the length of the texts.
type index struct {
	*budget
	text   string // folded by destinationForm
	suffix *suffixarray.Index
}

func newIndex(b *budget, texts ...string) *index {
	var folded strings.Builder
	for _, t := range texts {
		if t == "" {
			continue
		}
		if !b.spend(costIndex * len(t)) {
			break
		}
		folded.WriteString(destinationForm(t))
		folded.WriteByte('\n')
	}
	return &index{budget: b, text: folded.String()}
}

func (x *index) empty() bool { return x.text == "" }

// contains is made when first asked: most calls have nothing to look up.
func (x *index) contains(form string) bool {
	if x.suffix == nil {
		if !x.spend(costIndex * len(x.text)) {
			return false
		}
		x.suffix = suffixarray.New([]byte(x.text))
	}
	return x.spend(costWord+costSearch*len(form)) && len(x.suffix.Lookup([]byte(form), 1)) > 0
}

func (x *index) named(d string) bool {
	if x.empty() || !x.spend(costIndex*len(d)) {
		return false
	}
	form := destinationForm(d)
	if len(form) < 4 {
		return false
	}
	if x.contains(form) {
		return true
	}
	if len(form) < 2*grams || len(form) > maxValue {
		return false
	}
	hits, total := 0, len(form)-grams+1
	for i := range total {
		if x.contains(form[i : i+grams]) {
			hits++
		}
	}
	return hits*5 >= total*4
}

// asksFor reports whether the user's request names a host.
func (r *reading) asksFor(host string) bool {
	return host != "" && !r.request.empty() && r.request.contains(destinationForm(host))
}

// destinationForm makes spellings of one destination equal: case, width,
// spaces, dashes and invisible characters go; "[at]" and "(dot)" become signs.
func destinationForm(s string) string {
	s = strings.ToLower(norm.NFKC.String(s))
	s = strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || unicode.Is(unicode.Cf, c) || unicode.Is(unicode.Pd, c) {
			return -1
		}
		return c
	}, s)
	return spelledSigns.Replace(s)
}

var spelledSigns = strings.NewReplacer("[at]", "@", "(at)", "@", "{at}", "@", "[dot]", ".", "(dot)", ".", "{dot}", ".", "[.]", ".", "[@]", "@", "hxxp", "http")
