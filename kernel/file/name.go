package file

import (
	"net/url"
	"path"
	"strings"

	"github.com/caddy-lex/lex/kernel/prose"
	"github.com/caddy-lex/lex/kernel/regex"
)

// Unknown stands in a name for what nobody knows who has only read a text.
const Unknown = "\u25a1"

// Slashed is a name with slashes in the place of backslashes.
func Slashed(name string) string { return strings.ReplaceAll(name, `\`, "/") }

// Forms returns a name as it is written and as the layers below may decode it: percent
// escapes, characters that normalise to a dot or a slash, and what a filter leaves that takes
// "../" out once.
func Forms(name string) []string {
	forms := []string{Slashed(name)}
	text := strings.TrimPrefix(name, "file://")
	for range 3 {
		next := text
		if strings.ContainsAny(text, `%\&`) { // with which all encodings begin
			next = overlong.Replace(LowerEscapes(text))
			if decoded, err := url.PathUnescape(next); err == nil {
				next = decoded
			}
		}
		if !prose.IsASCII(next) {
			next = wide.Replace(next)
		}
		if next == text {
			break
		}
		text = next
		forms = append(forms, Slashed(text))
	}
	if strings.Contains(name, "..") {
		if s := stripped.Replace(name); s != name {
			forms = append(forms, Slashed(s))
		}
	}
	return forms
}

var escape = regex.New(`%[0-9A-Fa-fuU][0-9A-Fa-f]{1,4}`)

// LowerEscapes writes the percent escapes of a text in lower case.
func LowerEscapes(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	return escape.ReplaceAllStringFunc(s, strings.ToLower)
}

// Clean is [path.Clean], which leaves a home at the front alone, and no two slashes.
func Clean(name string) string { return path.Clean(name) }

// OnDrive reports whether a name begins with a drive of Windows.
func OnDrive(name string) bool { return drive.MatchString(name) }

var drive = regex.New(`^[A-Za-z]:`)

var (
	// stripped is the spelling that survives a filter which removes "../" once.
	stripped = strings.NewReplacer("....//", "../", `....\/`, "../", "..././", "../", `..../\`, "../", `...\.\`, "../", "..;/", "../", ".../...//", "../", `....\\`, "../")
	// overlong are encodings of dot and slash that old decoders accept.
	overlong = strings.NewReplacer("%c0%2e", ".", "%e0%40%ae", ".", "%c0%5c", "/", "%c0%9v", "/", "%f0%80%80%ae", ".", "%f0%80%80%af", "/", "%c0%2f", "/", "%u2024", ".", "%uff0e", ".", "%uff0f", "/", "%u002f", "/", "%u005c", "/", `\u002e`, ".", `\u002f`, "/", "&#46;", ".", "&#47;", "/", "&#x2e;", ".", "&#x2f;", "/", "%c0%ae", ".", "%c0%af", "/", "%e0%80%ae", ".", "%e0%80%af", "/", "%c1%9c", "/", "%u002e", ".", "%u2215", "/", "%u2216", "/")
	// wide are characters that normalise to a dot or a slash.
	wide = strings.NewReplacer("\uff0e", ".", "\uff0f", "/", "\uff3c", "/", "\u2215", "/", "\u2044", "/", "\u2024", ".", "\u2025", "..", "\u29f8", "/", "\u2026", "...", "\ufe52", ".", "\ufe68", "/", "\u29f5", "/", "\u3002", ".", "\uff61", ".", "\u200b", "", "\u200d", "", "\u2060", "", "\ufeff", "", "\u202e", "", "\u00ad", "")
)
