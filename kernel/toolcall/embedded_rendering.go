package toolcall

import (
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// rendered judges a page, a picture or a document in XML that a tool renders or parses: what
// it takes in from elsewhere is fetched where the tool runs.
func (r *reading) rendered(l leaf) {
	if !l.text || !strings.Contains(l.value, ":") || !strings.ContainsAny(l.value, "<(@") || !r.tool.any("render", "pdf", "html", "screenshot", "convert", "svg", "xml", "thumbnail", "wkhtmltopdf", "weasyprint", "puppeteer", "markdown", "docx", "document", "epub", "parse", "print") || r.tool.any("file", "files", "write", "edit", "str", "fs") {
		return
	}
	if !takesIn.MatchString(l.value) && !externalEntity.MatchString(l.value) || !r.spend(costSearch*len(l.value)) {
		return
	}
	for _, m := range takesIn.FindAllStringSubmatch(l.value, maxRecipes) {
		address := ""
		for _, part := range m[1:] {
			address += part
		}
		r.target(address, triesOut(address))
	}
	if externalEntity.MatchString(l.value) {
		r.breaks(ServerSideRequestForgery)
	}
}

var (
	takesIn        = regex.New(`(?i)<(?:img|iframe|frame|embed|script|source|video|audio|input|track|image|use|link|base|object|portal)\b[^<>]{0,300}?\b(?:src|href|data|poster|srcset)\s*=\s*["']?\s*((?:file|https?|ftp|gopher|dict|jar|netdoc):[^\s"'>]{1,300})|(?:\burl\(|@import)\s*["']?\s*((?:file|https?|ftp):[^\s"')]{1,300})|\b(?:fetch|open|XMLHttpRequest|importScripts|location(?:\.href)?\s*=)\s*\(?\s*(?:['"]GET['"]\s*,\s*)?["'\x60]((?:file|https?):[^\s"'\x60]{1,300})|!\[[^\]\n]{0,100}\]\(((?:file|https?):[^\s)]{1,300})|<meta\b[^<>]{0,100}\burl\s*=\s*((?:file|https?):[^\s"'>]{1,300})`)
	externalEntity = regex.New(`(?i)<!ENTITY\s+(?:%\s*)?[\w.-]+\s+(?:SYSTEM|PUBLIC\s+["'][^"']*["'])\s+["'](?:file|https?|ftp|gopher|php|expect|jar|netdoc):`)
)
