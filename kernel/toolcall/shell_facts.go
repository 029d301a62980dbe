package toolcall

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caddy-lex/lex/kernel/code"
	"github.com/caddy-lex/lex/kernel/file"
	"github.com/caddy-lex/lex/kernel/regex"
)

// commandEffects is what the commands below a node do.
type commandEffects struct {
	version                                  int
	runs, fetches, decodes, reads, sensitive bool
	shell                                    bool // one that takes its commands from its input
	packs                                    bool // a folder or a database
}

func (f commandEffects) and(g commandEffects) commandEffects {
	f.runs, f.fetches, f.decodes = f.runs || g.runs, f.fetches || g.fetches, f.decodes || g.decodes
	f.reads, f.sensitive = f.reads || g.reads, f.sensitive || g.sensitive
	f.shell, f.packs = f.shell || g.shell, f.packs || g.packs
	return f
}

// factsOf reads the commands below a node. Every statement is read once while
// the variables stay as they are, however many commands stand around it.
func (s *shell) factsOf(n syntax.Node) commandEffects {
	if w, is := n.(*syntax.Word); is {
		if m := makeupOf(w); m.simple {
			s.spend(2 * m.nodes) // as the walk would, which sees the end of a node too
			return commandEffects{version: s.version}
		}
	}
	if f, known := s.facts[n]; known && f.version == s.version {
		return f
	}
	return s.walked(n)
}

// walked reads the commands below a node for [shell.factsOf].
func (s *shell) walked(n syntax.Node) commandEffects {
	f := commandEffects{version: s.version}
	syntax.Walk(n, func(node syntax.Node) bool {
		if !s.spend(1) {
			return false
		}
		if w, ok := node.(*syntax.Word); ok {
			m := makeupOf(w)
			if m.simple {
				s.spend(2*m.nodes - 1)
			}
			return !m.simple
		}
		if st, ok := node.(*syntax.Stmt); ok && node != n {
			f = f.and(s.factsOf(st))
			return false
		}
		if c, ok := node.(*syntax.CallExpr); ok && len(c.Args) > 0 {
			f = f.and(s.doing(s.argv(c)))
		}
		return true
	})
	note(&s.facts, n, f)
	return f
}

// doing tells what one command does.
func (s *shell) doing(argv []string) commandEffects {
	if inner := unwrap(argv); len(inner) > 0 {
		argv = inner
	}
	if len(argv) == 0 || !s.spend(costSearch*commandSize(argv)) {
		return commandEffects{}
	}
	name := programName(argv[0])
	return commandEffects{
		runs: true, fetches: fetchesWithin(argv) || downloaders[name] || lookups[name] || name == "openssl" && wordAt(argv, 1) == "s_client", reads: fileReaders[name],
		decodes: decodes(name, argv), packs: packers[name] || (name == "docker" || name == "podman") && (wordAt(argv, 1) == "save" || wordAt(argv, 1) == "export" || wordAt(argv, 1) == "cp"), shell: isShell(name) && readsProgram(argv),
		sensitive: name == "env" || name == "printenv" || name == "set" || slices.ContainsFunc(argv[1:], s.guarded),
	}
}

// fetchesWithin reports whether the program of a shell downloads.
func fetchesWithin(argv []string) bool {
	if !isShell(argv[0]) {
		return false
	}
	program, _, given := programOf(argv)
	return given && downloads.Matches(program)
}

var downloads = regex.ScreenOf(`\b(?:curl|wget|aria2c|ncat|netcat)\b`, `\bnc\s`)

// decodes reports whether a command turns what nobody can read into text.
func decodes(name string, argv []string) bool {
	switch {
	case unpackers[name], name == "gpg" && hasFlag(argv, 'd', "--decrypt"), carves(name, argv):
		return true
	case (name == "awk" || name == "gawk" || name == "mawk") && len(argv) > 1:
		return strings.Contains(argv[1], "%c")
	case decoders[name]:
		return hasFlag(argv, 'd', "--decode") || hasFlag(argv, 'D', "") || hasFlag(argv, 'r', "")
	case name == "tr":
		sets := operands(argv)
		return len(sets) == 2 && len(code.Characters(sets[0])) > 8 && len(code.Characters(sets[1])) > 8
	case name == "printf" || name == "echo":
		return len(escapedByte.Regexp().FindAllStringIndex(strings.Join(argv[1:], " "), 4)) > 3
	case isInterpreter(name):
		program, _, given := programOf(argv)
		return given && decoder.Matches(program)
	}
	return false
}

// carves reports whether a command cuts its output out of a file that is no script.
func carves(name string, argv []string) bool {
	if !cutters[name] {
		return false
	}
	return slices.ContainsFunc(argv[1:], func(w string) bool { return dataFile.MatchString(strings.ToLower(w)) })
}

var (
	cutters  = words("dd tail head sed awk cut grep strings xxd od cat perl steghide exiftool binwalk zsteg")
	dataFile = regex.New(`\.(?:jpe?g|png|gif|bmp|ico|svg|webp|pdf|md|txt|log|csv|docx?|xlsx?|mp[34]|wav|html?|json|xml|ya?ml|dat|bin|b64|gpg|enc)$`)
)

var (
	unpackers   = words("gunzip zcat bzcat bunzip2 xzcat unxz zstdcat unzstd uncompress rev base58 uudecode qprint ascii85 base64url")
	packers     = words("tar zip 7z 7za rar cpio ar bsdtar mysqldump pg_dump pg_dumpall mongodump sqlite3 find git env printenv gpg pbpaste xclip xsel screencapture history crontab")
	lookups     = words("dig nslookup host drill telnet")
	escapedByte = regex.New(`\\(?:x[0-9a-fA-F]{2}|0?[0-7]{3})`)
)

// guarded reports whether a word names what holds credentials, or the system's.
func (s *shell) guarded(word string) bool {
	p := s.resolve(word)
	return file.IsCredential(p) || file.InSystem(p)
}

var fileReaders = words("pbpaste xclip xsel screencapture history crontab ps journalctl dmesg tree sqlite3 mysql psql mongodump rg jq sort tail nl tac bat base32 gpg hexdump rev column 7z 7za rar cpio bzip2 xz zstd pg_dumpall hostname whoami id uname cat head tail tar zip gzip base64 xxd less more grep awk sed cut printenv env find ls od strings dd mysqldump pg_dump git")

// first is the name of the command a statement begins with.
func (s *shell) first(st *syntax.Stmt) string {
	if c, ok := st.Cmd.(*syntax.CallExpr); ok && len(c.Args) > 0 {
		return programName(s.literal(c.Args[0]))
	}
	return ""
}
