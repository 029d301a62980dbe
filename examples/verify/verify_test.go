package verify_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/kernel"
)

const testdata = "../../kernel/testdata"

// python runs the verifier and returns what it prints and whether it found a fault.
func python(t *testing.T, arguments ...string) (output string, faulty bool) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatal("this test needs python3: make deps installs it")
	}
	for _, source := range []string{"verify.py", "replay.py", "vectors.py"} {
		if _, err := os.Stat(source); err != nil { // so that a result of another version is not taken from the cache
			t.Fatal(err)
		}
	}
	cmd := exec.Command("python3", append([]string{"-B"}, arguments...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if stderr.Len() > 0 {
		t.Fatalf("%v: %s", err, &stderr)
	}
	return string(out), err != nil
}

var faultOf = regexp.MustCompile(`(?m): (form|replay|chain|log|head|commitment): .*$`)

// noticed returns the checks that found a fault in an export.
func noticed(t *testing.T, export []byte, arguments ...string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "export.jsonl")
	if err := os.WriteFile(file, export, 0o600); err != nil {
		t.Fatal(err)
	}
	out, faulty := python(t, append([]string{"verify.py", file}, arguments...)...)
	checks := checksIn(out)
	if faulty != (len(checks) > 0) {
		t.Errorf("the status says %v:\n%s", faulty, out)
	}
	return checks
}

// checksIn returns the checks of the faults that were printed.
func checksIn(out string) []string {
	checks := map[string]bool{}
	for _, m := range faultOf.FindAllStringSubmatch(out, -1) {
		checks[m[1]] = true
	}
	return slices.Sorted(maps.Keys(checks))
}

// noticedEach is noticed for many exports, in one process of Python.
func noticedEach(t *testing.T, exports [][]byte, arguments ...string) (checks [][]string) {
	t.Helper()
	const each = "import sys, verify\n" +
		"files, rest = sys.argv[1].split(','), sys.argv[2:]\n" +
		"for f in files:\n sys.argv = ['verify.py', f, *rest]\n verify.main()\n print('---')\n"
	var files []string
	for i, export := range exports {
		file := filepath.Join(t.TempDir(), fmt.Sprint(i))
		if err := os.WriteFile(file, export, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	out, _ := python(t, append([]string{"-c", each, strings.Join(files, ",")}, arguments...)...)
	for _, one := range strings.SplitAfter(out, "---\n") {
		checks = append(checks, checksIn(one))
	}
	return checks[:len(exports)]
}

// goChecks returns the checks of "caddy lex verify" that find a fault in an export.
func goChecks(t *testing.T, export []byte) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "export.jsonl")
	if err := os.WriteFile(file, export, 0o600); err != nil {
		t.Fatal(err)
	}
	checks := map[string]bool{}
	v := audit.NewVerifier(audit.NewFileSource(file), false, func(_ string, c audit.Check) { checks[c.Name] = true })
	if _, err := v.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(checks))
}

