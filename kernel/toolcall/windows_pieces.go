package toolcall

import (
	"encoding/base64"
	"encoding/binary"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-lex/lex/kernel/code"
	"github.com/caddy-lex/lex/kernel/regex"
)

// maxPasses bounds how deeply operations on literals stand within each other.
const maxPasses = 4

// windowsPieces writes the literals that PowerShell makes of others: joined, formatted,
// replaced, turned round, spelled by their codes, or put into a text.
func windowsPieces(text string) string {
	if len(text) > code.MaxProgram || !windowsMakes.Matches(text) {
		return text
	}
	text = windowsNumbered.ReplaceAllStringFunc(text, func(found string) string {
		m := windowsNumbered.FindStringSubmatch(found)
		n, err := strconv.ParseUint(m[1]+m[2], 10, 32)
		if err != nil {
			return found
		}
		address, _ := netip.AddrFromSlice(binary.BigEndian.AppendUint32(nil, uint32(n)))
		return "'" + address.String() + "'"
	})
	text = windowsShown.ReplaceAllString(text, "$1")
	for range maxPasses {
		before := text
		text = windowsInterpolated(text)
		for _, operation := range windowsOperations {
			text = operation.pattern.ReplaceAllStringFunc(text, func(found string) string {
				if made, is := operation.of(operation.pattern.Regexp().FindStringSubmatch(found)); is && len(made) < maxValue && !strings.ContainsAny(made, "'\n") {
					return "'" + made + "'"
				}
				return found
			})
		}
		if text == before {
			break
		}
	}
	text = windowsMethodName.ReplaceAllString(text, "$1$2$3(")
	text = windowsCalled.ReplaceAllString(text, "$1 $2$3 ")
	return windowsBracketed.ReplaceAllString(text, " $1$2 ")
}

// windowsMakes finds what makes a text of others.
var windowsMakes = regex.ScreenOf(`-join\b`, `\]::(?:join|concat|reverse)\(`, `\.replace\(`, `-[ci]?replace\b`, `\[(?:system\.)?(?:net\.)?ipaddress\]`, `-f\s*\(?['"]`, `\.tochararray\(`, `[.:]\(?['"]\w+['"]\)?\(`, `&\s*\(?['"$]`, `['"]\s*\+\s*['"$]`, `\$\w+\s*\+\s*['"]`)

const windowsText = `(?:'[^'\n]{0,200}'|"[^"\n]{0,200}")`

// windowsOperation is one of them, and what it makes of the parts of its match.
type windowsOperation struct {
	pattern *regex.Expression
	of      func(m []string) (string, bool)
}

