package govern

import (
	"github.com/caddy-lex/lex/wire"
)

// Nobody reads the images and files of a message, so they are judged by what they came
// with: where all that a message of the history or a result of a tool says is replaced,
// they go too.

// wentWithText is why an attachment is replaced.
const wentWithText = "it came with a text that was removed"

// A teller is what says something by itself: a message, or the result of a tool in one.
type teller struct{ message, result int }

func tellerOf(p wire.Part) teller { return teller{p.Message, p.Result} }

// splitAttachments divides attachments into those that go with the parts that are replaced,
// and those that stay.
func (o *Opened) splitAttachments(in *Input, attachments, parts, replaced []wire.Part) (gone, stay []wire.Part) {
	paths := make(map[string]bool)
	for _, p := range replaced {
		if !o.annotates(p) {
			paths[p.Path] = true
		}
	}
	silenced, speaks := make(map[teller]bool), make(map[teller]bool)
	for _, p := range parts {
		switch {
		case paths[p.Path]:
			silenced[tellerOf(p)] = true
		case p.Text != "" && p.Kind != wire.Name:
			speaks[tellerOf(p)] = true
		}
	}
	for _, p := range attachments {
		whole := in.refused[p.Message] && !speaks[teller{message: p.Message}]
		if p.Attachment() && !speaks[tellerOf(p)] && (whole || p.Result > 0 && silenced[tellerOf(p)]) {
			gone = append(gone, p)
		} else {
			stay = append(stay, p)
		}
	}
	return gone, stay
}

// recordAttachments records what becomes of attachments.
func (o *Opened) recordAttachments(gone, stay []wire.Part) {
	for _, p := range gone {
		o.redact(p, wentWithText)
	}
	for _, p := range stay {
		o.Coverage.Skip("request."+p.Path, string(p.Kind), p.Bytes)
	}
}
