package toolcall

import (
	"slices"
	"strings"
)

// options says how a command reads its own flags, as far as they matter for
// finding the command or the program text that follows them.
type options struct {
	values   string // short flags that take a value
	text     string // short flags whose value is a command line or a program
	long     string // long flags that take a value, and may get it as the next word
	longText string // long flags whose value is a command line or a program
	operands int    // words of its own before the command
	joins    bool   // gives its words to a shell, joined
}

// wrappers run the command that follows their own flags and operands. The flags
// are those of GNU coreutils, findutils, util-linux and bash.
var wrappers = map[string]options{
	"sudo":        {values: "uUgpCDhRrtT", long: "--user --group --prompt --chdir --chroot --host --role --type --other-user --close-from"},
	"doas":        {values: "uC"},
	"pkexec":      {long: "--user"},
	"run0":        {values: "ugD", long: "--user --group --chdir --unit --property --setenv"},
	"env":         {values: "uCa", text: "S", long: "--unset --chdir --argv0", longText: "--split-string"},
	"command":     {},
	"builtin":     {},
	"exec":        {values: "a"},
	"nohup":       {},
	"nice":        {values: "n", long: "--adjustment"},
	"ionice":      {values: "cnpPu", long: "--class --classdata"},
	"timeout":     {values: "sk", long: "--signal --kill-after", operands: 1},
	"time":        {values: "fo", long: "--format --output"},
	"stdbuf":      {values: "ioe", long: "--input --output --error"},
	"setsid":      {},
	"chronic":     {},
	"watch":       {values: "nq", long: "--interval --equexit", joins: true},
	"busybox":     {},
	"toybox":      {},
	"xargs":       {values: "IndPLsaE", long: "--replace --max-args --delimiter --max-procs --max-lines --max-chars --arg-file --eof"},
	"parallel":    {values: "jIaSNnLd", long: "--jobs --arg-file --sshlogin --delay --colsep --joblog --results"},
	"strace":      {values: "aeEIoOpPsSuU", long: "--output --trace --expr --attach"},
	"ltrace":      {values: "aAeFlnopsSuwxX"},
	"unbuffer":    {},
	"caffeinate":  {values: "tw"},
	"flock":       {values: "wE", text: "c", long: "--timeout --wait --conflict-exit-code", longText: "--command", operands: 1},
	"faketime":    {values: "f", operands: 1},
	"chroot":      {long: "--userspec --groups", operands: 1},
	"nsenter":     {values: "tSGWZ", long: "--target --setuid --setgid"},
	"gosu":        {operands: 1},
	"su-exec":     {operands: 1},
	"unshare":     {values: "RSGw", long: "--root --wd --setuid --setgid --map-user --map-group"},
	"taskset":     {operands: 1},
	"chrt":        {values: "TPD", operands: 1},
	"script":      {values: "BEIOTmo", text: "c", long: "--echo --log-in --log-out --log-io --log-timing --logging-format --output-limit", longText: "--command", operands: 1},
	"numactl":     {values: "iNCmplP", long: "--interleave --cpunodebind --physcpubind --membind --preferred"},
	"prlimit":     {values: "p"},
	"setpriv":     {long: "--reuid --regid --groups"},
	"systemd-run": {values: "pEutMHCGU", long: "--unit --property --setenv --uid --gid --slice --working-directory --description --on-calendar --on-active --on-boot"},
	"coproc":      {},
	"cpulimit":    {values: "lpe", long: "--limit --pid --exe"},
	"setarch":     {operands: 1},
	"linux64":     {}, "linux32": {}, "dumb-init": {}, "tini": {}, "catchsegv": {}, "softlimit": {values: "adfmnorst"}, "chpst": {values: "ubUendmopfc"},
	"valgrind": {}, "perf": {operands: 1, values: "eo"}, "daemonize": {values: "acelopu"}, "runcon": {operands: 1}, "logsave": {operands: 1}, "aa-exec": {values: "p"}, "rlwrap": {},
	"dbus-run-session": {}, "cross-env": {}, "shx": {},
	"xvfb-run":    {values: "nefswp"},
	"proxychains": {values: "f"}, "proxychains4": {values: "f"}, "torsocks": {},
	"ld.so": {long: "--library-path --preload"}, "ld-linux-x86-64.so.2": {long: "--library-path --preload"},
}

