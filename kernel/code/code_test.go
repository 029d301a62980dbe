package code_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel/code"
)

// Values are followed whatever the language calls the way that leads to them.
func TestFollowed(t *testing.T) {
	t.Parallel()
	var r code.Reader
	for program, want := range map[string]string{
		"import shutil as s\nroot = os.path.expanduser(\"~\")\nfor d in os.listdir(root):\n    s.rmtree(d)": "import shutil as s\nroot = os.path.expanduser('~')\nfor d in os.listdir(os.path.expanduser('~')):\n    shutil.rmtree(os.listdir(os.path.expanduser('~')))",
		"const {rmSync: gone} = require('fs'); const p = '/e' + 'tc'; gone(p)":                              "const {rmSync: gone} = fs; const p = '/etc'; (fs).rmSync('/etc')",
		"m = getattr(os, 'sys' + 'tem')\nm('id')":                                                           "m = os.system\nos.system('id')",
		"with open('f') as h: h.write('x')":                                                                 "with open('f') as h: open('f').write('x')",
		"foreach (glob('/etc/*') as $f) { unlink($f); }":                                                    "foreach (glob('/etc/*') as $f) { unlink(glob('/etc/*')); }",
		"ids.forEach(d => del(d))":                                                                          "ids.forEach(d => del(ids))",
		"t = %w[rm -rf]\nrun(t)":                                                                            "t = ['rm', '-rf']\nrun(['rm', '-rf'])",
		"a = 'x'\nrun(f\"{a}/{b}\")":                                                                        "a = 'x'\nrun('x/'+(b))",
		"$a = \"x\"; run(\"$a/y\")":                                                                         "a = 'x'; run('x/y')",
		"s = 'a'\ns += 'b'\nrun(s)":                                                                         "s = 'a'\n'a' += 'b'\nrun('ab')",
		"run(''.join(['r','m']) + ' -rf ' + chr(47))":                                                       "run('rm -rf /')",
		"run('a-b'.tr('-', '_'))":                                                                           "run('a_b')",
		"run('ab'.translate(str.maketrans('ab', 'rm')))":                                                    "run('rm')",
		"run({'a': 'one'}['a'] + 'ba'[::-1])":                                                               "run('oneab')",
		"run(atob('cm0gLXJm'))":                                                                             "run('rm -rf')",
		"# a comment\nrun(1)\n// another\nrun(2)":                                                           "\nrun(1)\n\nrun(2)",
		"if a == 'x': run(a)":                                                                               "if a == 'x': run(a)", // compared, not bound
		"$x = 'a'; $x =~ s/a/b/; run($x)":                                                                   "x = 'a'; 'a' =~ s/a/b/; run('a')",
		"x = 'a'; x, y == f(); run(x)":                                                                      "x = 'a'; 'a', y == f(); run('a')",
		"x = 'a'; y, x => f(); run(x)":                                                                      "x = 'a'; y, x => f(); run('a')",
		"d <- '~'; unlink(d)":                                                                               "d <- '~'; unlink('~')",
		"d <- '~'; e <- c(d, 'x'); unlink(e)":                                                               "d <- '~'; e <- c('~', 'x'); unlink(c('~', 'x'))",
		"d = '/home'; d <- 1; rmtree(d)":                                                                    "d = '/home'; '/home' <- 1; rmtree('/home')", // less than -1
		"let d: &str = '/home'; rm(d)":                                                                      "let d: &str = '/home'; rm('/home')",
		"const d: Array<string> = ['a']; rm(d)":                                                             "const d: Array<string> = ['a']; rm(['a'])",
		"d: str | None = '/home'\nrm(d)":                                                                    "d: str | None = '/home'\nrm('/home')",
		"d = '/home'\nif d: x = 1\nrmtree(d)":                                                               "d = '/home'\nif '/home': x = 1\nrmtree('/home')",
		"d = '/home'; f(d) if d else 0; e = d if d: y = 2; rmtree(d)":                                       "d = '/home'; f('/home') if '/home' else 0; e = '/home' if '/home': y = 2; rmtree('/home')",
		"def f(self):\n    d: str = '/home'\n    rm(d)":                                                     "def f(self):\n    d: str = '/home'\n    rm('/home')",
		"run('xrm -rf'[1:] + 'ab'[-1:])":                                                                    "run('rm -rfb')",
		"run('rm -rf'[0:2])":                                                                                "run('rm')",
		"run('rm -rf'[:-4])":                                                                                "run('rm')",
		"run('xrm -rf'.substr(1, 2))":                                                                       "run('rm')",
		"run('xrm -rf'.slice(1, 3))":                                                                        "run('rm')",
		"x = 1 // 2\nrun(x)":                                                                                "x = 1 // 2\nrun(1 // 2)",
		"abc'x'":                                                                                            "abc'x'",
		"a { | x":                                                                                           "a { | x",
		"ids.each { |d| del(d) }":                                                                           "ids.each { |ids| del(ids) }",
		"ids.each do |d|\n  del(d)\nend":                                                                    "ids.each { |ids|\n  del(ids)\nend",
		"loop { |x| run(x) }":                                                                               "loop { |x| run(x) }",
		"{ |x| run(x) }":                                                                                    "{ |x| run(x) }",
		"g(function() { foreach (glob('/a') as $f) { rm($f); } $b = 'x'; run($b); })": "g(function() { foreach (glob('/a') as $f) { rm(glob('/a')); } b = 'x'; run('x'); })",
		"x = 'a'\nx = read()\nrun(x)": "x = 'a'\nx = read()\nrun(read())",
	} {
		if got := r.Followed(program); got != want {
			t.Errorf("%q\n got %q\nwant %q", program, got, want)
		}
	}
}

