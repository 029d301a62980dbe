package toolcall

import (
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/code"
)

// interpreters are the languages other than the shell's, with the flags that
// carry a program.
var interpreters = map[string]options{
	"python":    {values: "WXQm", text: "c"},
	"pypy":      {values: "WXm", text: "c"},
	"perl":      {values: "MmIFCDix", text: "eE"},
	"ruby":      {values: "IrCEFKTx", text: "e"},
	"node":      {values: "rC", text: "ep", long: "--require --import --loader", longText: "--eval --print"},
	"nodejs":    {values: "rC", text: "ep", long: "--require --import --loader", longText: "--eval --print"},
	"bun":       {values: "r", text: "ep", longText: "--eval --print"},
	"deno":      {text: "p"},
	"php":       {values: "cdfz", text: "rBRE", longText: "--run --process-begin --process-code --process-end"},
	"lua":       {values: "l", text: "e"},
	"luajit":    {values: "lj", text: "e"},
	"R":         {values: "fdg", text: "e", long: "--file --encoding --gui --debugger"},
	"Rscript":   {text: "e"},
	"ipython":   {text: "c"},
	"tsx":       {values: "r", text: "ep", long: "--require --import --tsconfig", longText: "--eval --print"},
	"ts-node":   {values: "rPCD", text: "ep", long: "--require --project --compiler", longText: "--eval --print"},
	"swift":     {values: "DIFLl", text: "e"},
	"kotlin":    {text: "e", long: "-cp -classpath"},
	"kotlinc":   {text: "e", long: "-cp -classpath"},
	"scala":     {text: "e"},
	"raku":      {values: "IM", text: "e"},
	"octave":    {values: "p", longText: "--eval"},
	"osascript": {values: "ls", text: "e"},
	"tclsh":     {},
	"groovy":    {values: "cDx", text: "e"},
	"julia":     {values: "ptLJ", text: "eE", longText: "--eval --print"},
	"elixir":    {values: "rS", text: "e", longText: "--eval"},
	"jshell":    {},
}

// lisps are the interpreters of a Lisp. Emacs takes its flags with one dash as well.
var lisps = map[string]options{
	"emacs":       {longText: "--eval --execute -eval -execute"},
	"emacsclient": {values: "saf", text: "e", longText: "--eval"},
	"guile":       {values: "lLxC", text: "c"},
	"racket":      {values: "tlpruSAI", text: "e", longText: "--eval"},
	"sbcl":        {long: "--load --core --dynamic-space-size", longText: "--eval"},
	"clisp":       {values: "iMx", text: "x"},
	"ecl":         {longText: "--eval -eval"},
	"clojure":     {text: "e", longText: "--eval"},
	"clj":         {text: "e", longText: "--eval"},
	"bb":          {values: "f", text: "e", longText: "--eval"},
	"janet":       {values: "l", text: "e"},
	"fennel":      {text: "e", longText: "--eval"},
}

// programWords are the words behind which an interpreter has its program, to the end of the
// command.
var programWords = map[string]map[string]bool{
	"deno": words("eval"), "crystal": words("eval"), "erl": words("-eval"), "matlab": words("-batch -r"), "rails": words("runner r"),
}

// shells read commands; those of Windows are read by windows.go.
var shells = words("sh bash zsh dash ksh ash fish csh tcsh mksh rbash yash osh ysh nu elvish xonsh pwsh powershell cmd")

func isShell(name string) bool { return shells[programName(name)] }

func isWindowsShell(name string) bool {
	n := programName(name)
	if len(n) != len("cmd") && len(n) != len("pwsh") && len(n) != len("powershell") {
		return false
	}
	n = strings.ToLower(n)
	return n == "cmd" || n == "pwsh" || n == "powershell"
}

func interpreterOf(name string) (options, bool) {
	n := programName(name)
	o, known := interpreters[n]
	if threaded, is := strings.CutSuffix(n, "t"); is && !known && threaded != "" && isDigit(threaded[len(threaded)-1]) {
		n = threaded // python3.14t, without the global lock
	}
	if !known && n != "" && (isDigit(n[len(n)-1]) || n[len(n)-1] == '.') {
		o, known = interpreters[strings.TrimRight(n, "0123456789.")]
	}
	return o, known
}

func isInterpreter(name string) bool {
	_, known := interpreterOf(name)
	return known
}