// sshFlags are those of ssh, whose first operand is the host.
var sshFlags = options{values: "BbcDEeFIiJLlmOopQRSWw", operands: 1}

// wrappedCommand skips the flags and operands of a wrapper and returns the command
// that it runs. A flag whose value is a command line makes it a shell's.
func wrappedCommand(argv []string) []string {
	if name := programName(argv[0]); name == "command" && len(argv) > 1 && (argv[1] == "-v" || argv[1] == "-V") {
		return nil // it only says where the command is
	}
	return wrappers[programName(argv[0])].following(argv)
}

func (o options) following(argv []string) []string {
	skip := o.operands
	for i := 1; i < len(argv); i++ {
		w := argv[i]
		if text, next, found := o.program(argv, i); found {
			return append([]string{"sh", "-c", text}, argv[next:]...)
		}
		switch {
		case strings.HasPrefix(w, "-"):
			i += o.valueWords(w)
		case w == "{}" || w == "" || strings.Contains(w, "=") && assignment.MatchString(w):
		case skip > 0:
			skip--
		case measurement.MatchString(w):
		case o.joins:
			return []string{"sh", "-c", strings.Join(argv[i:], " ")}
		default:
			return argv[i:]
		}
	}
	return nil
}

// program returns the command line or program text that the flag at i carries,
// and the index of the word after it.
func (o options) program(argv []string, i int) (text string, next int, found bool) {
	w := argv[i]
	name, value, joined := strings.Cut(w, "=")
	long := slices.Contains(strings.Fields(o.longText), name)
	if long || strings.HasPrefix(w, "--") {
		if !long {
			return "", 0, false
		}
		if joined {
			return value, i + 1, true
		}
		return wordAt(argv, i+1), min(i+2, len(argv)), true
	}
	if len(w) < 2 || w[0] != '-' {
		return "", 0, false
	}
	for j := 1; j < len(w); j++ {
		switch {
		case strings.IndexByte(o.text, w[j]) >= 0 && j+1 < len(w) && strings.Trim(w[j+1:], o.text) != "": // -pe is -p and -e
			return w[j+1:], i + 1, true
		case strings.IndexByte(o.text, w[j]) >= 0:
			return wordAt(argv, i+1), min(i+2, len(argv)), true
		case strings.IndexByte(o.values, w[j]) >= 0:
			return "", 0, false // the rest is its value
		}
	}
	return "", 0, false
}

// valueWords tells how many words after a flag are its value.
func (o options) valueWords(w string) int {
	if strings.HasPrefix(w, "--") {
		if slices.Contains(strings.Fields(o.long), w) {
			return 1
		}
		return 0
	}
	for j := 1; j < len(w); j++ {
		if strings.IndexByte(o.values, w[j]) >= 0 {
			if j+1 == len(w) {
				return 1
			}
			return 0
		}
	}
	return 0
}

func wordAt(argv []string, i int) string {
	if i < len(argv) {
		return argv[i]
	}
	return ""
}

// unwrap returns the command that a chain of wrappers ends in.
func unwrap(argv []string) []string {
	for depth := 0; depth <= maxNested; depth++ {
		argv = unassigned(argv)
		if len(argv) == 0 {
			return argv
		}
		run := brought(programName(argv[0]), argv)
		switch {
		case isWrapper(argv[0]):
			argv = wrappedCommand(argv)
		case len(run) > 0:
			argv = run
		default:
			return argv
		}
	}
	return argv
}

func isWrapper(name string) bool {
	_, known := wrappers[programName(name)]
	return known
}