// A reader that may not go on ends, with what it had.
func TestFollowedWithinABound(t *testing.T) {
	t.Parallel()
	program := strings.Repeat("a = 'x'\nb = a + 'y'\nrun(b)\n", 100)
	whole := new(code.Reader).Followed(program)
	for _, left := range []int{0, 100, 10_000, 1_000_000} {
		over := false
		r := code.Reader{Spend: func(units int) bool {
			if over || units > left {
				over = true
				return false
			}
			left -= units
			return true
		}}
		if got := r.Followed(program); len(got) > len(whole) || over == (got == whole) {
			t.Errorf("%d bytes of %d, over %v", len(got), len(whole), over)
		}
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	const program = `os.path.rm(a, f(1, "x,y"), [2, 3]); $db->drop!(); Dir::rmdir ('x'); !('y'); plain('('`
	for n, want := range []struct {
		name, on, receiver string
		arguments          []string
	}{
		{"rm", "path.", "os.path", []string{"a", ` f(1, "x,y")`, " [2, 3]"}},
		{"f", "", "", []string{"1", ` "x,y"`}},
		{"drop", "db->", "", nil},
		{"plain", "", "", nil}, // it does not close
	} {
		calls := code.Calls(program)
		if len(calls) != 4 {
			t.Fatalf("%+v", calls)
		}
		c := calls[n]
		if c.Name != want.name || strings.TrimPrefix(c.On, "$") != want.on || !slices.Equal(code.Arguments(program, c.Open), want.arguments) {
			t.Errorf("%+v with %q", c, code.Arguments(program, c.Open))
		}
		if got := code.Receiver(program, c.Start); want.on != "db->" && got != want.receiver {
			t.Errorf("%s is called on %q", c.Name, got)
		}
	}
}

// Julia has a semicolon in front of the arguments with names.
func TestArgumentsWithNames(t *testing.T) {
	t.Parallel()
	if got := code.Arguments("rm(homedir(); force=true)", 2); !slices.Equal(got, []string{"homedir()", " force=true"}) {
		t.Errorf("%q", got)
	}
}

// Places are told as far as the text tells them: ? is a part that is not known.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"os.path.join(os.path.expanduser('~'), 'x')": "~/x",
		"Path.home() / 'a' / 'b'":                    "~/a/b",
		"process.env.HOME + '/.ssh'":                 "~/.ssh",
		"os.environ['HOME']":                         "~",
		"Dir.home":                                   "~",
		"os.listdir('/srv')":                         "/srv/*",
		"sorted(Path('/x').iterdir())":               "/x/*",
		"fs.readdirSync('/a').map(f => f)":           "/a/*",
		"Path('/var').glob('*.log')":                 "/var/*.log",
		"'/a' . '/b'":                                "/a/b",
		"'/a/' + name":                               "/a/?",
		"paste0('/ho', 'me')":                        "/home",
		"file.path('/', 'home')":                     "/home",
		"path.expand('~/x')":                         "~/x",
		"list.files('/srv', full.names=TRUE)":        "/srv/*",
		"NSHomeDirectory()":                          "~",
		"System.user_home!()":                        "~",
		"(('/a'))":                                   "/a",
	} {
		if got, known := code.Place(expression); got != want || !known {
			t.Errorf("%s is %q, %v", expression, got, known)
		}
	}
	for _, expression := range []string{"", "x", "name + '/a'", "__dir__ + '/x'", "[1]", "'unclosed", "f('/a'", strings.Repeat("(", 50) + "'/a'" + strings.Repeat(")", 50), "'/" + strings.Repeat("a", 1000) + "'"} {
		if got, known := code.Place(expression); known {
			t.Errorf("%.40s is %q", expression, got)
		}
	}
}