// programOf returns the program text that a shell or an interpreter gets as an
// argument, and the arguments that it hands to the program.
func programOf(argv []string) (text string, arguments []string, given bool) {
	switch {
	case len(argv) == 0:
		return "", nil, false
	case isWindowsShell(argv[0]):
		text, given = windowsProgram(argv)
		return text, nil, given
	case isShell(argv[0]):
		return shellProgram(argv)
	}
	name := programName(argv[0])
	if begins := programWords[name]; begins != nil {
		if i := slices.IndexFunc(argv, func(w string) bool { return begins[w] }); i > 0 && i+1 < len(argv) {
			return strings.Join(argv[i+1:], " "), nil, true
		}
	}
	if o, known := lisps[name]; known {
		text, arguments, given = o.programs(argv)
		return code.Lisp(text), arguments, given
	}
	if o, known := interpreterOf(argv[0]); known {
		return o.programs(argv)
	}
	return "", nil, false
}

// programs returns the program that the flags of an interpreter carry, a part in each of them,
// and the words behind. All that stands behind -c belongs to the program.
func (o options) programs(argv []string) (text string, arguments []string, given bool) {
	var parts []string
	i := 1
	for i < len(argv) {
		if part, next, found := o.program(argv, i); found {
			parts = append(parts, part)
			if i = next; o.text == "c" {
				break
			}
			continue
		}
		if !strings.HasPrefix(argv[i], "-") || argv[i] == "-" || argv[i] == "--" || strings.HasPrefix(argv[i], "-m") {
			break
		}
		i += 1 + o.valueWords(argv[i])
	}
	if parts == nil {
		return "", nil, false
	}
	return strings.Join(parts, "\n"), argv[min(i, len(argv)):], true
}

// shellProgram reads the flags of a POSIX shell: -c stands anywhere among them,
// and the program is the first operand (POSIX sh, bash(1)).
func shellProgram(argv []string) (string, []string, bool) {
	given := false
	for i := 1; i < len(argv); i++ {
		w := argv[i]
		switch {
		case w == "--rcfile" || w == "--init-file":
			i++
		case w == "--command" || w == "--":
			given = given || w == "--command"
			if w == "--" && i+1 < len(argv) && given {
				return argv[i+1], argv[i+2:], true
			}
		case strings.HasPrefix(w, "--") || w == "-" || w == "+":
		case w != "" && (w[0] == '-' || w[0] == '+'):
			given = given || w[0] == '-' && strings.Contains(w, "c")
			if last := w[len(w)-1]; last == 'o' || last == 'O' {
				i++
			}
		case given:
			return w, argv[i+1:], true
		default:
			return "", nil, false
		}
	}
	return "", nil, false
}

// windowsProgram reads the flags of PowerShell, which may be cut short, and of
// cmd: what follows -Command or /c to the end is the program.
func windowsProgram(argv []string) (string, bool) {
	for i := 1; i < len(argv); i++ {
		flag := strings.ToLower(strings.TrimLeft(argv[i], "-/\u2013\u2014"))
		switch {
		case flag == strings.ToLower(argv[i]): // no flag: PowerShell runs the words
			return strings.Join(argv[i:], " "), !strings.HasSuffix(flag, ".ps1") && !strings.HasSuffix(flag, ".bat")
		case flag == "c" || flag == "k" || flag == "r" || len(flag) > 2 && abbreviates(flag, "command"):
			return strings.Join(argv[i+1:], " "), i+1 < len(argv)
		case flag == "ec" || flag != "" && flag != "ex" && abbreviates(flag, "encodedcommand"):
			return code.UTF16(wordAt(argv, i+1)), true
		case flag == "f" || flag == "file":
			return "", false
		case len(flag) > 1 && (abbreviates(flag, "windowstyle") || abbreviates(flag, "executionpolicy") || flag == "ep" || abbreviates(flag, "inputformat") || abbreviates(flag, "outputformat") || abbreviates(flag, "version")) || flag == "w" || flag == "v":
			i++
		}
	}
	return "", false
}

// abbreviates reports whether PowerShell takes a flag for the one of that name.
func abbreviates(flag, name string) bool { return strings.HasPrefix(name, flag) }

// readsProgram reports whether an interpreter takes its program from its input.
func readsProgram(argv []string) bool {
	if len(argv) == 0 {
		return false
	}
	if _, _, given := programOf(argv); given {
		return false
	}
	o, _ := interpreterOf(argv[0])
	for i := 1; i < len(argv); i++ {
		w := argv[i]
		if w == "-" || w == "-s" || w == "/dev/stdin" {
			return true
		}
		if !strings.HasPrefix(w, "-") {
			return false
		}
		i += o.valueWords(w)
	}
	return true
}
