package toolcall

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/regex"
	"github.com/caddy-lex/lex/kernel/resemblance"
)

// MaxWork is the budget of one call.
const MaxWork = maxWork

// Invariants is the closed set, in the order of precedence.
var Invariants = precedence

// Work decides a call and tells what it took, in the budget's units.
func Work(c Call) (Decision, int) {
	b := newBudget(context.Background())
	d, err := decide(c, b)
	if err != nil {
		panic(err) // only a context that ends gives one
	}
	return d, b.used
}

// EffectOf is the effect of a tool without an operator's word on it.
var EffectOf = effectOf

// Suspicion decides a call and tells how far it follows an instruction rather than the
// user, and whether any instruction was read.
func Suspicion(c Call) (d Decision, e float64, instructed bool) {
	b := newBudget(context.Background())
	leaves, err := readArguments(c.Arguments, b)
	if err != nil {
		return refusal(MalformedArguments), 0, false
	}
	r := newReading(c, leaves, b, nil)
	for _, l := range leaves {
		r.leaf(l)
	}
	r.compare(c, leaves)
	r.destinations(leaves)
	r.intention()
	r.amounts(c, leaves)
	return r.decision(), r.suspicion, len(r.instructions()) > 0
}

// InjectedFrom is the suspicion from which on a call that reads is blocked, and one that
// does more.
func InjectedFrom(reads bool) float64 {
	if reads {
		return readsFrom
	}
	return changesFrom
}

// Verbs are the words that name an act in a tool's name.
func Verbs() []string { return slices.Sorted(maps.Keys(verbs)) }

// NameWords splits a tool's name.
var NameWords = nameWords

// Instructions returns how many passages of a text tell a reader to do something, and
// whether one of them speaks as no honest document does.
func Instructions(text string) (n int, hostile bool) {
	r := newReading(Call{Name: "t", Context: []Observation{{Text: text}}}, nil, newBudget(context.Background()), nil)
	return len(r.instructions()), r.hostile()
}

// Winnow returns the fingerprints of a text, and the length from which on a piece that two
// texts share gives them one in common.
func Winnow(text string) (prints []uint64, shared int) {
	return winnow(text), winnowPiece + winnowWindow - 1
}

// Screens are the patterns behind a screen, and whether each matches a text as the screen
// tells.
func Screens(text string) (patterns []*regexp.Regexp, matches []bool) {
	for _, s := range []*regex.Screen{codeScreen, windowsScreen, tokenScreen, secret, sqlVerb, starter, removal, changing, requesting, decoder, executing, evaluates, startsShell, sending, governedFile, dropSite, recordFile, caddySocket, downloads, posting, turns, secretName, adminRole, windowsFetch, windowsRun, windowsDecodes} {
		mask := s.Matching(text, false)
		for i, p := range s.Patterns() {
			patterns, matches = append(patterns, p.Regexp()), append(matches, mask&(1<<i) != 0)
		}
	}
	return patterns, matches
}

// Features measures a call as the interceptor does; other says that another invariant than
// InjectedAction blocks it.
func Features(c Call) (x []float64, reads, other bool) {
	b := newBudget(context.Background())
	leaves, err := readArguments(c.Arguments, b)
	if err != nil {
		return nil, false, true
	}
	r := newReading(c, leaves, b, nil)
	for _, l := range leaves {
		r.leaf(l)
	}
	r.program(c.Name, leaves)
	r.documents(leaves)
	r.searches(leaves)
	r.compare(c, leaves)
	r.destinations(leaves)
	r.amounts(c, leaves)
	other = !r.decision().Allowed
	if len(r.seen) > 0 && !r.application(r.deed) {
		for _, f := range r.features(r.strongest()) {
			x = append(x, f.value)
		}
	}
	return x, r.effect == kernel.ToolReads, other
}

// FeatureNames in the order of Features.
var FeatureNames = func() (names []string) {
	r := newReading(Call{Name: "t", Context: []Observation{{Text: "a"}}}, nil, newBudget(context.Background()), nil)
	for _, f := range r.features(0) {
		names = append(names, f.name)
	}
	return names
}()

// Asked reports whether the request asks for the act of a call.
func Asked(c Call) bool {
	b := newBudget(context.Background())
	leaves, err := readArguments(c.Arguments, b)
	if err != nil {
		return false
	}
	r := newReading(c, leaves, b, nil)
	r.compare(c, leaves)
	return r.user.act
}

// WindowsCommands cuts a text into commands.
var WindowsCommands = windowsCommands

// PlainCommand returns the words of a text that is not given to the parser, and what the
// parser makes of it: nil unless it is one command of words without anything to expand.
func PlainCommand(text string) (plain, parsed []string) {
	plain = plainCommand(text)
	if file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), ""); err == nil {
		parsed = literals(file)
	}
	return plain, parsed
}

func literals(file *syntax.File) (out []string) {
	if len(file.Stmts) != 1 || len(file.Last) > 0 {
		return nil
	}
	st := file.Stmts[0]
	call, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns)+len(st.Redirs)+len(st.Comments) > 0 || st.Negated || st.Background || st.Coprocess {
		return nil
	}
	for _, w := range call.Args {
		if lit, is := w.Parts[0].(*syntax.Lit); !is || len(w.Parts) > 1 || lit.Value == "" {
			return nil
		}
		out = append(out, w.Lit())
	}
	return out
}

// Spliced returns how many words of a text are expanded without the library, and those
// that the library expands to something else.
func Spliced(text string, vars map[string]string) (n int, wrong []string) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return 0, nil
	}
	r := newReading(Call{Name: "t"}, nil, newBudget(context.Background()), nil)
	s := &shell{reading: r, learned: &learned{vars: vars}, words: make(map[*syntax.CallExpr]*expansion)}
	syntax.Walk(file, func(node syntax.Node) bool {
		w, is := node.(*syntax.Word)
		if !is {
			return true
		}
		literal, err := s.expandLiteral(w)
		if spliced, plain := s.spliced(w, false); plain {
			n++
			if err != nil || literal != spliced {
				wrong = append(wrong, fmt.Sprintf("%q: %q, the library %q", text, spliced, literal))
			}
		}
		if spliced, plain := s.spliced(w, true); plain && !mayHaveBraces(w) {
			if fields, err := s.expandFields(nil, w); err != nil || len(fields) != 1 || fields[0] != spliced {
				wrong = append(wrong, fmt.Sprintf("%q: %q, the library splits it into %q", text, spliced, fields))
			}
		}
		return true
	})
	return n, wrong
}

// WinnowByWindow returns the fingerprints of a text, looking into every window for itself.
func WinnowByWindow(text string) (out []uint64) {
	hashes := pieces(withoutSpaces(text))
	last := -1
	for end := min(winnowWindow, len(hashes)); end > 0 && end <= len(hashes); end++ {
		least := max(0, end-winnowWindow)
		for i := least + 1; i < end; i++ {
			if hashes[i] <= hashes[least] {
				least = i
			}
		}
		if least != last {
			out, last = append(out, hashes[least]), least
		}
	}
	return out
}

// Impressions returns the features of a call and of each of its parts.
func Impressions(c Call) [][]uint32 { return resemblance.Impressions(c.asWords(readTool(c.Name))) }

// WeightsSHA256Of is the hash of other weights: of injections with one of them changed, and of
// a resemblance.
func WeightsSHA256Of(by float64, resemblance string) string {
	changed := maps.Clone(weights)
	for _, name := range slices.Sorted(maps.Keys(changed))[:1] {
		w := changed[name]
		w.reads += by
		changed[name] = w
	}
	return hashOf(changed, resemblance)
}
