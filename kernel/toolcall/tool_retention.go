package toolcall

import (
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// A rule that lets a store forget is how it is kept clean: old versions, temporary folders, logs
// of last year. One that lets it forget all there is within days deletes it, only later.

var (
	forgettingWords = words("lifecycle retention ttl")
	forgettingStore = words("lifecycle bucket s3 storage b minio blob container gcs")
	partOfStore     = words("prefix matchesprefix tag daysincenoncurrenttime")
	daysKeys        = words("days age expirationdays")

	soonGone = regex.New(`<Expiration>\s*<Days>[0-7]</Days>`)
	prefixed = regex.New(`<Prefix>[^<\s]|<Tag>`)
)

// forgets judges rules that let a store forget all of it within days.
func (d *dealing) forgets() {
	if !d.any(forgettingStore) {
		return
	}
	rule, soon, part := d.any(forgettingWords), false, false
	for _, l := range slices.Concat(d.leaves, d.long) {
		switch {
		case l.text && strings.Contains(l.value, "<LifecycleConfiguration"):
			rule, soon, part = true, soonGone.MatchString(l.value), prefixed.MatchString(l.value)
		case partOfStore[l.key]:
			part = part || l.value != "" && l.value != "/"
		case daysKeys[l.key] && !l.text:
			n, err := strconv.Atoi(l.value)
			soon = soon || err == nil && n < 8
		default:
			rule = rule || l.key == "lifecycle" || strings.HasSuffix(l.value, "?lifecycle") || (l.key == "action" || l.key == "type") && strings.EqualFold(l.value, "delete")
		}
	}
	if rule && soon && !part {
		d.breaks(DestructiveOperation)
	}
}