var windowsOperations = []windowsOperation{
	{regex.New(`\(?-join\s*\(*\s*(?:\[char\[\]\]\s*)?\(*\s*((?:\d{2,3}\s*,\s*)+\d{2,3})\s*\)*(?:\s*\|\s*(?:%|foreach(?:-object)?)\s*\{\s*\[char\](?:\[int\])?\s*\$_\s*\})?\s*\)*`), func(m []string) (string, bool) {
		word := code.Spelled(m[1])
		return strings.ToLower(word), word != ""
	}},
	{regex.New(`\(?-join\s*\(?\s*\(?(` + windowsText + `)\)?\s*\[\s*\(?[^\]\n]{0,60}length[^\]\n]{0,12}\.\.\s*0\s*\]\s*\)?|\(?(` + windowsText + `)\)?\s*\[\s*\(?(?:[^\]\n]{0,60}length[^\]\n]{0,12}\.\.\s*0|-1\s*\.\.\s*-[^\]\n]{0,60}length\)?)\s*\]\s*-join\s*(?:''|"")`), func(m []string) (string, bool) {
		letters := []rune(code.Bare(m[1] + m[2]))
		slices.Reverse(letters)
		return string(letters), len(letters) > 0
	}},
	{regex.New(`-join\s*\(?\s*\(?(` + windowsText + `)\)?\s*\[\s*(-?\d+)\s*\.\.\s*(-?\d+)\s*\]\s*\)?`), func(m []string) (string, bool) {
		text := []rune(code.Bare(m[1]))
		from, err := strconv.Atoi(m[2])
		to, err2 := strconv.Atoi(m[3])
		if err != nil || err2 != nil || from < to && from >= 0 || len(text) == 0 {
			return "", false
		}
		slices.Reverse(text)
		return string(text), true
	}},
	{regex.New(`-join\s*@?\(?\s*@?\(?\s*(` + windowsText + `(?:\s*,\s*` + windowsText + `)+)\s*\)?`), func(m []string) (string, bool) {
		return strings.Join(windowsList(m[1]), ""), true
	}},
	{regex.New(`\(?\s*(` + windowsText + `(?:\s*,\s*` + windowsText + `)+)\s*\)?\s*-join\s*(` + windowsText + `)`), func(m []string) (string, bool) {
		return strings.Join(windowsList(m[1]), code.Bare(m[2])), true
	}},
	{regex.New(`\[(?:system\.)?string\]::(?:join\(\s*(?:''|""|\[string\]::empty)\s*,|concat\()\s*@?\(?\s*(` + windowsText + `(?:\s*,\s*` + windowsText + `)*)\s*\)?\s*\)`), func(m []string) (string, bool) {
		return strings.Join(windowsList(m[1]), ""), true
	}},
	{regex.New(`(` + windowsText + `)\.replace\(\s*(` + windowsText + `)\s*,\s*(` + windowsText + `)\s*\)`), func(m []string) (string, bool) {
		return strings.ReplaceAll(code.Bare(m[1]), code.Bare(m[2]), code.Bare(m[3])), code.Bare(m[2]) != ""
	}},
	{regex.New(`(` + windowsText + `)\s*-[ci]?replace\s*\(?(` + windowsText + `)\s*,\s*(` + windowsText + `)\)?`), func(m []string) (string, bool) {
		return strings.ReplaceAll(code.Bare(m[1]), code.Bare(m[2]), code.Bare(m[3])), code.Bare(m[2]) != ""
	}},
	{regex.New(`(` + windowsText + `)\s*-f\s*\(?(` + windowsText + `(?:\s*,\s*` + windowsText + `)*)\)?`), func(m []string) (string, bool) {
		out, words := code.Bare(m[1]), windowsList(m[2])
		for i, word := range words[:min(len(words), 10)] {
			out = strings.ReplaceAll(out, "{"+strconv.Itoa(i)+"}", word)
		}
		return out, true
	}},
	{regex.New(`\(?\s*(` + windowsText + `)\s*\)?\s*\+\s*\(?\s*(` + windowsText + `)\s*\)?`), func(m []string) (string, bool) {
		return code.Bare(m[1]) + code.Bare(m[2]), true
	}},
}

// windowsList are the literals of a list.
func windowsList(list string) []string {
	var out []string
	for _, m := range windowsLiteral.FindAllString(list, maxBlocks) {
		out = append(out, code.Bare(m))
	}
	return out
}

var (
	windowsLiteral = regexp.MustCompile(windowsText)

	// What is called by a name in quotes, as a member and as a command.
	// windowsNumbered is an address of a machine as a number.
	windowsNumbered = regex.New(`\[(?:system\.)?(?:net\.)?ipaddress\](?:::(?:parse|new)\(\s*['"]?(\d{8,10})['"]?\s*\)|\s*['"]?(\d{8,10})['"]?)`)

	// windowsShown is a literal that a text takes in as an expression.
	windowsShown = regex.New(`\$\(\s*'([\w.:/-]{1,200})'\s*\)`)

	windowsMethodName = regex.New(`(\.|::)\(?(?:'(\w+)'|"(\w+)")\)?\s*\(`)
	windowsCalled     = regex.New(`(^|[&;|{(\n]|\s[&.])\s*\(*(?:'([\w.-]+)'|"([\w.-]+)")\)*`)
	windowsBracketed  = regex.New(`\s\(\s*(?:'([\w./\\:-]+)'|"([\w./\\:-]+)")\s*\)`)
	windowsSet        = regex.New(`\$(\w+)\s*=\s*\(?(` + windowsText + `)\)?(\.tochararray\(\))?\s*(?:[;\n)]|$)`)
	windowsInText     = regexp.MustCompile(`"[^"\n]*\$[^"\n]*"`)
	windowsName       = regexp.MustCompile(`\$(?:\((\w+)\)|\{(\w+)\}|(\w+))`)
	windowsReversed   = regex.New(`\[array\]::reverse\(\s*\$(\w+)\s*\)`)
	windowsArray      = regex.New(`\$(\w+)\s*=\s*\$(\w+)\.tochararray\(\)`)
)

