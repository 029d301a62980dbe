package code

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/caddy-lex/lex/kernel/regex"
)

const (
	maxPasses   = 4       // operations on literals that stand within each other
	maxLiterals = 64      // of a list, and that are given to names
	maxArrays   = 4       // of characters
	maxText     = 1 << 10 // of what is made, in bytes
)

// PowerShell writes the literals that a PowerShell program in small letters makes of others:
// joined, formatted, replaced, turned round, spelled by their codes, or put into a text. What
// is called by a name in quotes is written without them. A program longer than [MaxProgram]
// stays as it is.
func PowerShell(text string) string {
	if len(text) > MaxProgram || !psMakes.Matches(text) {
		return text
	}
	text = psNumbered.ReplaceAllStringFunc(text, func(found string) string {
		m := psNumbered.FindStringSubmatch(found)
		n, err := strconv.ParseUint(m[1]+m[2], 10, 32)
		if err != nil {
			return found
		}
		address, _ := netip.AddrFromSlice(binary.BigEndian.AppendUint32(nil, uint32(n)))
		return "'" + address.String() + "'"
	})
	text = psShown.ReplaceAllString(text, "$1")
	for range maxPasses {
		before := text
		text = psInterpolated(text)
		for _, operation := range psOperations {
			text = operation.pattern.ReplaceAllStringFunc(text, func(found string) string {
				if made, is := operation.of(operation.pattern.Regexp().FindStringSubmatch(found)); is && len(made) < maxText && !strings.ContainsAny(made, "'\n") {
					return "'" + made + "'"
				}
				return found
			})
		}
		if text == before {
			break
		}
	}
	text = psMethodName.ReplaceAllString(text, "$1$2$3(")
	text = psCalled.ReplaceAllString(text, "$1 $2$3 ")
	return psBracketed.ReplaceAllString(text, " $1$2 ")
}

// psMakes finds what makes a text of others.
var psMakes = regex.ScreenOf(`-join\b`, `\]::(?:join|concat|reverse)\(`, `\.replace\(`, `-[ci]?replace\b`, `\[(?:system\.)?(?:net\.)?ipaddress\]`, `-f\s*\(?['"]`, `\.tochararray\(`, `[.:]\(?['"]\w+['"]\)?\(`, `&\s*\(?['"$]`, `['"]\s*\+\s*['"$]`, `\$\w+\s*\+\s*['"]`)

const psText = `(?:'[^'\n]{0,200}'|"[^"\n]{0,200}")`

// psOperation is one of them, and what it makes of the parts of its match.
type psOperation struct {
	pattern *regex.Expression
	of      func(m []string) (string, bool)
}