func TestLiterals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what      string
		got, want []string
	}{
		{"strings", code.Strings("a = 'x' + \"y\\n\" ; `z`; '''t'u'''; '\\x41\\101\\u0042'; 'open"), []string{"xy ", "z", "t'u", "AAB", "open"}},
		{"base64", code.Decoded("cm0gLXJm"), []string{"rm -rf", "pz0tYKWz"}},
		{"hexadecimal", code.Decoded("6c73"), []string{"ls", "6p73"}},
		{"nothing", code.Decoded("ab"), nil},
		{"operands", code.Operands("a + 'b/+' . c"), []string{"a ", " 'b/+' ", " c"}},
		{"a literal that does not end", code.Operands("a + 'b"), nil},
		{"elements", code.Elements("['a', b(1, 2), [3]]"), []string{"'a'", " b(1, 2)", " [3]"}},
		{"no list", code.Elements("[1] + [2]"), nil},
		{"codes", []string{code.Spelled("114, 109"), code.Spelled("114, 300"), code.Spelled("x")}, []string{"rm", "", ""}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %q", c.what, c.got)
		}
	}
	for text, want := range map[string]bool{"'a'": true, `"a'b"`: true, "'a' + 'b'": false, "'a": false, "'": false, "a": false} {
		if code.IsLiteral(text) != want {
			t.Error(text)
		}
	}
	for text, want := range map[string]bool{"a b\n": true, "": false, "\x00": false, "é": false} {
		if code.Printable([]byte(text)) != want {
			t.Errorf("%q", text)
		}
	}
}

func TestTransliterate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, from, to, want string }{
		{"hello", "a-y", "b-z", "ifmmp"}, {"hello", "elo", "_", "h____"}, {"A b", "[:upper:]", "[:lower:]", "a b"}, {"a-b", "-", "_", "a_b"},
	} {
		if got, ok := code.Transliterate(c.text, c.from, c.to); got != c.want || !ok {
			t.Errorf("%q", got)
		}
	}
	if _, ok := code.Transliterate("a", "a", ""); ok {
		t.Error("replaced by nothing")
	}
}

