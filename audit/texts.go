package audit

import (
	"github.com/caddy-lex/lex/kernel"
)

// Texts are the texts of a receipt's turn, or the arguments of its tool call. A text that
// is not known is nil.
type Texts struct {
	ID        string  `json:"id"` // of the receipt
	Prompt    *string `json:"prompt,omitzero"`
	Output    *string `json:"output,omitzero"`
	Arguments *string `json:"arguments,omitzero"`
	// Openings are the keys of the commitments, as the answer to the turn had them. A
	// text that has its opening is compared without the session, by anybody.
	Openings Openings `json:"openings,omitzero"`
}

// Openings are keys of commitments ([kernel.CommitmentKey]), "" where none is known.
type Openings struct {
	Prompt    string `json:"prompt,omitzero"`
	Output    string `json:"output,omitzero"`
	Arguments string `json:"arguments,omitzero"`
}

// A committedText is a text with its opening, if there is one.
type committedText struct {
	kind    kernel.Committed
	text    *string
	opening string
}

func (t Texts) all() []committedText {
	return []committedText{
		{kernel.CommittedPrompt, t.Prompt, t.Openings.Prompt},
		{kernel.CommittedOutput, t.Output, t.Openings.Output},
		{kernel.CommittedArguments, t.Arguments, t.Openings.Arguments},
	}
}

// Any reports whether there is a text to compare.
func (t Texts) Any() bool { return t.Prompt != nil || t.Output != nil || t.Arguments != nil }

// NeedSession reports whether a text has no opening, so that comparing it needs the
// secret of its session.
func (t Texts) NeedSession() bool {
	for _, c := range t.all() {
		if c.text != nil && c.opening == "" {
			return true
		}
	}
	return false
}

// CompareOpened makes the checks that compare the texts with the commitments of their
// receipt by the openings. A text without one cannot be compared.
func (t Texts) CompareOpened(r kernel.Receipt) []Check { return t.compare(&r, nil) }

// compare compares the texts with the commitments of their receipt. A text without an
// opening is compared by the session's secret, which is empty if it is gone.
func (t Texts) compare(r *kernel.Receipt, secret []byte) (checks []Check) {
	for _, c := range t.all() {
		if c.text != nil {
			checks = append(checks, c.compare(r, secret))
		}
	}
	return checks
}

func (c committedText) compare(r *kernel.Receipt, secret []byte) Check {
	name, recorded := string(c.kind)+"_commitment", r.Commitment(c.kind)
	switch {
	case recorded == "":
		return failed(name, "the turn had no such text")
	case c.opening != "" && !kernel.IsHex256(c.opening):
		return failed(name, "the opening is not 64 lower-case hexadecimal digits")
	case c.opening != "" && !kernel.Opens(c.opening, *c.text, recorded):
		return failed(name, "the text is another than the one that was sent, or the opening is another's")
	case c.opening != "":
		return passed(name, "the opening shows that the text is the one that was sent")
	case len(secret) == 0:
		return unknown(name, "the key of its session is not known: the session was erased or forgotten, is too long, or its client went back and said the same again")
	case !r.CommitsTo(*c.text, c.kind, secret):
		return failed(name, "the text is another than the one that was sent")
	}
	return passed(name, "the text is the one that was sent")
}
