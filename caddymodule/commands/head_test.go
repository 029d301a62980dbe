package commands_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/bolt"
)

// must runs a command that must succeed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	out, _, err := lexCommand("", args...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}

// file writes a file and returns its name.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// headKeys makes a pair of keys.
func headKeys(t *testing.T) (private, verifier string) {
	t.Helper()
	private = filepath.Join(t.TempDir(), "head.key")
	return private, strings.TrimSpace(must(t, "head", "--keygen", "lex.example/log", "--sign", private))
}

// An empty file is no database, and reading it does not make it one.
func TestEmptyStore(t *testing.T) {
	name := file(t, "")
	for _, command := range []string{"head", "verify", "export", "report"} {
		if out, _, err := lexCommand("", command, "--store", name); err == nil || !strings.Contains(err.Error(), "empty") {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
	if info, err := os.Stat(name); err != nil || info.Size() != 0 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.WriteFile(name+".journal", []byte("turns"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, err := lexCommand("", "verify", "--store", name); err == nil || !strings.Contains(err.Error(), "put the file back") {
		t.Errorf("with a journal: %v\n%s", err, out)
	}
}

// A damaged page of the file is an error that says so.
func TestDamagedPage(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lex.db")
	s, err := bolt.Open(name, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		if err := s.Append(t.Context(), store.Receipt{ID: fmt.Sprint("KRN-", n), Kind: store.KindText, JSON: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	for at, size := 2*os.Getpagesize(), os.Getpagesize(); at < len(whole); at += size {
		if bytes.Equal(whole[at:at+size], make([]byte, size)) {
			continue // never used
		}
		damaged := bytes.Clone(whole)
		clear(damaged[at : at+size])
		if err := os.WriteFile(name, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := lexCommand("", "verify", "--store", name); err != nil && strings.Contains(err.Error(), "a page of the file is damaged") {
			said++
		}
	}
	if said < 3 { // the receipts, the root, the list of free pages
		t.Errorf("%d damaged pages were named", said)
	}
}

// The head is the same wherever the log is read, and a later log extends it.
func TestHead(t *testing.T) {
	p := newAuditedProxy(t, 205, "m")
	key, verifier := headKeys(t)
	if empty := must(t, "head", "--url", newAuditedProxy(t, 0, "m").URL); !strings.HasPrefix(empty, "size 0\nroot 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\nlast \ntime ") {
		t.Errorf("the head of an empty log is\n%s", empty)
	}
	export := must(t, "export", "--url", p.URL)
	head := must(t, "head", "--url", p.URL)
	r := new(audit.HeadReader)
	for line := range strings.Lines(export) {
		if entry, known := audit.ParseLogLine([]byte(strings.TrimSuffix(line, "\n"))); known {
			if err := r.Add(entry); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := fmt.Sprintf("size 205\nroot %s\nlast ", r.Root())
	if inFile := must(t, "head", file(t, export)); !strings.HasPrefix(head, want) || !strings.HasPrefix(inFile, want) {
		t.Errorf("the head of the proxy is\n%sof its export\n%swant\n%s", head, inFile, want)
	}

	signed := must(t, "head", "--url", p.URL, "--sign", key)
	lines := strings.Split(head, "\n")
	wantNote := "lex.example/log\n205\n" + strings.TrimPrefix(lines[1], "root ") + "\n" + lines[2] + "\ntime 20"
	if !strings.HasPrefix(signed, wantNote) {
		t.Errorf("signed\n%s\nwant\n%s", signed, wantNote)
	}
	longer := newAuditedProxy(t, 207, "m")
	since := file(t, signed)
	before, _, _ := strings.Cut(export, p.line(100))
	for name, source := range map[string][]string{
		"the same": {"--url", p.URL}, "longer": {"--url", longer.URL}, "its export": {file(t, export)},
	} {
		said := must(t, append([]string{"verify", "--since", since, "--key", verifier}, source...)...)
		if !strings.Contains(said, "since: the log extends the signed head of 205 receipts at 20") || !strings.Contains(said, " 0 faults") {
			t.Errorf("%s: %s", name, said)
		}
	}
	for name, source := range map[string][]string{
		"shorter":         {"--url", newAuditedProxy(t, 204, "m").URL},
		"another":         {"--url", newAuditedProxy(t, 205, "x").URL},
		"a file cut off":  {file(t, export[:strings.LastIndex(export[:len(export)-1], "\n")+1])},
		"one put in":      {file(t, strings.Replace(export, p.line(7), p.line(6)+p.line(7), 1))},
		"one left out":    {file(t, strings.Replace(export, p.line(7), "", 1))},
		"one moved":       {file(t, strings.Replace(export, p.line(7)+p.line(8), p.line(8)+p.line(7), 1))},
		"nothing":         {file(t, "")},
		"a later part":    {"--partial", file(t, strings.TrimPrefix(export, before))},
		"another's store": {"--url", newAuditedProxy(t, 0, "m").URL},
	} {
		out, _, err := lexCommand("", append([]string{"verify", "--since", since, "--key", verifier}, source...)...)
		if err == nil || !strings.Contains(out, "fault: the log: since: the ") || strings.Contains(out, "extends") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

// A key can come out of the environment, also that of the verifier out of a file.
func TestHeadKeys(t *testing.T) {
	p := newAuditedProxy(t, 3, "m")
	path, verifier := headKeys(t)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	private, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HEAD_KEY", string(private))
	t.Setenv("HEAD_KEY_FILE", path)
	for _, place := range []string{path, "{env.HEAD_KEY}", "{env.HEAD_KEY_FILE}"} {
		signed := must(t, "head", "--url", p.URL, "--sign", place)
		v, err := note.NewVerifier(verifier)
		if err != nil {
			t.Fatal(err)
		}
		if h, err := audit.OpenHead([]byte(signed), v); err != nil || h.Size != 3 {
			t.Errorf("%s: %+v, %v", place, h, err)
		}
		must(t, "verify", "--url", p.URL, "--since", file(t, signed), "--key", "{file."+file(t, verifier+"\n")+"}")
	}
	if out, _, err := lexCommand("", "head", "--keygen", "lex.example/log", "--sign", path); err == nil || out != "" {
		t.Errorf("a key was overwritten: %v %s", err, out)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(private) {
		t.Errorf("the key is another: %v", err)
	}
}

// What cannot be signed or compared says why, and never what the key is.
func TestHeadRefuses(t *testing.T) {
	p := newAuditedProxy(t, 3, "m")
	key, verifier := headKeys(t)
	_, otherVerifier := headKeys(t)
	private, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.TrimSpace(string(private))
	t.Setenv("BROKEN_KEY", secret[:len(secret)-3])
	signed := must(t, "head", "--url", p.URL, "--sign", key)
	since := file(t, signed)
	missing := filepath.Join(t.TempDir(), "missing")
	fresh := filepath.Join(t.TempDir(), "fresh")
	verify := func(args ...string) []string { return append([]string{"verify", "--url", p.URL}, args...) }
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no source":             {[]string{"head"}, "name one source"},
		"two sources":           {[]string{"head", "--url", p.URL, "file"}, "name one source"},
		"a store not set":       {[]string{"head", "--store", "{env.NOT_SET_AT_ALL}"}, "--store {env.NOT_SET_AT_ALL} is empty"},
		"no file":               {[]string{"head", missing}, missing},
		"no key file":           {[]string{"head", "--url", p.URL, "--sign", missing}, missing},
		"a key as argument":     {[]string{"head", "--url", p.URL, "--sign", secret}, "list of processes"},
		"a broken key":          {[]string{"head", "--url", p.URL, "--sign", "{env.BROKEN_KEY}"}, "not a key"},
		"a variable not set":    {[]string{"head", "--url", p.URL, "--sign", "{env.NOT_SET_AT_ALL}"}, "--sign"},
		"something as key":      {[]string{"head", "--url", p.URL, "--sign", since}, "not a key"},
		"a verifier key":        {[]string{"head", "--url", p.URL, "--sign", file(t, verifier)}, "not a key"},
		"keygen without a file": {[]string{"head", "--keygen", "lex.example/log"}, "name the new key file"},
		"keygen and a source":   {[]string{"head", "--keygen", "lex.example/log", "--sign", fresh, "--url", p.URL}, "name the new key file"},
		"keygen and a file":     {[]string{"head", "--keygen", "lex.example/log", "--sign", fresh, since}, "name the new key file"},
		"a name with a space":   {[]string{"head", "--keygen", "lex example", "--sign", fresh}, "no spaces"},
		"a name with a plus":    {[]string{"head", "--keygen", "lex+example", "--sign", fresh}, "no spaces"},
		"since without key":     {verify("--since", since), "--since and --key together"},
		"key without since":     {verify("--key", verifier), "--since and --key together"},
		"another key":           {verify("--since", since, "--key", otherVerifier), "reading the signed head"},
		"the private key":       {verify("--since", since, "--key", secret), "not the verifier key"},
		"no head":               {verify("--since", missing, "--key", verifier), missing},
		"not signed":            {verify("--since", file(t, "lex.example/log\n3\n"), "--key", verifier), "reading the signed head"},
		"another size":          {verify("--since", file(t, strings.Replace(signed, "\n3\n", "\n2\n", 1)), "--key", verifier), "reading the signed head"},
		"an older proxy":        {[]string{"head", "--url", oldProxy(t)}, "no Lex of this version"},
		"a receipt of no log":   {[]string{"head", file(t, string(p.record(0))+"\n")}, "no place in the log"},
	} {
		out, errs, err := lexCommand("", c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if all := fmt.Sprint(out, errs, err); strings.Contains(all, secret[len(secret)-20:len(secret)-4]) {
			t.Errorf("%s: it says the key: %s", name, all)
		}
		if strings.Contains(out, "size") || strings.Contains(out, "\u2014") {
			t.Errorf("%s: it prints a head: %s", name, out)
		}
	}
	if _, err := os.Stat(fresh); err == nil {
		t.Error("a key was written")
	}
}

// oldProxy is a proxy that has no log.
func oldProxy(t *testing.T) string {
	t.Helper()
	p := newAuditedProxy(t, 1, "m")
	p.only("/audits/log?after=0&limit=1000", says(404, `{"error":"Not found.","code":"not_found"}`))
	return p.URL
}
