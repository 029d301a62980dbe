package toolcall

import (
	"regexp"
	"strings"
)

// code judges a program in a language other than the shell's, by the strings
// it holds and the calls that would make them commands, files or requests. It
// does not follow data: a program that builds its strings is beyond it.
func (r *reading) code(text string) {
	if !r.spend(costCode * len(text)) {
		return
	}
	literals := quotedStrings(text)
	if starter.MatchString(text) {
		r.startedBy(text, literals)
	}
	if fetching.MatchString(text) && executing.MatchString(text) || decoding.MatchString(text) {
		r.breaks(RemoteCodeExecution)
	}
	if connectBack.MatchString(text) {
		r.breaks(RemoteCodeExecution)
	}
	if environmentDump.MatchString(text) {
		r.breaks(CredentialAccess)
	}
	removes, requests := removal.MatchString(text), requesting.MatchString(text)
	for _, l := range literals {
		if !r.spend(costWord + costJudge*len(l)) {
			return
		}
		if removes && (isVital(cleanPath(l)) || isDevice(l)) {
			r.breaks(DestructiveCommand)
		}
		if isCredentialFile(slashed(l)) {
			r.breaks(CredentialAccess)
		}
		if requests && strings.Contains(l, "://") && posting.MatchString(text) {
			r.posts(l)
		}
		if requests && strings.Contains(l, "://") {
			r.target(l, false)
		}
		if len(l) > 12 {
			r.query(l)
		}
	}
}

// posts judges a program that sends a file it opened.
func (r *reading) posts(address string) {
	if a, ok := readAddress(address); ok && a.host != "" && r.asked && !r.asksFor(a.host) && !a.loopback {
		r.breaks(DataExfiltration)
	}
}

var posting = regexp.MustCompile(`(?s)\b(?:post|put|request|upload)\s*\(.*\b(?:open|read|readFileSync|read_bytes|read_text)\s*\(`)

// startedBy reads the strings of a program that starts commands, one by one
// and, for the argument-list form, together.
func (r *reading) startedBy(text string, literals []string) {
	for _, l := range literals {
		r.shell(l)
	}
	for _, m := range quoteWords.FindAllStringSubmatch(text, 16) {
		r.shell(m[1])
	}
	for _, list := range bracketed.FindAllString(text, -1) {
		words := quotedStrings(list)
		for i, w := range words {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		r.shell(strings.Join(words, " "))
	}
}

// quoteWords are the lists and commands that Perl and Ruby write without quotes.
var quoteWords = regexp.MustCompile(`\bq[wxq]?\s*[({\[|/!]([^)}\]|]*)[)}\]|]`)

var (
	starter         = regexp.MustCompile(`os\s*\.\s*(?:system|popen|exec\w*|spawn\w*)|subprocess|child_process|execSync|spawnSync|Runtime\.getRuntime|\bsystem\s*\(|\bsystem\s+['"]|shell_exec|passthru|proc_open|\bpopen\s*\(|%x\{|\bexec\s*\(|\bexec\s+q[qwx]|\bqx\s*[({]|pty\.spawn|Deno\.(?:run|Command)|Bun\.spawn|^\s*!`)
	bracketed       = regexp.MustCompile(`\[[^\[\]]*\]|\([^()]*\)`)
	fetching        = regexp.MustCompile(`urlopen|requests\.(?:get|post)|urllib|httpx\.|\bfetch\s*\(|axios|http\.get|Net::HTTP|open-uri|file_get_contents\s*\(\s*['"]http|LWP|\bget\s*\(|DownloadString|Invoke-WebRequest|curl_exec`)
	executing       = regexp.MustCompile(`\.then\s*\(\s*eval\b|\b(?:exec|eval|compile|execfile|Function|vm\.runIn\w+|instance_eval|iex|Invoke-Expression|loadstring)\s*[( ]`)
	decoding        = regexp.MustCompile(`\b(?:exec|eval|iex|loads)\s*\(?\s*(?:compile\s*\(|base64|codecs|bytes\.fromhex|zlib|marshal|atob|Buffer\.from|base64_decode|gzinflate|__import__\(\s*['"]base64)`)
	connectBack     = regexp.MustCompile(`(?s)socket.*connect.*(?:dup2|/bin/(?:ba)?sh|subprocess|exec)`)
	environmentDump = regexp.MustCompile(`print\w*\s*\(\s*(?:dict\s*\(\s*)?os\.environ\s*\)|print\w*\s*\(\s*(?:dict|json\.dumps)\s*\(\s*(?:dict\s*\(\s*)?os\.environ\s*\)|console\.log\s*\(\s*(?:JSON\.stringify\s*\(\s*)?process\.env\s*\)`)
	removal         = regexp.MustCompile(`rmtree|\bunlink\b|os\.remove|rmSync|rmdirSync|fs\.rm\b|rimraf|FileUtils\.rm_r|remove_dir_all|deleteRecursively|os\.RemoveAll|open\([^)]*['"]wb?['"]`)
	requesting      = regexp.MustCompile(`urlopen|requests\.|urllib|httpx|fetch\s*\(|axios|http\.(?:get|request|client)|Net::HTTP|open-uri|aiohttp|file_get_contents|curl`)
)

// quotedStrings returns the string literals of a program, escapes undone, as
// nearly as most languages agree on them; neighbours joined by + are one.
func quotedStrings(text string) []string {
	var out []string
	var joined strings.Builder // the last one, while neighbours may join it
	for i := 0; i < len(text); i++ {
		q := text[i]
		if q != '"' && q != '\'' && q != '`' {
			continue
		}
		mark := text[i : i+1]
		if strings.HasPrefix(text[i:], strings.Repeat(mark, 3)) {
			mark = text[i : i+3]
		}
		value, end := quotedFrom(text, i+len(mark), mark)
		if plus := strings.TrimRight(text[:i], " \t\n"); len(out) > 0 && strings.HasSuffix(plus, "+") && endsLiteral(plus) {
			joined.WriteString(value)
		} else {
			out = append(out, "")
			joined.Reset()
			joined.WriteString(value)
		}
		out[len(out)-1] = joined.String()
		i = end
	}
	return out
}

func endsLiteral(s string) bool {
	s = strings.TrimRight(strings.TrimSuffix(s, "+"), " \t\n")
	return s != "" && strings.ContainsRune("\"'`", rune(s[len(s)-1]))
}

// quotedFrom reads up to the closing mark and returns the index of its last
// byte.
func quotedFrom(text string, i int, mark string) (string, int) {
	var b strings.Builder
	for i < len(text) {
		switch {
		case strings.HasPrefix(text[i:], mark):
			return b.String(), i + len(mark) - 1
		case text[i] == '\\' && i+1 < len(text):
			i++
			if c := text[i]; c == 'n' || c == 't' || c == 'r' {
				b.WriteByte(' ')
			} else {
				b.WriteByte(c)
			}
		default:
			b.WriteByte(text[i])
		}
		i++
	}
	return b.String(), len(text)
}
