package toolcall

import (
	"bytes"
	"encoding/base64"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/code"
	"github.com/caddy-lex/lex/kernel/prose"
	"github.com/caddy-lex/lex/kernel/regex"
	"github.com/caddy-lex/lex/kernel/sql"
)

// recipeLine is a command in a list of steps, as workflows are written in YAML.
var recipeLine = regex.New(`(?m)^\s*(?:-\s+)?(?:run|command|cmd|script|exec|shell|sh|bash):\s+(\S.*)$`)

// maxRecipes bounds those of one argument.
const maxRecipes = 64

// reading is the work of one Decide: what is known of the call, and the
// invariants found broken so far.
type reading struct {
	*budget
	name       string // of the tool
	language   string // that an argument says the program is in
	tool       tool
	request    *index            // what the user and the application ask
	untrusted  *index            // what the session observed
	asked      bool              // the request is known
	certain    bool              // what is read is SQL and no sentence
	testing    bool              // the database that is read for is one of tests
	testServer bool              // and so is all that its server has
	gets       bool              // a request reads, if the call is one
	connects   bool              // a command or a query is sent to a host, and nothing is fetched from one
	workdir    string            // that the call gives its command
	variables  map[string]string // of the environment that the call gives its command
	trial      bool              // an argument says that this is for trying things out
	outward    bool              // some argument names a place outside
	everyday   bool              // what is written is what such a file has on any day
	nested     int               // shells within shells, see maxNested
	prunes     int               // tables of cron that get shorter, see dropsJobs
	rooted     int               // those of them that have the rights of root
	calls      int               // functions and aliases within each other
	invokes    int               // functions and aliases in all
	version    int               // of the variables and folders of all shells
	versions   int               // given so far
	endpoints  map[string]knownEndpoint
	values     sql.Values // of the script of SQL that is read
	broken     map[Invariant]bool
	parser     *syntax.Parser // of shells, kept for its memory
	lastText   string         // the text that was last put into plain characters,
	lastPlain  string         // and what became of it

	effect  kernel.ToolEffect
	wish    passage            // what the user asked, sentence by sentence
	rules   []prose.Sentence   // what the application asks
	seen    [][]prose.Sentence // what was observed, text by text
	told    []passage          // the instructions among it
	deed    deed               // what the call does
	user    support            // what the user says for it
	wording wording            // the same, as arguments are compared with it
	added   []addition         // what the call adds to it
	near    Invariant          // that the call comes near to

	asks      string    // the request as it was written
	loss      *bool     // it says that something is to go; nil until somebody asks
	last      passage   // its last turn
	arguments string    // of the call, folded
	texts     []string  // the short ones as they were written
	figures   []float64 // those that are numbers
	numbers   []float64 // the same, and those within others

	suspicion float64 // how likely the call follows an instruction rather than the user
}

// newReading begins to read a call. The conversation of a step was heard by the reading of the
// call that carries it.
func newReading(c Call, leaves []leaf, b *budget, heard *reading) *reading {
	r := &reading{budget: b, name: c.Name, tool: readTool(c.Name), broken: make(map[Invariant]bool), endpoints: make(map[string]knownEndpoint)}
	r.effect, _ = effectWith(c, nameWords(c.Name), leaves)
	if heard == nil {
		r.hears(c)
	} else {
		r.request, r.untrusted, r.asked = heard.request, heard.untrusted, heard.asked
		r.wish, r.rules, r.seen, r.asks, r.last = heard.wish, heard.rules, heard.seen, heard.asks, heard.last
	}
	r.toolName()
	return r
}

// hears reads the conversation around a call.
func (r *reading) hears(c Call) {
	seen := make([]string, len(c.Context))
	for n, o := range c.Context {
		seen[n] = o.Text
	}
	r.request, r.untrusted = newIndex(r.budget, c.Request, c.System), newIndex(r.budget, seen...)
	r.asked, r.asks = strings.TrimSpace(c.Request) != "", c.Request
	r.listen(c)
}

func (r *reading) breaks(v Invariant) { r.broken[v] = true }

// flags notes the first invariant that the call comes near to.
func (r *reading) flags(v Invariant) {
	if r.near == "" {
		r.near = v
	}
}

func (r *reading) decision() Decision {
	if r.over {
		return refusal(UnreadableCall)
	}
	for _, v := range precedence {
		if r.broken[v] {
			return refusal(v)
		}
	}
	return Decision{Allowed: true, Flagged: r.near}
}

func refusal(v Invariant) Decision { return Decision{Invariant: v, Reason: v.Reason()} }

// leaf reads one argument.
func (r *reading) leaf(l leaf) {
	if !r.spend(costWord + costSearch*len(l.value)) {
		return
	}
	r.setting(l)
	r.oddAmount(l)
	if !l.text {
		return
	}
	r.images(l.value)
	if queryLanguageKeys[l.key] {
		r.queriesElsewhere(l)
	}
	r.rendered(l)
	r.as(r.tool.roleOf(l.key), l)
	if r.isTyped(l) {
		r.typed(l.value)
	}
	r.sent(l)
}

