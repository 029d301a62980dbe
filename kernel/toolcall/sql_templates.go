package toolcall

import (
	"regexp"
	"strings"

	"github.com/caddy-lex/lex/kernel/code"
	"github.com/caddy-lex/lex/kernel/sql"
)

// withTemplate adds to a text of SQL what a template in it makes, as dbt has them: the texts
// that it joins as one, in their places, and the queries that it hands to the database by
// themselves. The text stays before them, for it may be no template.
func withTemplate(text string) string {
	if !strings.Contains(text, "{%") && !strings.Contains(text, "{{") || len(text) > maxWritten {
		return text
	}
	values := make(map[string]string)
	for _, m := range templateSet.FindAllStringSubmatch(text, maxRecipes) {
		values[m[1]] = templateJoined(m[2], values)
	}
	var queries strings.Builder
	for _, m := range templateRun.FindAllStringSubmatch(text, maxRecipes) {
		queries.WriteString(";" + templateJoined(m[1], values) + ";")
	}
	made := templateValue.ReplaceAllStringFunc(text, func(found string) string {
		return templateJoined(strings.Trim(found, "{}-"), values)
	})
	return text + "\n;" + templateTag.ReplaceAllString(made, " ; ") + queries.String()
}

// maxJoined bounds the parts of one expression.
const maxJoined = 24

// templateJoined is what an expression of texts and names that ~ joins makes.
func templateJoined(e string, values map[string]string) string {
	var out strings.Builder
	for _, part := range templatePart.FindAllString(e, maxJoined) {
		value, known := values[part]
		switch {
		case part[0] == '\'' || part[0] == '"':
			out.WriteString(code.Bare(part))
		case known:
			out.WriteString(value)
		default:
			out.WriteString(sql.Unnamed)
		}
	}
	return out.String()
}

var (
	templateSet   = regexp.MustCompile(`\{%-?\s*set\s+(\w+)\s*=\s*([^%]{1,400}?)-?%\}`)
	templateRun   = regexp.MustCompile(`(?:\brun_query|\bstatement_sql|\badapter\.execute|\bexecute|(?:post|pre)[-_]hook\s*=\s*\[?)\s*\(?\s*((?:'[^']*'|"[^"]*"|[\w.]+)(?:\s*~\s*(?:'[^']*'|"[^"]*"|[\w.]+(?:\([^()]*\))?)){0,12})`)
	templateValue = regexp.MustCompile(`\{\{-?[^{}]{1,400}?-?\}\}`)
	templateTag   = regexp.MustCompile(`\{%[^%]{0,800}%\}`)
	templatePart  = regexp.MustCompile(`'[^']*'|"[^"]*"|[\w.]+(?:\([^()]*\))?`)
)
