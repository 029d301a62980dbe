package toolcall

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caddy-lex/lex/kernel/regex"
)

// maxWritten bounds what is kept of a file that the text itself writes.
const maxWritten = 1 << 13

// unpacked stands in the set of fetched files for those that came out of a
// fetched archive, whatever they are called.
const unpacked = "*"

// keeps remembers what a statement writes into files: the text, where it is known,
// and otherwise that it was fetched.
func (s *shell) keeps(st *syntax.Stmt) {
	for _, d := range st.Redirs {
		if d.Word == nil || d.Op != syntax.RdrOut && d.Op != syntax.AppOut && d.Op != syntax.RdrClob && d.Op != syntax.RdrAll && d.Op != syntax.AppAll {
			continue
		}
		name := s.literal(d.Word)
		if text, known := s.output(st, 0); known {
			s.write(name, text)
		} else if st.Cmd != nil && (s.factsOf(st.Cmd).fetches || s.factsOf(st.Cmd).decodes) {
			note(&s.fetched, path.Base(name), true)
		}
	}
}

// keepsAs remembers a known text that the redirects of a command write.
func (s *shell) keepsAs(redirects []*syntax.Redirect, text string) {
	for _, d := range redirects {
		if d.Word != nil && (d.Op == syntax.RdrOut || d.Op == syntax.AppOut) {
			s.write(s.literal(d.Word), text)
		}
	}
}

// write remembers what a file holds that the text itself wrote.
func (s *shell) write(name, text string) {
	name = path.Base(name)
	if before := s.written[name]; s.spend(costWord+costSearch*len(text)) && len(before) < maxWritten {
		text = before + text + "\n"
		note(&s.written, name, text[:min(len(text), maxWritten)])
	}
}

// executes judges a command that runs a file, by what is known of the file.
func (s *shell) executes(argv []string) {
	name := programName(argv[0])
	interpreter := isInterpreter(name)
	switch {
	case interpreter && remoteModule.MatchString(strings.Join(argv, " ")):
		s.builds(strings.Fields(remoteModule.FindStringSubmatch(strings.Join(argv, " "))[1]))
	case interpreter || isShell(name) || name == "source" || name == "." || name == "dpkg" || name == "rpm" || name == "apt" || name == "apt-get" || name == "installer":
		words := argv[1:]
		if program, arguments, given := programOf(argv); given && isShell(name) && program != "" {
			words = arguments // the program itself is no file
		}
		for _, word := range words {
			s.runs(name, word)
		}
	case name == "chmod":
		opens := strings.Contains(strings.Join(argv, " "), "x")
		for _, word := range argv[1:] {
			if opens && s.fetched[path.Base(word)] {
				s.breaks(RemoteCodeExecution)
			}
		}
	case name == "ansible-playbook" || name == "docker" || name == "docker-compose" || name == "podman":
		for _, word := range argv[1:] {
			s.follow(word)
		}
	case sourceRunners[name]:
		for _, word := range argv[1:] {
			if text, known := s.written[path.Base(word)]; known && s.calls <= maxNested {
				s.code(text)
			}
		}
		if builds[name] {
			s.builds(argv)
		}
	case builds[name]:
		s.builds(argv)
	case s.fetched[argv[0]]:
		s.breaks(RemoteCodeExecution)
	case strings.Contains(argv[0], "/"):
		s.runs("sh", argv[0])
	}
}

// runs judges one file that a shell or another interpreter runs.
func (s *shell) runs(interpreter, name string) {
	if s.comesFromElsewhere(name) {
		s.breaks(RemoteCodeExecution)
	}
	text, known := s.written[path.Base(name)]
	if !known || s.calls > maxNested {
		return
	}
	s.calls++
	defer func() { s.calls-- }()
	if isInterpreter(interpreter) {
		s.code(text)
		return
	}
	s.shellIn(text, s)
}

