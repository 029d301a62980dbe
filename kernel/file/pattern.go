package file

import (
	"path"
	"slices"
	"strings"
)

// maxPattern bounds the patterns that are compared, in bytes.
const maxPattern = 1 << 10

// cutPaths cuts file names into their folders.
func cutPaths(names string) (out [][]string) {
	for name := range strings.FieldsSeq(names) {
		out = append(out, strings.Split(name, "/"))
	}
	return out
}

// standsForAny reports whether a shell's pattern can stand for one of the files, folder by
// folder.
func standsForAny(pattern string, files [][]string) bool {
	if !strings.ContainsAny(pattern, "*?[") || len(pattern) > maxPattern {
		return false
	}
	parts := strings.Split(strings.ToLower(pattern), "/")
	return pattern != "*" && slices.ContainsFunc(files, func(known []string) bool {
		return len(parts) >= len(known) && slices.EqualFunc(parts[len(parts)-len(known):], known, standsFor)
	})
}

// standsFor reports whether a pattern stands for one folder or file.
func standsFor(pattern, name string) bool {
	dotted := pattern != "" && (pattern[0] == '.' || pattern[0] == '[')
	if dotted != (name[0] == '.') {
		return false
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