var psOperations = []psOperation{
	{regex.New(`\(?-join\s*\(*\s*(?:\[char\[\]\]\s*)?\(*\s*((?:\d{2,3}\s*,\s*)+\d{2,3})\s*\)*(?:\s*\|\s*(?:%|foreach(?:-object)?)\s*\{\s*\[char\](?:\[int\])?\s*\$_\s*\})?\s*\)*`), func(m []string) (string, bool) {
		word := Spelled(m[1])
		return strings.ToLower(word), word != ""
	}},
	{regex.New(`\(?-join\s*\(?\s*\(?(` + psText + `)\)?\s*\[\s*\(?[^\]\n]{0,60}length[^\]\n]{0,12}\.\.\s*0\s*\]\s*\)?|\(?(` + psText + `)\)?\s*\[\s*\(?(?:[^\]\n]{0,60}length[^\]\n]{0,12}\.\.\s*0|-1\s*\.\.\s*-[^\]\n]{0,60}length\)?)\s*\]\s*-join\s*(?:''|"")`), func(m []string) (string, bool) {
		letters := []rune(Bare(m[1] + m[2]))
		slices.Reverse(letters)
		return string(letters), len(letters) > 0
	}},
	{regex.New(`-join\s*\(?\s*\(?(` + psText + `)\)?\s*\[\s*(-?\d+)\s*\.\.\s*(-?\d+)\s*\]\s*\)?`), func(m []string) (string, bool) {
		text := []rune(Bare(m[1]))
		from, err := strconv.Atoi(m[2])
		to, err2 := strconv.Atoi(m[3])
		if err != nil || err2 != nil || max(from, to) > MaxValue || min(from, to) < -MaxValue {
			return "", false
		}
		var out []rune
		for at, step := from, cmp.Compare(to, from); ; at += step {
			n := at
			if n < 0 { // from the end
				n += len(text)
			}
			if n >= 0 && n < len(text) {
				out = append(out, text[n])
			}
			if at == to {
				return string(out), len(out) > 0
			}
		}
	}},
	{regex.New(`-join\s*@?\(?\s*@?\(?\s*(` + psText + `(?:\s*,\s*` + psText + `)+)\s*\)?`), func(m []string) (string, bool) {
		return strings.Join(psList(m[1]), ""), true
	}},
	{regex.New(`\(?\s*(` + psText + `(?:\s*,\s*` + psText + `)+)\s*\)?\s*-join\s*(` + psText + `)`), func(m []string) (string, bool) {
		return strings.Join(psList(m[1]), Bare(m[2])), true
	}},
	{regex.New(`\[(?:system\.)?string\]::(?:join\(\s*(?:''|""|\[string\]::empty)\s*,|concat\()\s*@?\(?\s*(` + psText + `(?:\s*,\s*` + psText + `)*)\s*\)?\s*\)`), func(m []string) (string, bool) {
		return strings.Join(psList(m[1]), ""), true
	}},
	{regex.New(`(` + psText + `)\.replace\(\s*(` + psText + `)\s*,\s*(` + psText + `)\s*\)`), func(m []string) (string, bool) {
		return strings.ReplaceAll(Bare(m[1]), Bare(m[2]), Bare(m[3])), Bare(m[2]) != ""
	}},
	{regex.New(`(` + psText + `)\s*-[ci]?replace\s*\(?(` + psText + `)\s*,\s*(` + psText + `)\)?`), func(m []string) (string, bool) {
		return strings.ReplaceAll(Bare(m[1]), Bare(m[2]), Bare(m[3])), Bare(m[2]) != ""
	}},
	{regex.New(`(` + psText + `)\s*-f\s*\(?(` + psText + `(?:\s*,\s*` + psText + `)*)\)?`), func(m []string) (string, bool) {
		out, words := Bare(m[1]), psList(m[2])
		for i, word := range words[:min(len(words), 10)] {
			out = strings.ReplaceAll(out, "{"+strconv.Itoa(i)+"}", word)
		}
		return out, true
	}},
	{regex.New(`\(?\s*(` + psText + `)\s*\)?\s*\+\s*\(?\s*(` + psText + `)\s*\)?`), func(m []string) (string, bool) {
		return Bare(m[1]) + Bare(m[2]), true
	}},
}

// psList are the literals of a list.
func psList(list string) []string {
	var out []string
	for _, m := range psLiteral.FindAllString(list, maxLiterals) {
		out = append(out, Bare(m))
	}
	return out
}

var (
	psLiteral = regexp.MustCompile(psText)

	// psNumbered is an address of a machine as a number.
	psNumbered = regex.New(`\[(?:system\.)?(?:net\.)?ipaddress\](?:::(?:parse|new)\(\s*['"]?(\d{8,10})['"]?\s*\)|\s*['"]?(\d{8,10})['"]?)`)

	// psShown is a literal that a text takes in as an expression.
	psShown = regex.New(`\$\(\s*'([\w.:/-]{1,200})'\s*\)`)

	// What is called by a name in quotes, as a member and as a command.
	psMethodName = regex.New(`(\.|::)\(?(?:'(\w+)'|"(\w+)")\)?\s*\(`)
	psCalled     = regex.New(`(^|[&;|{(\n]|\s[&.])\s*\(*(?:'([\w.-]+)'|"([\w.-]+)")\)*`)
	psBracketed  = regex.New(`\s\(\s*(?:'([\w./\\:-]+)'|"([\w./\\:-]+)")\s*\)`)
	psSet        = regex.New(`\$(\w+)\s*=\s*\(?(` + psText + `)\)?(\.tochararray\(\))?\s*(?:[;\n)]|$)`)
	psInText     = regexp.MustCompile(`"[^"\n]*\$[^"\n]*"`)
	psName       = regexp.MustCompile(`\$(?:\((\w+)\)|\{(\w+)\}|(\w+))`)
	psReversed   = regex.New(`\[array\]::reverse\(\s*\$(\w+)\s*\)`)
	psArray      = regex.New(`\$(\w+)\s*=\s*\$(\w+)\.tochararray\(\)`)
)