// comesFromElsewhere reports whether a file was fetched, or lies in a folder that
// was.
func (s *shell) comesFromElsewhere(name string) bool {
	if len(s.fetched) == 0 || strings.HasPrefix(name, "-") {
		return false
	}
	if s.fetched[unpacked] && !strings.HasPrefix(name, "/") || !s.spend(costWord+costSearch*(len(name)+len(s.folder))) {
		return true
	}
	return slices.ContainsFunc(strings.Split(s.resolve(name), "/"), func(part string) bool { return s.fetched[part] })
}

// builds judges the tools that run what a folder says they should.
func (s *shell) builds(argv []string) {
	brings := len(argv) // words up to the program that is brought, whose own words may name any address
	if run := brought(programName(argv[0]), argv); len(run) > 0 {
		brings = max(0, len(argv)-len(run)) + 1
	}
	line := strings.Join(argv[:min(brings, len(argv))], " ")
	if remoteInstall.MatchString(line) && !ownIndex.MatchString(line) {
		s.breaks(RemoteCodeExecution)
	}
	if s.folder != "" && s.comesFromElsewhere(".") {
		s.breaks(RemoteCodeExecution)
	}
	for _, word := range argv[1:] {
		if strings.Contains(word, "://") {
			continue
		}
		if s.fetched[word] || strings.Contains(word, "/") && s.comesFromElsewhere(word) {
			s.breaks(RemoteCodeExecution)
		}
	}
	if name := programName(argv[0]); name == "make" || name == "gmake" {
		file := "Makefile"
		for i, w := range argv {
			if to, is := strings.CutPrefix(w, "--file="); is {
				file = to
			} else if w == "-f" || w == "--file" {
				file = wordAt(argv, i+1)
			} else if strings.HasPrefix(w, "-f") {
				file = w[2:]
			}
		}
		s.recipes(s.written[path.Base(file)])
	}
}

// sourceRunners run a program from its source.
var sourceRunners = words("go deno bun npx tsx ts-node dart swift kotlinc scala crystal nim zig gcc cc g++ clang javac java rustc")

// follow reads a file that the text wrote and that a tool is told to follow.
func (s *shell) follow(name string) {
	text, known := s.written[path.Base(name)]
	if !known || !strings.HasSuffix(name, "ml") {
		return
	}
	s.composed(text)
	for _, command := range blockCommands(text) {
		s.shellIn(command, s)
	}
}

// recipes reads the commands of a makefile.
func (s *shell) recipes(text string) {
	for _, command := range makeRecipes(text) {
		s.shellIn(command, s)
	}
}

var builds = words("make gmake cmake ninja npm npx yarn pnpm bun bunx pip pip3 pipx uv uvx poetry easy_install cargo gem bundle composer gradle mvn ant rake tox just go")

// remoteInstall finds the packages that come from an address and not from the
// registry that the machine was set up with.
var remoteInstall = regex.New(`^(?:\S*/)?(?:` + strings.Join([]string{
	`(?:pip[0-9.]*|uv|uvx|pipx|easy_install|poetry|npm|npx|yarn|pnpm|bun|bunx|gem) .*(?:\bgit\+|\bhttps?://|\bgithub:|\bgit@|--(?:extra-)?index-url|--registry[= ]|--source[= ]http)`,
	`cargo install .*--(?:git|registry|index)\b`,
}, "|") + `)`)

// ownIndex is the index of packages of a company's own network, by the host's name, or one that
// its publisher is known for.
var ownIndex = regex.New(`^[^:]*(?:--index-url|--registry|--default-index)[= ]https://(?:(?:[\w-]+\.)+(?:corp|internal|intra|intranet|lan)(?:\.[\w-]+){0,2}(?::\d+)?|download\.pytorch\.org|pypi\.org|test\.pypi\.org|pypi\.nvidia\.com|registry\.npmjs\.org|registry\.yarnpkg\.com)(?:/[\w./-]*)?(?: [\w.=<>~\[\]/-]+)*$`)

// remoteModule is pip under another name.
var remoteModule = regex.New(`-m (pip .*)$`)
