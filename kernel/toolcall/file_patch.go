package toolcall

import "github.com/caddy-lex/lex/kernel/regex"

// patched are the names of files in the headers of a patch: git's, and those of the
// patches that models write.
var patched = regex.New(`(?m)^(?:\*\*\* (?:Update|Add|Delete|Move to)(?: File)?: |(?:\+\+\+|---) (?:[ab]/)?|rename (?:from|to) |diff --git a/)(\S[^\t\n]*)`)

// maxPatched bounds the files of one patch that are judged.
const maxPatched = 256

// patch judges a patch by the files that it changes; what it writes into them is
// prose.
func (r *reading) patch(l leaf) {
	for _, m := range patched.FindAllStringSubmatch(l.value, maxPatched) {
		if m[1] != "/dev/null" {
			r.file(m[1])
		}
	}
	r.prose(l)
}