// windowsInterpolated writes the values of variables that are plain literals in place of their
// names, in texts, in sums and where they are joined.
func windowsInterpolated(text string) string {
	values := make(map[string]string)
	for _, m := range windowsSet.FindAllStringSubmatch(text, maxBlocks) {
		values[m[1]] = code.Bare(m[2])
	}
	if len(values) == 0 {
		return text
	}
	for _, m := range windowsArray.FindAllStringSubmatch(text, maxPlaces) {
		if value, known := values[m[2]]; known {
			values[m[1]] = value
		}
	}
	for _, m := range windowsReversed.FindAllStringSubmatch(text, maxPlaces) {
		if value, known := values[m[1]]; known {
			letters := []rune(value)
			slices.Reverse(letters)
			text = strings.NewReplacer("-join $"+m[1], "'"+string(letters)+"'", "-join($"+m[1]+")", "'"+string(letters)+"'").Replace(text)
		}
	}
	valueOf := func(name string) (string, bool) {
		m := windowsName.FindStringSubmatch(name)
		value, known := values[m[1]+m[2]+m[3]]
		return value, known && len(value) < maxValue/4
	}
	text = windowsInText.ReplaceAllStringFunc(text, func(quote string) string {
		return windowsName.ReplaceAllStringFunc(quote, func(name string) string {
			if value, known := valueOf(name); known {
				return value
			}
			return name
		})
	})
	return windowsSummand.ReplaceAllStringFunc(text, func(found string) string {
		name := windowsName.FindString(found)
		if value, known := valueOf(name); known {
			return strings.Replace(found, name, "'"+value+"'", 1)
		}
		return found
	})
}

// windowsSummand is a variable that something is added to, or that is called.
var windowsSummand = regex.New(`\$\w+\s*\+\s*['"$]|['"]\s*\+\s*\$\w+|[&.]\s*\(*\$\w+(?:\s|$)|-(?:join|f)\s*\(?\$\w+|\$\w+\.replace\(|\$\w+\s*-[ci]?replace|\$\w+\[[^\]\n]{0,60}\.\.`)

// windowsDecoded writes what base64 in a text says, before its case is folded.
func windowsDecoded(text string) string {
	if !strings.Contains(strings.ToLower(text), "getstring(") {
		return text
	}
	return windowsPacked.ReplaceAllStringFunc(text, func(found string) string {
		m := windowsPacked.Regexp().FindStringSubmatch(found)
		raw, err := base64.StdEncoding.DecodeString(m[2])
		if err != nil {
			return found
		}
		said := string(raw)
		if strings.EqualFold(m[1], "unicode") {
			said = utf16Text(m[2])
		}
		if strings.ContainsAny(said, "'\n") || !code.Printable([]byte(said)) {
			return found
		}
		return "'" + said + "'"
	})
}

var windowsPacked = regex.New(`(?i)\[(?:system\.)?text\.encoding\]::(\w+)\.getstring\(\s*\[(?:system\.)?convert\]::frombase64string\(\s*['"]([A-Za-z0-9+/=]{4,1000})['"]\s*\)\s*\)`)