// What PowerShell makes of literals, in small letters, and what it decodes.
func TestPowerShell(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]string{
		`& ('rem' + 'ove-item') x`:                                   "& remove-item x",
		`$x = -join (114,109)`:                                       "$x = 'rm'",
		`$x = -join 'cba'[2..0]`:                                     "$x = 'abc'",
		`$x = -join 'xxmr'[3..2]`:                                    "$x = 'rm'",
		`$x = -join 'xxrm'[2..3]`:                                    "$x = 'rm'",
		`$x = -join 'xxmr'[-1..-2]`:                                  "$x = 'rm'",
		`$x = -join 'rm'[0..9]`:                                      "$x = 'rm'",
		`$x = -join 'rm'[0..999999999]`:                              "$x = -join 'rm'[0..999999999]",
		`$x = -join 'rm'[-9223372036854775808..9223372036854775807]`: "$x = -join 'rm'[-9223372036854775808..9223372036854775807]",
		`$x = -join 'rm'[7..9]`:                                      "$x = -join 'rm'[7..9]",
		`$x = 'a','b' -join '-'`:                                     "$x ='a-b'",
		`$x = [string]::join('', 'a', 'b')`:                          "$x = 'ab'",
		`$x = 'x1y'.replace('1', '2')`:                               "$x = 'x2y'",
		`$x = 'x1y' -replace '1','2'`:                                "$x = 'x2y'",
		`$x = '{1}{0}' -f 'b','a'`:                                   "$x = 'ab'",
		`$a = 'x'; get-item ("$a" + 'y')`:                            "$a = 'x'; get-item 'xy'",
		`$x = [ipaddress]2852039166`:                                 "$x = '169.254.169.254'",
		`$o.('de' + 'lete')()`:                                       "$o.delete()",
		`get-item x`:                                                 "get-item x",
		`'a' + '` + strings.Repeat("b", 1<<14) + `'`:                 `'a' + '` + strings.Repeat("b", 1<<14) + `'`, // too long
	} {
		if got := code.PowerShell(program); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
			t.Errorf("%.80s\n got %.80q\nwant %.80q", program, got, want)
		}
	}
	const packed = `iex ([Text.Encoding]::UTF8.GetString([Convert]::FromBase64String('cm0gLXJm')))`
	if got := code.PowerShellDecoded(packed); got != "iex ('rm -rf')" || !code.PowerShellDecodes(packed) {
		t.Errorf("%q", got)
	}
	if got := code.UTF16("cgBtAA=="); got != "rm" || code.UTF16("?") != "" {
		t.Errorf("%q", got)
	}
}

// No program makes the reader panic or write without a bound.
func FuzzProgram(f *testing.F) {
	for _, program := range []string{
		"import shutil as s\nroot = os.path.expanduser(\"~\")\nfor d in os.listdir(root):\n    s.rmtree(os.path.join(root, d))",
		"const {rmSync: gone} = require('fs'); gone('/e' + 'tc')", "foreach (glob('/etc/*') as $f) { unlink($f); }", "a.each do |f| rm(f) end",
		"s = 'a'\ns += s\ns += s\nrun(f\"{s}{s!r:>3}\")", "x = ['a', 'b'] * 9; y = x[::-1]; '%s' % (x)", "with a as b, c as d: ((([[[{{{", `(let ((a "x") (b #p"y")) (f-g a b '(c))) ; d`, `'\x4\u00\1`,
	} {
		f.Add(program)
	}
	f.Fuzz(func(t *testing.T, program string) {
		if len(program) > code.MaxProgram {
			return
		}
		var r code.Reader
		followed := r.Followed(program)
		if len(followed) > 8*len(program)+32*code.MaxValue {
			t.Errorf("%d bytes became %d", len(program), len(followed))
		}
		for _, c := range code.Calls(followed) {
			if followed[c.Open] != '(' || c.Start > c.Open || !strings.HasSuffix(strings.TrimSuffix(followed[:c.Open], "!"), c.Name) {
				t.Errorf("%+v", c)
			}
			for _, argument := range code.Arguments(followed, c.Open) {
				code.Place(argument)
			}
			code.Place(code.Receiver(followed, c.Start))
		}
		code.PowerShell(code.PowerShellDecoded(program))
		if lisp := code.Lisp(program); len(lisp) > 8*len(program)+8 {
			t.Errorf("%d bytes of a Lisp became %d", len(program), len(lisp))
		}
		for _, s := range code.Strings(program) {
			code.Decoded(s)
		}
	})
}