// vectors is the export in kernel/testdata, which the kernel's tests make anew.
func vectors(t *testing.T) []byte {
	t.Helper()
	export, err := os.ReadFile(filepath.Join(testdata, "receipts.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return export
}

// The verifier, which was written from docs/receipts.md, computes the bits that the kernel
// computes.
func TestVectors(t *testing.T) {
	t.Parallel()
	out, faulty := python(t, "verify.py", "--vectors", testdata)
	compared := regexp.MustCompile(`(?m)^(\S+): (\d+) compared$`).FindAllStringSubmatch(out, -1)
	for _, c := range compared {
		if len(c[2]) < 2 {
			t.Errorf("%s: only %s vectors", c[1], c[2])
		}
	}
	if faulty || len(compared) < 6 {
		t.Error(out)
	}
}

func TestEveryKindOfReceiptVerifies(t *testing.T) {
	t.Parallel()
	out, faulty := python(t, "verify.py", filepath.Join(testdata, "receipts.jsonl"))
	receipts := bytes.Count(vectors(t), []byte(`"receipt":`))
	if faulty || !strings.Contains(out, fmt.Sprintf("%d receipts, 0 faults, 0 setups that are not here\n", receipts)) || receipts < 100 {
		t.Error(out)
	}
}

// keptHead returns a file with the head of an export, as somebody kept it.
func keptHead(t *testing.T, export []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "export.jsonl")
	if err := os.WriteFile(file, export, 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := python(t, "verify.py", file)
	head := regexp.MustCompile(`size (\d+)\nroot (\S+)\n`).FindStringSubmatch(out)
	if head == nil {
		t.Fatal(out)
	}
	kept := filepath.Join(t.TempDir(), "head")
	if err := os.WriteFile(kept, []byte("lex.example\n"+head[1]+"\n"+head[2]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return kept
}

// An entry is a line of an export: a document, or a receipt with its place in the log.
type entry struct {
	Seq     int             `json:"seq"`
	LogPrev string          `json:"log_prev"`
	Receipt json.RawMessage `json:"receipt"`
	other   string
}

func entries(t *testing.T, export []byte) (out []entry) {
	t.Helper()
	for line := range strings.Lines(string(export)) {
		line = strings.TrimSuffix(line, "\n")
		e := entry{other: line}
		if strings.HasPrefix(line, `{"seq":`) {
			e.other = ""
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, e)
	}
	return out
}

// entriesOf returns the policies and the entries of some sessions.
func entriesOf(t *testing.T, sessions ...string) []entry {
	return slices.DeleteFunc(entries(t, vectors(t)), func(e entry) bool {
		return e.other == "" && !slices.Contains(sessions, open(t, e.Receipt).SessionID)
	})
}

func write(entries []entry) []byte {
	var out bytes.Buffer
	for _, e := range entries {
		if e.other != "" {
			fmt.Fprintln(&out, e.other)
		} else {
			fmt.Fprintf(&out, "{\"seq\":%d,\"log_prev\":%q,\"receipt\":%s}\n", e.Seq, e.LogPrev, e.Receipt)
		}
	}
	return out.Bytes()
}

func open(t *testing.T, record []byte) kernel.Receipt {
	t.Helper()
	r, err := kernel.ParseReceipt(record)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// canonical returns the record of a receipt with the id that it has.
func canonical(t *testing.T, r kernel.Receipt) []byte {
	t.Helper()
	record, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// relinked computes anew every seal, link, number and hash in the log, as somebody would who
// can write to the store: what is then still noticed does not follow, or was kept elsewhere.
func relinked(t *testing.T, all []entry) []entry {
	t.Helper()
	links := map[string]string{}
	seq, last := 0, ""
	out := slices.Clone(all)
	for i := range out {
		e := &out[i]
		if e.other != "" {
			continue
		}
		r := open(t, e.Receipt)
		old := r.ID
		if link, changed := links[kernel.IDOf(r.Prev)]; changed {
			r.Prev = link
		}
		if _, err := r.Seal(); err != nil {
			t.Fatal(err)
		}
		e.Receipt, links[old] = canonical(t, r), r.Link()
		seq++
		e.Seq, e.LogPrev = seq, last
		sum := sha256.Sum256(e.Receipt)
		last = hex.EncodeToString(sum[:])
	}
	return out
}

// targets are the receipts whose members are changed: those of the session "eventful", whose
// decisions depend on each of their inputs, but for the first and the last.
func targets(t *testing.T, all []entry) (at []int) {
	t.Helper()
	for i, e := range all {
		if e.other == "" && open(t, e.Receipt).SessionID == "eventful" {
			at = append(at, i)
		}
	}
	if len(at) < 4 {
		t.Fatalf("only %d eventful receipts", len(at))
	}
	return at[1 : len(at)-1]
}

// others are values for members that cannot just be made a little different.
var others = map[string]string{
	"prev": "", "policy": "", // from the export
	"mode": `"observe"`, "outcome": `"aborted"`, "scores": `{"coercion":0.7,"exploitative":0,"harm_request":0,"identity":0,"injection":0,"sycophancy":0}`,
	"prompt_threat_signal": `1.5`, "denied_by": `"a-rule"`, "standing": `["slow_drip"]`, "category": `"harmful_compliance"`, "repeated": `true`, "unassessed": `true`,
	"high_risk": `true`, "standalone": `true`, "reasons": `["operator_policy","slow_drip"]`, "attack_type": `"sycophancy"`, "pre_eval_label": `"WATCH"`, "health_band": `"ALERT"`, "governor_mode": `"correct"`,
	"decision": `"approved"`, "invariant": `""`, "rule": `""`, "effect": `"write"`, "provenance": `"user"`, "flagged": `""`, "trace_id": `"0af7651916cd43dd8448eb211c80319c"`,
	"coverage": `{"bytes_forwarded":0,"bytes_inspected":0,"detectors":[],"inspected":[],"skipped":[],"unknown":[]}`,
}

// altered returns a record with one other value. It keeps its id, which [relinked] mends.
func altered(t *testing.T, record []byte, name string, all []entry) []byte {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal(record, &members); err != nil {
		t.Fatal(err)
	}
	other, listed := others[name]
	switch value := members[name].(type) {
	case string:
		members[name] = value + "0"
	case float64:
		members[name] = math.Nextafter(value, 1e300)
		if name == "turn" || name == "timestamp" {
			members[name] = value + 1
		}
	case bool:
		members[name] = !value
	case []any:
		if !listed {
			value[0] = math.Nextafter(value[0].(float64), 1)
		}
	}
	if _, toggled := members[name].(bool); listed && other != "" && !toggled {
		members[name] = json.RawMessage(other)
	}
	switch name {
	case "prev": // a receipt of another session
		for _, e := range all {
			if e.other == "" {
				members[name] = open(t, e.Receipt).Link()
				break
			}
		}
	case "policy": // another one that is there
		for _, e := range all {
			if text, isPolicy := strings.CutPrefix(e.other, `{"policy":`); isPolicy && e.other != all[0].other {
				sum := sha256.Sum256([]byte(strings.TrimSuffix(text, "}")))
				members[name] = hex.EncodeToString(sum[:])
			}
		}
	}
	text, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return canonical(t, open(t, text))
}

// membersOf returns the names of a record's members, and of those that it could have.
func membersOf(t *testing.T, record []byte) []string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(record, &members); err != nil {
		t.Fatal(err)
	}
	delete(members, "id") // it follows from the rest
	names := append(slices.Collect(maps.Keys(members)), "trace_id")
	if string(members["tool"]) == `""` {
		return append(names, "repeated", "unassessed")
	}
	for _, name := range []string{"high_risk", "standalone"} {
		if members[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

var documentedMember = regexp.MustCompile("(?m)^\\| (`[^|]*`) \\| [^|]* \\| ([a-z]+) \\| ")

// classes returns the class of each member, as docs/receipts.md has it.
func classes(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/receipts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, begins := strings.Cut(string(page), "<!-- members -->")
	table, _, ends := strings.Cut(table, "<!-- end: members -->")
	if !begins || !ends {
		t.Fatal("the page has no table of members")
	}
	out := map[string]string{}
	for _, row := range documentedMember.FindAllStringSubmatch(table, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			out[name[1]] = row[2]
		}
	}
	return out
}

// The page says of each member which check binds it, as the kernel's forger found out.
func TestClassesOfMembers(t *testing.T) {
	t.Parallel()
	found, err := os.ReadFile(filepath.Join(testdata, "receipt_classes.txt"))
	if err != nil {
		t.Fatal(err)
	}
	documented := classes(t)
	for line := range strings.Lines(string(found)) {
		member, class, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		says := documented[member]
		if says == "input" || says == "name" {
			says = "asserted" // with something that follows from it
		}
		if says != class {
			t.Errorf("%s is documented as %q, and bound by %q", member, documented[member], class)
		}
		delete(documented, member)
	}
	if len(documented) > 0 {
		t.Errorf("documented, and no member: %v", documented)
	}
}

// A changed member is sealed anew, and everything after it is linked anew. Which check then
// notices it, if any, is what the class of the member in docs/receipts.md says. A head that
// was kept elsewhere notices every change.
func TestChangedMembers(t *testing.T) {
	t.Parallel()
	all, class := relinked(t, entriesOf(t, "plain", "eventful")), classes(t)
	head := keptHead(t, write(all))
	var names []string
	var exports [][]byte
	for _, at := range targets(t, all) {
		for _, name := range membersOf(t, all[at].Receipt) {
			forged := slices.Clone(all)
			forged[at].Receipt = altered(t, all[at].Receipt, name, all)
			if !bytes.Equal(forged[at].Receipt, all[at].Receipt) { // it may have that value
				names, exports = append(names, name), append(exports, write(relinked(t, forged)))
			}
		}
	}
	findings := map[string][]string{} // by member
	for i, got := range noticedEach(t, exports, "--since", head) {
		name := names[i]
		if !slices.Contains(got, "head") {
			t.Errorf("%s against a kept head: noticed by %v", name, got)
		}
		got = slices.DeleteFunc(got, func(check string) bool { return check == "head" })
		if other := goChecks(t, exports[i]); !slices.Equal(other, got) {
			t.Errorf("%s: noticed by %v, and in Go by %v", name, got, other)
		}
		if slices.Contains(got, "form") { // it cannot be at all
			got = []string{"form"}
		}
		findings[name] = append(findings[name], got...)
		if c := class[name]; (c == "replay" || c == "chain") && !slices.Contains(got, c) && !slices.Contains(got, "form") {
			t.Errorf("%s is of the class %s, and noticed by %v", name, c, got)
		}
	}
	for name, class := range class {
		got := findings[name]
		follows := slices.ContainsFunc(got, func(check string) bool { return check != "form" })
		switch _, changed := findings[name]; {
		case name == "id" || name == "setup":
		case !changed:
			t.Errorf("%s is documented, and was not changed", name)
		case (class == "asserted" || class == "commitment") && follows:
			t.Errorf("%s is of the class %s, and noticed by %v", name, class, got)
		}
		delete(findings, name)
	}
	if len(findings) > 0 {
		t.Errorf("not documented: %v", slices.Collect(maps.Keys(findings)))
	}
}

// What is done to the lines of an export, and which check notices it. The attacker leaves the
// rest as it is (naive), or computes everything after it anew (able).
func TestChangedExports(t *testing.T) {
	t.Parallel()
	all := relinked(t, entriesOf(t, "plain", "resent", "moved", "chance"))
	whole := write(all)
	head := keptHead(t, whole)
	place := func(session string, n int) int {
		for i, e := range all {
			if e.other == "" {
				if r := open(t, e.Receipt); r.SessionID == session {
					if n--; n < 0 {
						return i
					}
				}
			}
		}
		t.Fatalf("no receipt %d of %s", n, session)
		return 0
	}
	middle, later := place("chance", 5), place("chance", 37)
	// beside puts in a receipt that follows the same one as another, at a place in the log.
	beside := func(e []entry, at int, resent bool, to int) []entry {
		r := open(t, e[at].Receipt)
		r.Resent, r.Model = resent, "another"
		record, err := r.Seal()
		if err != nil {
			t.Error(err)
		}
		double := e[at]
		double.Receipt = record
		return slices.Insert(e, to, double)
	}
	branch := place("resent", 1)
	for name, c := range map[string]struct {
		change      func([]entry) []entry
		naive, able string // checks, sorted
	}{
		"nothing":                             {func(e []entry) []entry { return e }, "", ""},
		"a receipt dropped":                   {func(e []entry) []entry { return slices.Delete(e, middle, middle+1) }, "chain log", "chain"},
		"a receipt repeated":                  {func(e []entry) []entry { return slices.Insert(e, middle+1, e[middle]) }, "chain log", "chain"},
		"two swapped":                         {func(e []entry) []entry { e[middle], e[middle+1] = e[middle+1], e[middle]; return e }, "chain log", "chain"},
		"a receipt of another session put in": {func(e []entry) []entry { return slices.Insert(e, middle, e[place("plain", 1)]) }, "chain log", "chain"},
		"a session dropped": {func(e []entry) []entry {
			return slices.DeleteFunc(e, func(e entry) bool { return e.other == "" && open(t, e.Receipt).SessionID == "plain" })
		}, "log", ""},
		"the tail cut":              {func(e []entry) []entry { return e[:place("chance", 37)] }, "", ""},
		"the beginning cut":         {func(e []entry) []entry { return slices.Delete(e, 1, 4) }, "chain log", "chain"},
		"a number changed":          {func(e []entry) []entry { e[middle].Seq += 3; return e }, "log", ""},
		"a hash of the log changed": {func(e []entry) []entry { e[middle].LogPrev = strings.Repeat("0", 64); return e }, "log", ""},
		"a policy dropped": {func(e []entry) []entry {
			return slices.DeleteFunc(e, func(other entry) bool {
				return strings.HasPrefix(other.other, `{"policy":`) && other.other != e[0].other
			})
		}, "chain replay", "chain replay"},
		"a bit changed": {func(e []entry) []entry {
			e[middle].Receipt = bytes.Replace(e[middle].Receipt, []byte(`"turn":6`), []byte(`"turn":7`), 1)
			return e
		}, "form log", ""},
		"a turn put in beside another":           {func(e []entry) []entry { return beside(e, middle, false, later) }, "chain log", "chain"},
		"a branch put into a named session":      {func(e []entry) []entry { return beside(e, middle, true, later) }, "chain log", "chain"},
		"a branch put into a resent one":         {func(e []entry) []entry { return beside(e, branch, true, later) }, "log", ""},
		"a turn put in beside those of a branch": {func(e []entry) []entry { return beside(e, branch, false, later) }, "chain log", "chain"},
		"a turn put in before those of a branch": {func(e []entry) []entry { return beside(e, branch, false, branch) }, "chain log", "chain"},
		"a space put in": {func(e []entry) []entry {
			e[middle].Receipt = bytes.Replace(e[middle].Receipt, []byte(`,`), []byte(`, `), 1)
			return e
		}, "chain form log", ""},
		"a receipt moved to a session": {func(e []entry) []entry {
			r := open(t, e[middle].Receipt)
			r.SessionID = "plain"
			e[middle].Receipt = canonical(t, r)
			return e
		}, "chain form log", "chain"},
		"an outcome changed, and sealed": {func(e []entry) []entry {
			r := open(t, e[middle].Receipt)
			r.Outcome = kernel.ClientGone
			record, err := r.Seal()
			if err != nil {
				t.Error(err)
			}
			e[middle].Receipt = record
			return e
		}, "chain log", "chain"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := c.change(slices.Clone(all))
			able := write(relinked(t, changed))
			for want, export := range map[string][]byte{"naive: " + c.naive: write(changed), "able: " + c.able: able} {
				got := noticed(t, export)
				if _, checks, _ := strings.Cut(want, ": "); strings.Join(got, " ") != checks {
					t.Errorf("noticed by %v, want %s", got, want)
				}
				if other := goChecks(t, export); !slices.Equal(got, other) {
					t.Errorf("noticed by %v, and in Go by %v", got, other)
				}
			}
			if same := bytes.Equal(able, whole); !same && name != "a policy dropped" && // which is not in the log
				!slices.Contains(noticed(t, able, "--since", head), "head") {
				t.Error("a kept head does not notice it")
			}
		})
	}
}

// A receipt that ends in the middle of a line, and lines of another system.
func TestBrokenLines(t *testing.T) {
	t.Parallel()
	whole := write(relinked(t, entriesOf(t, "plain")))
	for name, export := range map[string][]byte{
		"cut within a line": whole[:len(whole)-100],
		"not UTF-8":         append(slices.Clone(whole), "{\"seq\":900,\"log_prev\":\"\",\"receipt\":{\"id\":\"\xff\"}}\n"...),
		"no JSON":           append(slices.Clone(whole), "receipt\n"...),
		"an array":          append(slices.Clone(whole), "[]\n"...),
		"a twin":            bytes.Replace(whole, []byte(`"receipt":{`), []byte(`"receipt":{"turn":1,`), 1),
		"NaN":               bytes.Replace(whole, []byte(`"turn":1`), []byte(`"turn":NaN`), 1),
		"deep":              append(slices.Clone(whole), strings.Repeat("[", 100_000)+"\n"...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := noticed(t, export); !slices.Contains(got, "form") {
				t.Errorf("noticed by %v", got)
			}
		})
	}
}

// Lines may end as in Windows, and the last one without an end.
func TestEndsOfLines(t *testing.T) {
	t.Parallel()
	whole := write(relinked(t, entriesOf(t, "plain")))
	for name, export := range map[string][]byte{
		"CRLF":           bytes.ReplaceAll(whole, []byte("\n"), []byte("\r\n")),
		"no end":         bytes.TrimSuffix(whole, []byte("\n")),
		"two ends":       append(slices.Clone(whole), "\n\n"...),
		"CRLF, no end":   bytes.ReplaceAll(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n"), []byte("\r\n")),
		"two ends of CR": append(slices.Clone(whole), "\r\n\r\n"...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := noticed(t, export); len(got) != 0 {
				t.Errorf("noticed by %v", got)
			}
			if got := goChecks(t, export); len(got) != 0 {
				t.Errorf("noticed in Go by %v", got)
			}
		})
	}
}

// Texts open their commitments, and no others do.
func TestOpenings(t *testing.T) {
	t.Parallel()
	whole := vectors(t)
	var vector []struct{ Opening, Text, Commitment, Info string }
	text, err := os.ReadFile(filepath.Join(testdata, "commitments.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &vector); err != nil {
		t.Fatal(err)
	}
	all := entries(t, whole)
	first := slices.IndexFunc(all, func(e entry) bool { return e.other == "" })
	r := open(t, all[first].Receipt)
	r.PromptCommitment = vector[0].Commitment
	all[first].Receipt = canonical(t, r)
	export := write(relinked(t, all))
	id := open(t, entries(t, export)[first].Receipt).ID
	for name, c := range map[string]struct {
		id, opening, text string
		want              string
	}{
		"the text":        {id, vector[0].Opening, vector[0].Text, ""},
		"another text":    {id, vector[0].Opening, vector[0].Text + " ", "commitment"},
		"another opening": {id, vector[1].Opening, vector[0].Text, "commitment"},
		"another receipt": {open(t, all[first+1].Receipt).ID, vector[0].Opening, vector[0].Text, "commitment"},
		"no text":         {id, vector[0].Opening, "", "commitment"},
		"no hexadecimal":  {id, "x", vector[0].Text, "commitment"},
	} {
		line, err := json.Marshal(map[string]any{"id": c.id, "prompt": c.text, "openings": map[string]string{"prompt": c.opening}})
		if err != nil {
			t.Fatal(err)
		}
		texts := filepath.Join(t.TempDir(), "texts")
		if err := os.WriteFile(texts, line, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(noticed(t, export, "--texts", texts), " "); got != c.want {
			t.Errorf("%s: noticed by %q, want %q", name, got, c.want)
		}
	}
}
