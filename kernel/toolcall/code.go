package toolcall

import (
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/address"
	"github.com/caddy-lex/lex/kernel/code"
	"github.com/caddy-lex/lex/kernel/file"
	"github.com/caddy-lex/lex/kernel/regex"
)

// code judges a program in a language other than the shell's, by the strings
// it holds and the calls that would make them commands, files or requests. It
// does not follow data: what it knows of a string that a program builds is what
// stands in its literals, joined, reversed or decoded.
func (r *reading) code(text string) {
	if !r.spend(costCode * len(text)) {
		return
	}
	r.follows(text)
	r.literals(withValues(text))
}

// literals judges a program by its literals.
func (r *reading) literals(text string) {
	if !r.spend(costCode * len(text)) {
		return
	}
	text = joinedStrings.ReplaceAllString(text, "$1$2")
	text = loaders.ReplaceAllString(text, " ")
	text = testDatabase.ReplaceAllString(text, "()")
	literals := hidden(text, code.Strings(text))
	if starter.Matches(text) {
		r.startedBy(text, literals)
	}
	if !r.staysInTests(text) {
		defer func(before bool) { r.testing = before }(r.testing)
		r.testing = false
	}
	does := codeScreen.Matching(text, false)
	for i, rule := range codeRules {
		if does&(1<<i) != 0 && (rule.with == nil || rule.with.Matches(text)) && (rule.invariant != DestructiveQuery || !r.testing) {
			r.breaks(rule.invariant)
		}
	}
	removes, requests, changes := removal.Matches(text), requesting.Matches(text), changing.Matches(text)
	posts := requests && posting.Matches(text)
	for _, l := range literals {
		if !r.spend(costWord + costSearch*len(l)) {
			return
		}
		if removes && (file.IsVital(file.Clean(file.Slashed(l))) || file.IsDevice(l)) || changes && file.IsDevice(l) {
			r.breaks(DestructiveCommand)
		}
		if changes && len(l) < maxValue {
			r.governed(file.Slashed(l))
			r.planted(file.Slashed(l))
		}
		if file.IsCredential(file.Slashed(l)) {
			r.breaks(CredentialAccess)
		}
		if requests && posts && strings.Contains(l, "://") {
			r.posts(l)
		}
		if requests && strings.Contains(l, "://") {
			r.target(l, triesOut(l) || r.asksHealth(l)) // a program runs where commands do
		}
		if len(l) > 12 {
			r.query(l)
		}
	}
}

// testDatabase drops the database that the tests of a program have made.
var testDatabase = regex.New(`\.(?:db|get_database|getSiblingDB)\(\s*f?['"](?:jest|vitest|mocha|pytest|test|e2e|tmp|ci)[_-][^'"\n]{0,60}['"](?:\s*\+\s*[\w.]{1,40}|\s*\+\s*[\w.]{1,30}\(\))?\s*\)\.(?:dropDatabase|drop_database)\(\)|\buse\s+(?:(?:jest|vitest|mocha|pytest|test|e2e|tmp|ci)[_-]\w{1,60}|\w{1,60}_test)\s*[;\n]\s*db\.dropDatabase\(\)`)