// as reads an argument in a role.
func (r *reading) as(what role, l leaf) {
	if text, packed := unpackedText(l.value); packed && (what == roleShell || what == roleCode || what == roleUnknown || what == roleQuery || l.key == "payload" || l.key == "data") {
		inner := l
		inner.value = text
		if r.nested < maxNested {
			r.nested++
			r.as(what, inner)
			r.nested--
		}
	}
	switch what {
	case roleShell:
		r.shell(l.value)
		if r.tool.console() {
			r.code(l.value)
		}
	case roleCode:
		r.inLanguage(l.value)
	case roleQuery:
		r.certain = true
		r.query(l.value)
		r.certain = false
	case rolePath:
		if r.tool.any(deviceProtocols...) && strings.Contains(l.value, ":/") && r.isDeviceAddress(l.value) {
			return
		}
		if l.key == "source" && strings.ContainsAny(l.value, "\n;{") { // no name of a file
			r.inLanguage(l.value)
		}
		r.value(l.value)
		r.file(l.value)
		if strings.Contains(l.value, ":/") {
			r.address(l.value)
		}
	case roleURL:
		r.value(l.value)
		if program, is := strings.CutPrefix(strings.ToLower(l.value[:min(len(l.value), len(scriptScheme))]), scriptScheme); is && program == "" {
			r.pageScript(l.value[len(scriptScheme):])
			return
		}
		if r.connects && ownDatabaseHost.MatchString(l.value) || r.tool.any(deviceProtocols...) && r.isDeviceAddress(l.value) {
			return
		}
		if name, is := strings.CutPrefix(l.value, "file://"); is && r.tool.files() && !strings.HasPrefix(name, "//") {
			r.file(name)
			return
		}
		r.address(l.value)
	case roleProse:
		r.prose(l)
	case rolePatch:
		r.patch(l)
	case roleDestination:
		r.value(l.value)
	default:
		r.unknown(l)
	}
}

// scriptScheme is that of an address which is a script of the page it is opened on.
const scriptScheme = "javascript:"

// folderKeys are what the argument is called that says where a command runs.
var folderKeys = words("cwd workdir workingdir workingdirectory")

// variableName is the name of a variable of the environment.
var variableName = regex.New(`^[A-Za-z_]\w*$`)

// inLanguage reads a program in the language that the call names.
func (r *reading) inLanguage(text string) {
	switch {
	case commandLanguages[r.language]:
		r.shell(text)
	case r.language == "powershell" || r.language == "pwsh" || r.language == "cmd" || r.language == "batch" || r.language == "bat" || r.language == "ps1":
		r.windows(text)
	case r.language == "sql":
		r.query(text)
	}
	if cell, is := cutCell(text); is {
		r.shell(cell)
	}
	for _, m := range cellCommand.FindAllStringSubmatch(text, maxRecipes) {
		r.shell(m[1])
	}
	r.code(text)
}

var (
	commandLanguages = words("bash sh shell zsh ksh fish dash console terminal shellscript")
	languageKeys     = words("language lang interpreter runtime shell syntax kernel engine")
)

// cellCommand is a command in a line of a notebook's cell.
var cellCommand = regex.New(`(?m)^\s*(?:[\w, ]+=\s*)?(?:!{1,2}|%(?:sx|system)\s)\s*(\S.*)$`)

// cutCell returns the script of a notebook's cell that says it is a shell's.
func cutCell(text string) (string, bool) {
	for _, magic := range []string{"%%bash", "%%sh", "%%script bash", "#!/bin/bash", "#!/bin/sh", "#!/usr/bin/env bash"} {
		if rest, is := strings.CutPrefix(strings.TrimSpace(text), magic); is {
			return rest, true
		}
	}
	return "", false
}

// unpackedText is what a value in base64 says, if it is readable text.
func unpackedText(value string) (string, bool) {
	if len(value) < 12 || len(value) > maxPacked || len(value)%4 != 0 || strings.ContainsAny(value, " \n.-:") {
		return "", false
	}
	raw, err := base64.StdEncoding.DecodeString(value)
	if err != nil || !code.Printable(raw) || !bytes.ContainsAny(raw, " \n;|/") {
		return "", false
	}
	return string(raw), true
}

// maxPacked bounds the values in base64 that are read as what they say.
const maxPacked = 1 << 14

// value reads what should be a plain value: the tool may paste it into a command
// line or a query.
func (r *reading) value(text string) {
	r.injected(text)
	if strings.ContainsAny(text, ";|`\n") || strings.Contains(text, "$(") || strings.Contains(text, "&&") {
		r.shell(text)
	}
}

// prose reads text that is not executed, unless it is a script about to be
// written.
func (r *reading) prose(l leaf) {
	if strings.HasPrefix(l.value, "#!") && r.tool.writes {
		r.script(l.value)
	}
}

// betweenWords is what stands in a command line of more than a word.
const betweenWords = " \t\n;|&$`<{\u00a0"

// unknown reads an argument whose name says nothing by all that its content
// may be.
func (r *reading) unknown(l leaf) {
	for _, m := range recipeLine.FindAllStringSubmatch(l.value, maxRecipes) {
		r.shell(strings.Trim(m[1], `"'`))
	}
	if strings.ContainsAny(l.value, betweenWords) { // {"mode": "set"} is no command
		r.shell(l.value)
	}
	r.query(l.value)
	r.injected(l.value)
	if !strings.ContainsAny(l.value, " \n") {
		r.file(l.value)
	}
	if strings.Contains(l.value, "://") || strings.HasPrefix(l.value, "169.254.") {
		r.address(l.value)
	}
}