// psInterpolated writes the values of variables that are plain literals in place of their
// names, in texts, in sums and where they are joined.
func psInterpolated(text string) string {
	values := make(map[string]string)
	for _, m := range psSet.FindAllStringSubmatch(text, maxLiterals) {
		values[m[1]] = Bare(m[2])
	}
	if len(values) == 0 {
		return text
	}
	for _, m := range psArray.FindAllStringSubmatch(text, maxArrays) {
		if value, known := values[m[2]]; known {
			values[m[1]] = value
		}
	}
	for _, m := range psReversed.FindAllStringSubmatch(text, maxArrays) {
		if value, known := values[m[1]]; known {
			letters := []rune(value)
			slices.Reverse(letters)
			text = strings.NewReplacer("-join $"+m[1], "'"+string(letters)+"'", "-join($"+m[1]+")", "'"+string(letters)+"'").Replace(text)
		}
	}
	valueOf := func(name string) (string, bool) {
		m := psName.FindStringSubmatch(name)
		value, known := values[m[1]+m[2]+m[3]]
		return value, known && len(value) < maxText/4
	}
	text = psInText.ReplaceAllStringFunc(text, func(quote string) string {
		return psName.ReplaceAllStringFunc(quote, func(name string) string {
			if value, known := valueOf(name); known {
				return value
			}
			return name
		})
	})
	return psSummand.ReplaceAllStringFunc(text, func(found string) string {
		name := psName.FindString(found)
		if value, known := valueOf(name); known {
			return strings.Replace(found, name, "'"+value+"'", 1)
		}
		return found
	})
}

// psSummand is a variable that something is added to, or that is called.
var psSummand = regex.New(`\$\w+\s*\+\s*['"$]|['"]\s*\+\s*\$\w+|[&.]\s*\(*\$\w+(?:\s|$)|-(?:join|f)\s*\(?\$\w+|\$\w+\.replace\(|\$\w+\s*-[ci]?replace|\$\w+\[[^\]\n]{0,60}\.\.`)

// PowerShellDecoded writes what a PowerShell program decodes from base64 as a literal. Base64
// has small and capital letters, so this comes before a program is written in small ones.
func PowerShellDecoded(text string) string {
	if !strings.Contains(strings.ToLower(text), "getstring(") {
		return text
	}
	return psPacked.ReplaceAllStringFunc(text, func(found string) string {
		m := psPacked.Regexp().FindStringSubmatch(found)
		raw, err := base64.StdEncoding.DecodeString(m[2])
		if err != nil {
			return found
		}
		said := string(raw)
		if strings.EqualFold(m[1], "unicode") {
			said = UTF16(m[2])
		}
		if strings.ContainsAny(said, "'\n") || !Printable([]byte(said)) {
			return found
		}
		return "'" + said + "'"
	})
}

var psPacked = regex.New(`(?i)\[(?:system\.)?text\.encoding\]::(\w+)\.getstring\(\s*\[(?:system\.)?convert\]::frombase64string\(\s*['"]([A-Za-z0-9+/=]{4,1000})['"]\s*\)\s*\)`)

// PowerShellDecodes reports whether [PowerShellDecoded] finds base64 in a program.
func PowerShellDecodes(text string) bool { return psPacked.MatchString(text) }

// UTF16 decodes what PowerShell takes with -EncodedCommand: base64 of UTF-16. It is "" if the
// text is none.
func UTF16(text string) string {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return ""
	}
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = uint16(raw[2*i]) | uint16(raw[2*i+1])<<8
	}
	return string(utf16.Decode(units))
}
