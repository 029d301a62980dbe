package detect

import "context"

// MaxViews bounds the views of a text.
const MaxViews = maxViews

// Reading and View are what a text is read as.
type (
	Reading = inspected
	View    = view
)

// Span returns the range of the original text that Text[from:to] was read
// from, 0 <= from <= to <= len(Text): to the character where a text is only
// normalised, the whole encoded piece where it was decoded.
func (v view) Span(from, to int) Span { return v.from.span(from, to) }

// Read is read with the cancellation as an error, as every exported function
// gives it.
func Read(ctx context.Context, s string) (r Reading, err error) {
	defer recoverCancellation(&err)
	return read(ctx, s), nil
}

// Views returns the texts of [Read].
func Views(s string) []string {
	r := read(context.Background(), s)
	out := make([]string, len(r.Views))
	for i, v := range r.Views {
		out[i] = v.Text
	}
	return out
}

// Phrases are the lists of phrases that the judge looks for.
var Phrases = [][]string{
	identities, identitiesAfterAttack, disavowals, disavowalsAfterAttack, affirmations, declining, declined, sorry, negated,
	reversals, reservations, reasons, transitions, deliveries, alternatives,
}

// AssertedLists are those of them that [assertions] finds.
var AssertedLists = assertedLists

// Unstretched returns the text of unstretched.
func Unstretched(normal string) string { return unstretched(newText(normal)).text }

// Unrepeated returns the text of unrepeated.
func Unrepeated(normal string) string { return unrepeated(newText(normal)).text }