// withValues writes the values of variables that are plain literals beside the literal
// that they are joined to.
func withValues(text string) string {
	var pairs []string
	for _, m := range plainValue.FindAllStringSubmatch(text, maxBlocks) {
		value := strings.Trim(m[2], `'"`)
		pairs = append(pairs, "+"+m[1], "+'"+value+"'", "+ "+m[1], "+ '"+value+"'", "{"+m[1]+"}", value, "${"+m[1]+"}", value, ". $"+m[1], ". '"+value+"'", ".$"+m[1], ".'"+value+"'")
	}
	if len(pairs) == 0 || len(pairs)*len(text) > maxWork/4 {
		return text
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

var plainValue = regex.New(`(?m)(?:^|[;{\s])\$?(\w{1,40})\s*=\s*('[^'\n]{0,200}'|"[^"\n]{0,200}")\s*(?:[;\n]|$)`)

// codeRules are what a program does that needs no operand to be judged: does, and,
// where there is one, with what.
var codeRules = []struct {
	does      *regex.Expression
	with      *regex.Screen
	invariant Invariant
}{
	{fetching, executing, RemoteCodeExecution},
	{decoding, nil, RemoteCodeExecution},
	{decoder.Patterns()[0], evaluates, RemoteCodeExecution},
	{connectBack, startsShell, RemoteCodeExecution},
	{regex.New(`/inet/(?:tcp|udp)/|/dev/(?:tcp|udp)/\w`), nil, RemoteCodeExecution},
	{personalShell, nil, RemoteCodeExecution},
	{environmentDump, nil, CredentialAccess},
	{environmentWhole, sending, DataExfiltration},
	{regex.New(`\bset(?:res|re|e)?[ug]id\s*\(\s*0\b|\bchmod\s*\([^)]*\b0?o?[4267][0-7]{3}\b|CryptUnprotectData|os\.setgroups`), nil, PrivilegeEscalation},
	{regex.New(`CryptUnprotectData|browser_cookie3|keyring\.get_password|\.get_frozen_credentials\(|win32cred\.Cred`), nil, CredentialAccess},
	{removesHome, nil, DestructiveCommand},
	{regex.New(`(?:os\.)?fork\s*\(\s*\)\s*(?:while|until)|while\s*(?:\(?\s*(?:1|True|true)\s*\)?)\s*[:{]?\s*(?:os\.)?fork\b|fork\s+while\s+(?:1|fork)`), nil, DestructiveCommand},
	{regex.New(`\.(?:deleteMany|remove|updateMany)\(\s*\{\s*\}|\.dropDatabase\(|\.flush(?:all|db)\(\s*\)|\.drop_(?:database|all|collection)\(|\$where\b|objects\.all\(\)\.delete\(`), nil, DestructiveQuery},
}

var codeScreen = func() *regex.Screen {
	var patterns []*regex.Expression
	for _, rule := range codeRules {
		patterns = append(patterns, rule.does)
	}
	return regex.NewScreen(patterns...)
}()

// posts judges a program that sends a file it opened.
func (r *reading) posts(to string) {
	if a, ok := address.Parse(to); ok && a.Host != "" && r.asked && !r.asksFor(a.Host) && !a.Loopback {
		r.breaks(DataExfiltration)
	}
}

var posting = regex.NewScreen(regex.New(`(?s)\b(?:post|put|request|upload)\s*\(.*\b(?:open|read|readFileSync|read_bytes|read_text)\s*\(`))

// startedBy reads the strings of a program that starts commands, one by one
// and, for the argument-list form, together.
func (r *reading) startedBy(text string, literals []string) {
	for _, l := range literals {
		r.shell(l)
	}
	for _, m := range quoteWords.FindAllStringSubmatch(text, 16) {
		r.shell(m[1])
	}
	for line := range strings.Lines(text) {
		if words := code.Strings(line); starter.Matches(line) && len(words) > 1 && len(words) < 16 {
			r.shell(quoted(words))
		}
	}
	for _, list := range bracketed.FindAllString(text, -1) {
		r.shell(quoted(code.Strings(list)))
	}
}

// quoteWords are the lists and commands that Perl and Ruby write without quotes.
var quoteWords = regex.New(`\bq[wxq]?\s*[({\[|/!]([^)}\]|]*)[)}\]|]`)

// phpAssert is what makes code of a text in PHP. The assert of other languages only tests.
const phpAssert = `assert\s*\(\s*@?(?:\$|file_get_contents|base64_decode|gz(?:inflate|uncompress|decode)|str_rot13|curl_exec)` //nolint:gosec // G101: a pattern

var (
	// joinedStrings are the ends of two literals that an operator joins.
	joinedStrings = regex.New(`([\w/])(?:'\s*(?:\+|\.\.?|<<)\s*'|"\s*(?:\+|\.\.?|<<)\s*")([\w/])`)

	// loaders are definitions of functions that are called load, as Lua calls what makes
	// code of text. In Lua itself none of this is a call that runs: `def load(s):f()` asks
	// a function for a method.
	loaders = regex.New(`\bdef[ \t]+load[ \t]*\([^()\n]*\)[ \t]*(?:->[ \w.,|\[\]]*)?:|\bfunction[ \t]+load[ \t]*\(`)

	starter     = regex.NewScreen(regex.New(`os\s*\.\s*(?:system|popen|exec\w*|spawn\w*|posix_spawn\w*|execute)|io\.popen|subprocess|child_process|execSync|spawnSync|Runtime\.getRuntime|\bsystem\s*\(|\bsystem\s+['"]|shell_exec|passthru|proc_open|\bpopen\s*\(|%x[\{(\[]|\bexec\s*\(|\bexec\s+['"]|\bexec\s+q[qwx]|\bqx\s*[({/]|pty\.spawn|Deno\.(?:run|Command)|Bun\.(?:spawn|\$)|^\s*!|['"](?:system|popen|exec[vl]?p?e?|spawn\w*|check_output|getoutput)['"]|exec\.Command|syscall\.Exec|Command::new|ProcessBuilder|Process\.(?:Start|spawn)|System\.cmd|shell[-_]command|start[-_]process|call_process|run_program|os\.shell\(|(?:java\.shell\.sh|process\.shell)\(|\bos:cmd\(|do shell script|\.execute\(\)|check_output|Popen|getoutput|pcntl_exec|WScript\.Shell|ShellExecute|Open3|Kernel\.|IO\.popen|\bspawn\s*\(|\brun\s*\(\s*[\x60'"\[]|\bsh\.\w+\(|execa|shelljs|zx|import\s+(?:\*|\(?\s*(?:system|popen|exec\w+|run|call|Popen|spawn\w*)\b)|(?:^|[=;({\s])\x60\s*[a-z./]+\s|CDLL|get_ipython`))
	bracketed   = regex.New(`\[[^\[\]]*\]|\([^()]*\)`)
	fetching    = regex.New(`urlopen|urlretrieve|requests\.(?:get|post|request)|urllib|httpx\.|aiohttp|\bfetch\s*\(|axios|https?\.get|Net::HTTP|open-uri|URI\.open|socket\.http|resty\.http|file_get_contents\s*\(\s*['"]http|LWP|HTTP::Tiny|\bget\s*\(|DownloadString|DownloadData|Invoke-WebRequest|curl_exec|recv\s*\(\s*\d|http\.Get\(|importlib\.util\.spec_from`)
	executing   = regex.NewScreen(regex.New(`\.then\s*\(\s*eval\b|\.then\s*\([^;\n]{0,60}=>\s*\{?\s*(?:\w+\.)?exec(?:Sync)?\s*\(\s*\w+\s*[,)]|(?:^|[^.\w])(?:exec|eval|execfile|Function|instance_eval|class_eval|iex|Invoke-Expression|loadstring|load|require_from_string)\s*[( ]|(?:^|[^.\w])` + phpAssert + `|\bvm\.runIn\w+|\bnew Function\b|\._compile\(|dofile\s*\(\s*['"]http|\bcompile\s*\(`))
	decoding    = regex.New(`(?:^|[^.\w])` + phpAssert + `|(?:^|[^.\w])loads\s*\(\s*(?:base64|codecs|zlib|gzip|lzma|bz2|bytes)|\b(?:exec|eval|iex|(?:pickle|cPickle|marshal|dill|cloudpickle|jsonpickle)\s*\.\s*loads|instance_eval|system|popen)\s*\(?\s*(?:compile\s*\(|base64|codecs|bytes\.fromhex|binascii|zlib|gzip|lzma|bz2|marshal|pickle|atob|Buffer\.from|base64_decode|gzinflate|gzuncompress|str_rot13|Base64\.|decode_base64|unpack|pack\s*\(|__import__\(\s*['"](?:base64|zlib|codecs|marshal|binascii|gzip|lzma|bz2|pickle)|String\.fromCharCode|bytes\s*\(|''\.join\s*\(|"".join\s*\(|lambda)|pickle\.loads\s*\(\s*(?:base64|zlib|bytes)`)
	decoder     = regex.NewScreen(regex.New(`b64decode|b32decode|b85decode|a85decode|decodebytes|decompress\s*\(|fromhex|unhexlify|\batob\s*\(|Buffer\.from\([^)]*['"](?:base64|hex)|base64_decode|gzinflate|gzuncompress|str_rot13|hex2bin|decode64|decode_base64|\.unpack1?\s*\(?\s*['"]|\bpack\s*\(?\s*['"][HCUm]|codecs\.decode|rot_?13|FromBase64String|String\.fromCharCode|marshal\.loads|chr\s*\([^)]*\)\s*(?:for|\})|map\s*\(\s*chr\b|\[::-1\]|DecodeString\(`))
	evaluates   = regex.NewScreen(regex.New(`(?:^|[^.\w])` + phpAssert + `|(?:^|[^.\w])(?:exec|eval|execfile|Function|instance_eval|loadstring|system|popen|shell_exec|passthru)\s*[( ]|\bos\.(?:system|popen|exec\w+)|subprocess|child_process|\bvm\.runIn\w+|getattr\s*\(\s*(?:__builtins__|builtins)|exec\.Command|__import__\s*\(`))
	connectBack = regex.New(`socket\.socket|\.connect\s*\(|socket\.create_connection|IO::Socket|use Socket|TCPSocket|TCPServer|fsockopen|stream_socket_client|socket_create|net\.(?:connect|createConnection|Socket|createServer|Dial)\b|tls\.(?:connect|Dial)|TcpStream|java\.net\.Socket|new Socket\(|luasocket|require\s*\(?\s*['"]socket|gen_tcp|TCPClient|Sockets\.|bind\s*\(\s*\(`)
	startsShell = regex.NewScreen(regex.New(`\bdup2?\b|\bdup2\s*\(|['"\x60 /](?:/bin/|/usr/bin/)(?:ba|z|da|k)?sh\b|['"](?:ba|z|da|k)?sh['"]|['"](?:sh|bash) -i|\bsh <&|cmd\.exe|cmd\s*/c|powershell|\bpty\.spawn|>&STD|STDIN\s*,|\.pipe\s*\(\s*(?:sh|p|proc|client|socket|s|c)\b[^)]*\)|while\s*<>|system\s*\(?\s*\$|IO\.popen|Open3|proc_open|subprocess\.(?:run|call|Popen|check_output|getoutput)\s*\([^)]*(?:recv|decode|data|cmd|shell=True)|os\.popen\s*\([^)]*(?:recv|cmd|data)|exec\.Command\s*\(\s*['"](?:/bin/)?(?:ba)?sh`))

	// personalShell starts a shell for a person out of a program.
	personalShell = regex.New(`\b(?:system|exec\w*|spawn\w*|popen|posix_spawn)\s*[( ]\s*\[?\s*['"](?:\S*/)?(?:ba|z|da|k)?sh(?:\s+-[ip]+)?['"]\s*(?:,\s*\[?\s*['"](?:\S*/)?-?(?:ba|z|da|k)?sh['"]\s*\]?)?\s*(?:,\s*\[?\s*['"]-[ip]+['"]\s*\]?\s*)?(?:[);}]|$|,\s*(?:\{|stdio))`)

	environmentDump  = regex.New(`^\s*(?:JSON\.stringify\()?process\.env\)?\s*;?\s*$|(?:keys|each|values)\s*%ENV|(?:print\w*|puts|pp?|echo|console\.\w+|write|var_dump|print_r|say|inspect|logger\.\w+|logging\.\w+)\s*[( ]\s*(?:(?:dict|list|str|repr|json\.dumps|pprint\.pformat|sorted|JSON\.stringify|json_encode)\s*\(\s*)*(?:os\.environ(?:\.copy\(\)|\.items\(\)|\b)|process\.env|ENV(?:\.to_h|\.inspect|\.to_a|\.each)?|\$_ENV|\$_SERVER|%ENV|getenv\(\)|System\.getenv\(\)|os\.Environ\(\))\s*[),;}\n]|(?:print\w*|puts|p|echo|console\.\w+|var_dump|print_r)\s*[( ]\s*(?:(?:dict|list|str|repr|json\.dumps|JSON\.stringify)\s*\(\s*)*(?:os\.environ|process\.env|ENV\.to_h|ENV|%ENV|getenv\(\))\s*\)*\s*$|for\s+\w+\s*,\s*\w+\s+in\s+(?:sorted\s*\(\s*)?os\.environ\.items\(\)|ENV\.each|phpinfo\s*\(|foreach\s*\(\s*\$_(?:ENV|SERVER)|map\s*\{[^}]*\}\s*(?:sort\s+)?keys\s*%ENV|Object\.(?:entries|keys)\(process\.env\)`)
	environmentWhole = regex.New(`(?:dict|str|repr|json\.dumps|urlencode|bytes|list)\s*\(\s*(?:dict\s*\(\s*)?os\.environ\s*[),]|[=:(]\s*os\.environ(?:\.copy\(\)|\.items\(\))?\s*[),}]|JSON\.stringify\s*\(\s*process\.env\s*[),]|(?:body|data|json|params)\s*:\s*process\.env\b[^.\[]|ENV\.(?:to_h|to_a|inspect|map)|http_build_query\s*\(\s*(?:\$_(?:ENV|SERVER)|getenv\(\))|json_encode\s*\(\s*(?:\$_(?:ENV|SERVER)|getenv\(\))|os\.Environ\(\)|System\.getenv\(\)`)
	sending          = regex.NewScreen(regex.New(`\.(?:post|put|patch|request|send|sendall|upload|connect|get)\s*\(|urlopen|\bfetch\s*\(|axios|Net::HTTP|curl_exec|file_get_contents\s*\(|http\.(?:Post|NewRequest)|smtplib|sendMail`))

	removal     = regex.NewScreen(regex.New(`rmtree|remove_tree|\bunlink\w*\b|os\.remove\w*|os\.rmdir|rmSync|rmdirSync|unlinkSync|fs(?:\.promises)?\.(?:rm|rmdir|unlink)\b|fsp\.rm|rimraf|fs-extra|emptyDir|FileUtils\.(?:rm|remove)\w*|rm_rf|rm_r\b|Dir\.(?:rmdir|delete|unlink)|File\.delete|remove_dir(?:_all)?|deleteRecursively|deleteDirectory|Files\.(?:delete|walk)|os\.RemoveAll|Directory\.Delete|File\.Delete|\bdelTree\b|DelTree|open\([^)]*['"](?:wb?\+?|r\+b?|rb\+)['"]|shutil\.move|os\.rename|\btruncate\s*\(|Deno\.remove|\brm\s*\(\s*["']`))
	removesHome = regex.New(`(?:rmtree|remove_tree|rmSync|rmdirSync|rm_rf|rm_r|rimraf\w*|RemoveAll|remove_dir_all|removeSync|emptyDirSync|fs\.rm|Deno\.remove\w*)\s*\(?\s*(?:str\s*\(\s*)?(?:(?:pathlib\.)?Path\.home\(\)|os\.homedir\(\)|require\(\s*['"]os['"]\s*\)\.homedir\(\)|Dir\.home|Dir\.pwd|ENV\[\s*['"]HOME['"]\s*\]|os\.environ(?:\.get\(|\[)\s*['"]HOME['"]\s*[\])]|os\.getenv\(\s*['"]HOME['"]\s*\)|process\.env\.HOME|\$ENV\{['"]?HOME['"]?\}|getenv\(\s*['"]HOME['"]\s*\)|os\.Getenv\(\s*"HOME"\s*\)|os\.path\.expanduser\(\s*['"]~/?['"]\s*\))\s*[,)\s;]`)
	changing    = regex.NewScreen(regex.New(`open\s*\([^)]*,\s*['"]?[wax]b?\+?['"]?|mode\s*=\s*['"][wax]|writeFile|appendFile|createWriteStream|write_text|write_bytes|File\.(?:write|open\([^)]*['"][wa])|IO\.write|file_put_contents|fopen\s*\([^)]*['"][wa]|os\.(?:WriteFile|Create|OpenFile|remove|unlink|rename|replace)|ioutil\.WriteFile|fs::write|unlinkSync|rmSync|renameSync|copyFile|shutil\.(?:copy\w*|move)|>\s*['"]|Deno\.writeTextFile|WriteAllText|symlink`))
	requesting  = regex.NewScreen(regex.New(`urlopen|urlretrieve|requests\.|urllib|httpx|fetch\s*\(|axios|https?\.(?:get|request|client)|Net::HTTP|open-uri|URI\.open|aiohttp|file_get_contents|curl|http\.(?:Get|Post|NewRequest)|HttpClient|WebClient|reqwest`))
)

// hidden adds to the literals of a program what it makes of them where it decodes,
// turns round or spells by numbers.
func hidden(text string, literals []string) []string {
	out := literals
	if turns.Matches(text) {
		for _, l := range literals {
			runes := []rune(l)
			slices.Reverse(runes)
			out = append(out, string(runes))
		}
	}
	if decoder.Matches(text) {
		for _, l := range literals {
			out = append(out, code.Decoded(l)...)
		}
	}
	for _, m := range numberList.FindAllString(text, 16) {
		if word := code.Spelled(m); word != "" {
			out = append(out, word)
		}
	}
	return out
}

var (
	turns      = regex.NewScreen(regex.New(`\[::-1\]|\.reverse\b|strrev|\breverse\s*[( ]|reversed\s*\(`))
	numberList = regex.New(`(?:\b\d{2,3}\s*,\s*){2,}\d{2,3}\b`)
)
