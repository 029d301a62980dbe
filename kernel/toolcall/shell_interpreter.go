package toolcall

import (
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
	"Rscript":   {text: "e"},
	"osascript": {values: "ls", text: "e"},
	"tclsh":     {},
	"groovy":    {values: "cDx", text: "e"},
	"julia":     {values: "ptLJ", text: "eE", longText: "--eval --print"},
	"elixir":    {values: "rS", text: "e", longText: "--eval"},
	"jshell":    {},
}

// shells read commands; those of Windows are read by windows.go.
var shells = words("sh bash zsh dash ksh ash fish csh tcsh mksh rbash pwsh powershell cmd")

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
	o, known := interpreterOf(argv[0])
	if !known {
		return "", nil, false
	}
	if len(argv) > 2 && programName(argv[0]) == "deno" && argv[1] == "eval" {
		return strings.Join(argv[2:], " "), nil, true
	}
	for i := 1; i < len(argv); i++ {
		if text, next, found := o.program(argv, i); found {
			return text, argv[next:], true
		}
		if !strings.HasPrefix(argv[i], "-") || argv[i] == "-" || argv[i] == "--" {
			return "", nil, false
		}
		if strings.HasPrefix(argv[i], "-m") {
			return "", nil, false
		}
		i += o.valueWords(argv[i])
	}
	return "", nil, false
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
