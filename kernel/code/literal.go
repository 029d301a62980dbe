package code

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-lex/lex/kernel/prose"
	"github.com/caddy-lex/lex/kernel/regex"
)

// listOf writes values as a list of literals.
func listOf(values []string) string {
	quoted := make([]string, len(values))
	for n, v := range values {
		quoted[n] = literalOf(v)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// bareLiteral is what the literal holds that a text begins with.
func bareLiteral(text []byte) string {
	return string(text[1 : 1+bytes.IndexByte(text[1:], text[0])])
}

// literalOf writes a value as a literal that has no escapes.
func literalOf(value string) string {
	if strings.Contains(value, "'") && !strings.Contains(value, `"`) {
		return `"` + value + `"`
	}
	return "'" + strings.ReplaceAll(value, "'", " ") + "'"
}

// IsLiteral reports whether a value is one literal and nothing else.
func IsLiteral(value string) bool {
	return len(value) > 1 && (value[0] == '\'' || value[0] == '"') && strings.IndexByte(value[1:], value[0]) == len(value)-2
}

// refolded writes the values that operations on literals alone make, until there are no
// more of them.
func (r *Reader) refolded(text string) string {
	for range 4 {
		if !r.spend(costScreen*len(text)) || !foldable.Matches(text) || !r.spend(costFold*len(text)) {
			return text
		}
		before := text
		for _, rule := range foldings {
			text = rule.what.ReplaceAllStringFunc(text, func(found string) string {
				return rule.fold(rule.what.Regexp().FindStringSubmatch(found))
			})
		}
		if text == before || len(text) > 2*MaxProgram {
			break
		}
	}
	return text
}

// anyLiteral is one literal as the follower writes it, and aList several.
const (
	anyLiteral = `('[^']*'|"[^"]*")`
	aList      = `((?:\s*(?:'[^']*'|"[^"]*")\s*,?){1,16})`
)

// Bare is what stands between the marks of a literal.
func Bare(literal string) string { return literal[1 : len(literal)-1] }

func literalsIn(list string) []string {
	var out []string
	for _, l := range listItem.FindAllString(list, 16) {
		out = append(out, Bare(l))
	}
	return out
}

var listItem = regexp.MustCompile(`'[^']*'|"[^"]*"`)

// foldings are what languages do with literals, and the ways to a member or a module by
// its name.
var foldings = []struct {
	what *regex.Expression
	fold func(m []string) string
}{
	{regex.New(anyLiteral + `\s*\+\s*` + anyLiteral), func(m []string) string { return literalOf(Bare(m[1]) + Bare(m[2])) }},
	{regex.New(anyLiteral + `\.join\(\s*[\[({]` + aList + `[\])}]\s*\)`), func(m []string) string { return literalOf(strings.Join(literalsIn(m[2]), Bare(m[1]))) }},
	{regex.New(`\[` + aList + `\]\.join\(?\s*` + anyLiteral + `?\s*\)?`), func(m []string) string {
		by := ","
		if m[2] != "" {
			by = Bare(m[2])
		}
		return literalOf(strings.Join(literalsIn(m[1]), by))
	}},
	{regex.New(`\b(?:implode|join|strings\.Join|table\.concat)\(\s*` + anyLiteral + `\s*,\s*[\[(]?` + aList + `[\])]?\s*\)`), func(m []string) string { return literalOf(strings.Join(literalsIn(m[2]), Bare(m[1]))) }},
	{regex.New(`\b(?:table\.concat|strings\.Join)\(\s*(?:\[\]string)?\{` + aList + `\}\s*(?:,\s*` + anyLiteral + `)?\s*\)`), func(m []string) string {
		by := ""
		if m[2] != "" {
			by = Bare(m[2])
		}
		return literalOf(strings.Join(literalsIn(m[1]), by))
	}},
	{regex.New(anyLiteral + `(?:\[::-1\]|\.reverse\b(?:\(\))?|:reverse\(\)|\.split\((?:''|"")\)\.reverse\(\)\.join\((?:''|"")\))`), func(m []string) string { return literalOf(prose.Reversed(Bare(m[1]))) }},
	{regex.New(`(?:\bstrrev|\bscalar\s+reverse|\bstring\.reverse|\breverse|(?:''|"")\.join\(reversed)\s*\(?\s*` + anyLiteral + `\s*\)(?:\))?`), func(m []string) string { return literalOf(prose.Reversed(Bare(m[1]))) }},
	{regex.New(`\breversed\(\s*\[` + aList + `\]\s*\)|\[` + aList + `\](?:\[::-1\]|\.reverse\b(?:\(\))?|\.toReversed\(\))`), func(m []string) string {
		values := literalsIn(m[1] + m[2])
		slices.Reverse(values)
		return listOf(values)
	}},
	{regex.New(anyLiteral + `\.split\(\s*` + anyLiteral + `?\s*\)|` + anyLiteral + `\.split\b`), splitLiteral},
	{regex.New(`\[` + aList + `\]\s*\+\s*\[` + aList + `\]`), func(m []string) string { return listOf(append(literalsIn(m[1]), literalsIn(m[2])...)) }},
	{regex.New(`\[` + aList + `\]\[\s*(\d{1,2})\s*\]`), func(m []string) string {
		values := literalsIn(m[1])
		if n, err := strconv.Atoi(m[2]); err == nil && n < len(values) {
			return literalOf(values[n])
		}
		return m[0]
	}},
	{regex.New(`\{([^{}]{1,300})\}\[\s*` + anyLiteral + `\s*\]`), memberLiteral},
	{regex.New(anyLiteral + `(?:\[\s*(-?\d{0,3})\s*:\s*(-?\d{0,3})\s*\]|\.(?:slice|substring|substr)\(\s*(\d{1,3})\s*(?:,\s*(\d{1,3})\s*)?\))`), cutLiteral},
	{regex.New(anyLiteral + `\s*\*\s*(\d{1,2})\b`), func(m []string) string {
		n, err := strconv.Atoi(m[2])
		if err != nil || n*len(m[1]) > MaxValue {
			return m[0]
		}
		return literalOf(strings.Repeat(Bare(m[1]), n))
	}},
	{regex.New(`\b(?:chr|Chr|String\.from(?:CharCode|CodePoint))\(\s*(\d{1,3}(?:\s*,\s*\d{1,3}){0,63})\s*\)`), func(m []string) string {
		if word := Spelled(m[1]); word != "" && word != "'" && word != "\"" {
			return literalOf(word)
		}
		return m[0]
	}},
	{regex.New(anyLiteral + `\.translate\(\s*str\.maketrans\(\s*` + anyLiteral + `\s*,\s*` + anyLiteral + `\s*\)\s*\)`), transliterated},
	{regex.New(anyLiteral + `\.tr\(\s*` + anyLiteral + `\s*,\s*` + anyLiteral + `\s*\)`), transliterated},
	{regex.New(anyLiteral + `\s*(?:\+|\.)\s*\[` + aList + `\]`), func(m []string) string { // of a loop: one by one
		values := literalsIn(m[2])
		for n := range values {
			values[n] = Bare(m[1]) + values[n]
		}
		return listOf(values)
	}},
	{regex.New(`\+\s*\(\s*` + anyLiteral + `\s*\)`), func(m []string) string { return "+" + m[1] }},
	{regex.New(`\[\.\.\.` + anyLiteral + `\]\.reverse\(\)\.join\((?:''|"")\)`), func(m []string) string { return literalOf(prose.Reversed(Bare(m[1]))) }},
	{regex.New(anyLiteral + `\s*%\s*(?:\(` + aList + `\)|` + anyLiteral + `)`), func(m []string) string { return literalOf(withFilled(Bare(m[1]), "%s", literalsIn(m[2]+m[3]))) }},
	{regex.New(anyLiteral + `\.format\(` + aList + `\)`), func(m []string) string { return literalOf(withFilled(Bare(m[1]), "{}", literalsIn(m[2]))) }},
	{regex.New(`\b(?:sprintf|string\.format|fmt\.Sprintf|util\.format|format)\(\s*` + anyLiteral + `\s*,` + aList + `\)`), func(m []string) string { return literalOf(withFilled(Bare(m[1]), "%s", literalsIn(m[2]))) }},
	{regex.New(anyLiteral + `\.(?:replace|replaceAll|gsub|sub)\(\s*` + anyLiteral + `\s*,\s*` + anyLiteral + `\s*\)`), func(m []string) string {
		return literalOf(strings.ReplaceAll(Bare(m[1]), Bare(m[2]), Bare(m[3])))
	}},
	{regex.New(anyLiteral + `\.(?:lower|toLowerCase|downcase|strip|trim|encode|decode|toString)\((?:` + anyLiteral + `)?\)`), func(m []string) string { return literalOf(strings.TrimSpace(strings.ToLower(Bare(m[1])))) }},
	{regex.New(`\b(?:(?:base64\.)?(?:urlsafe_|standard_)?b64decode|atob|base64_decode|decode_base64|Base64\.(?:strict_|urlsafe_)?decode64|Buffer\.from|bytes\.fromhex|binascii\.unhexlify|hex2bin|codecs\.decode|str_rot13)\(\s*` + anyLiteral + `(?:\s*,\s*` + anyLiteral + `)?\s*\)`), decodedLiteral},
	{regex.New(`\b(?:getattr|Reflect\.get|operator\.attrgetter)\(\s*([\w.()'"/, -]{1,200}?)\s*,\s*\[?\s*['"](\w{1,60})['"]\s*\]?\s*(?:,[^()]{0,40})?\)`), func(m []string) string { return m[1] + "." + m[2] }},
	{regex.New(`([\w)\]])(?:\?\.)?\[\s*['"](\w{1,60})['"]\s*\]\s*\(`), func(m []string) string { return m[1] + "." + m[2] + "(" }},
	{regex.New(`\.(?:public_send|send|__send__|method)[( ]\s*(?::|['"])(\w{1,60})['"]?\s*(?:,\s*|\))`), func(m []string) string { return "." + m[1] + "(" }},
	{regex.New(`->\{\s*['"](\w{1,60})['"]\s*\}|->['"](\w{1,60})['"]\s*\(`), func(m []string) string {
		if m[2] != "" {
			return "->" + m[2] + "("
		}
		return "->" + m[1]
	}},
	{regex.New(`\b(?:__import__|importlib\.import_module|import_module|require|import)\(\s*['"](?:node:)?([\w.-]{1,40})(/promises)?['"]\s*\)`), func(m []string) string { return m[1] }},
	{regex.New(`\bcall_user_func(?:_array)?\(\s*['"](\w{1,40})['"]\s*,`), func(m []string) string { return m[1] + "(" }},
	{regex.New(`\b(?:globals|locals|vars|builtins|__builtins__|globalThis|window|global)(?:\(\))?\[\s*['"](\w{1,60})['"]\s*\]`), func(m []string) string { return m[1] }},
	{regex.New(`(^|[=;{,(\s])['"]([a-z_]{2,40})['"]\(`), func(m []string) string { return m[1] + m[2] + "(" }},
}

// foldable tells the texts that one of the foldings may change.
var foldable = func() *regex.Screen {
	var all []*regex.Expression
	for _, rule := range foldings {
		all = append(all, rule.what)
	}
	return regex.NewScreen(all...)
}()

// transliterated is a text with the characters of one set in the place of another's.
func transliterated(m []string) string {
	if made, is := Transliterate(Bare(m[1]), Bare(m[2]), Bare(m[3])); is {
		return literalOf(made)
	}
	return m[0]
}

// withFilled writes values in the places that a format has for them.
func withFilled(format, hole string, values []string) string {
	for _, v := range values {
		format = strings.Replace(format, hole, v, 1)
	}
	return format
}

// splitLiteral is the list that a text is cut into.
func splitLiteral(m []string) string {
	by, text := "", m[1]+m[3]
	if m[2] != "" {
		if by = Bare(m[2]); by == "" {
			return m[0]
		}
	}
	values := strings.Fields(Bare(text))
	if by != "" {
		values = strings.Split(Bare(text), by)
	}
	if len(values) < 2 || len(values) > 16 {
		return m[0]
	}
	return listOf(values)
}

// memberLiteral is the text that a member of an object of literals holds.
func memberLiteral(m []string) string {
	for _, pair := range memberPair.FindAllStringSubmatch(m[1], 16) {
		if strings.Trim(pair[1], `'"`) == Bare(m[2]) {
			return pair[2]
		}
	}
	return m[0]
}

var memberPair = regexp.MustCompile(`('[^']*'|"[^"]*"|\w+)\s*(?::|=>)\s*('[^']*'|"[^"]*")`)

// cutLiteral is a part of a text, by its ends.
func cutLiteral(m []string) string {
	text := Bare(m[1])
	from, to := 0, len(text)
	for _, end := range []struct {
		digits string
		at     *int
	}{{m[2] + m[4], &from}, {m[3] + m[5], &to}} {
		if n, err := strconv.Atoi(end.digits); err == nil {
			if *end.at = n; n < 0 {
				*end.at += len(text)
			}
		}
	}
	if strings.Contains(m[0], ".substr(") && m[5] != "" {
		to += from
	}
	if from, to = max(from, 0), min(to, len(text)); from > to {
		return m[0]
	}
	return literalOf(text[from:to])
}

// decodedLiteral is what a literal holds, if it is readable, and otherwise the call.
func decodedLiteral(m []string) string {
	forms := Decoded(Bare(m[1]))
	rotated := strings.Contains(m[0], "rot")
	for n, form := range forms {
		if last := n == len(forms)-1; last == rotated && Printable([]byte(form)) {
			return literalOf(form)
		}
	}
	return m[0]
}
