package audit_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// The receipts of an archive that is attacked, by their places: four turns of the session
// a, the last under another policy; a turn of b, a tool call and another turn; and three of
// a conversation that is known only by its history, whose client went back once.
const (
	a1 = iota
	b1
	a2
	r1
	bCall
	r2
	a3
	r2Again
	a4
	b2
)

// An attackedFile is an export in the hands of somebody who changes it.
type attackedFile struct {
	policies []string
	receipts []kernel.Receipt
	entries  []store.Receipt
}

func newAttackedFile(t *testing.T) *attackedFile {
	t.Helper()
	f := &attackedFile{}
	strict := kernel.DefaultPolicy()
	strict.Tau, strict.Recovery = 0.14, 0.2
	var kernels []*kernel.Kernel
	for _, p := range []kernel.Policy{kernel.DefaultPolicy(), strict} {
		k, err := kernel.New(p)
		if err != nil {
			t.Fatal(err)
		}
		text, err := p.JSON()
		if err != nil {
			t.Fatal(err)
		}
		kernels, f.policies = append(kernels, k), append(f.policies, fmt.Sprintf("{\"policy\":%s}\n", text))
	}
	states := make(map[int]kernel.Session)
	for place, c := range []struct {
		session string
		prev    int
		k       *kernel.Kernel
	}{
		{"a", -1, kernels[0]},
		{"b", -1, kernels[0]},
		{"a", a1, kernels[0]},
		{"r", -1, kernels[0]},
		{"b", b1, kernels[0]},
		{"r", r1, kernels[0]},
		{"a", a2, kernels[0]},
		{"r", r1, kernels[0]},
		{"a", a3, kernels[1]},
		{"b", bCall, kernels[0]},
	} {
		state, prev := c.k.NewSession(), ""
		if c.prev >= 0 {
			state, prev = states[c.prev], f.receipts[c.prev].Link()
		}
		turn, err := c.k.Assess(state, kernel.Evidence{Scores: kernel.Scores{Identity: 0.4 + float64(place)/50}}, kernel.Enforce)
		if place == bCall {
			turn, err = c.k.RecordToolCall(state, kernel.ToolCall{Tool: "read", Effect: kernel.ToolReads}, kernel.Evidence{}, kernel.Enforce)
		}
		if err != nil {
			t.Fatal(err)
		}
		r := c.k.Receipt(turn)
		r.SessionID, r.Prev, r.Resent, r.Turn, r.Timestamp = c.session, prev, c.session == "r", 1, int64(place+1)
		r.Nonce, r.Setup, r.Model = fmt.Sprint(place), strings.Repeat("0", 64), "m"
		f.receipts, states[place] = append(f.receipts, seal(t, r)), turn.Next
	}
	f.write(t)
	return f
}

func seal(t *testing.T, r kernel.Receipt) kernel.Receipt {
	t.Helper()
	if _, err := r.Seal(); err != nil {
		t.Fatal(err)
	}
	return r
}

// write makes the lines of the receipts, with their places in a log.
func (f *attackedFile) write(t *testing.T) {
	t.Helper()
	f.entries = nil
	prev := ""
	for i, r := range f.receipts {
		text, err := r.JSON()
		if err != nil {
			t.Fatal(err)
		}
		f.entries = append(f.entries, store.Receipt{Seq: uint64(i + 1), LogPrev: prev, JSON: text})
		sum := sha256.Sum256(text)
		prev = hex.EncodeToString(sum[:])
	}
}

// forge changes a receipt and seals it. relinked receipts are those after it that are made
// to name the one before them anew.
func (f *attackedFile) forge(t *testing.T, place int, change func(*kernel.Receipt), relinked ...int) {
	t.Helper()
	for _, n := range append([]int{place}, relinked...) {
		old := f.receipts[n]
		r := old
		if n == place {
			change(&r)
		}
		r = seal(t, r)
		for i := range f.receipts {
			if f.receipts[i].Prev == old.Link() && slices.Contains(relinked, i) {
				f.receipts[i].Prev = r.Link()
			}
		}
		f.receipts[n] = r
		text, err := r.JSON()
		if err != nil {
			t.Fatal(err)
		}
		f.entries[n].JSON = text
	}
}

// lines are the file, with the places in the log or, as older exports have them, without.
func (f *attackedFile) lines(numbered bool) string {
	var b strings.Builder
	for _, p := range f.policies {
		b.WriteString(p)
	}
	for _, e := range f.entries {
		if numbered {
			b.Write(audit.AppendLogLine(nil, e))
		} else {
			fmt.Fprintf(&b, "%s\n", e.JSON)
		}
	}
	return b.String()
}

// faultsOf names the checks that fail and the lines of the receipts there, counted from 0
// as the places above.
func faultsOf(t *testing.T, lines string, partial bool) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "receipts")
	if err := os.WriteFile(name, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	var faults []string
	v := audit.NewVerifier(audit.NewFileSource(name), partial, func(where string, c audit.Check) {
		var line int
		if _, err := fmt.Sscanf(strings.TrimPrefix(where, name+":"), "%d", &line); err != nil {
			t.Errorf("%s: %v", where, err)
		}
		faults = append(faults, fmt.Sprintf("%s %d", c.Name, line-3))
	})
	if _, err := v.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	return strings.Join(faults, ", ")
}

// What somebody with a text editor, or with this package, does to an export, and which
// checks notice it. Where nothing does, only a head that was kept elsewhere can.
func TestAttacksOnAFile(t *testing.T) {
	model := func(r *kernel.Receipt) { r.Model = "another" }
	for _, c := range []struct {
		name     string
		attack   func(t *testing.T, f *attackedFile)
		numbered string // the faults in a file with places in the log
		bare     string // and without
	}{
		{"nothing", func(*testing.T, *attackedFile) {}, "", ""},
		{"sealed anew", func(t *testing.T, f *attackedFile) { f.forge(t, a2, model) }, "log 3, chain 6", "chain 6"},
		{"sealed anew with all that follow", func(t *testing.T, f *attackedFile) { f.forge(t, a2, model, a3, a4) }, "log 3, log 7, log 9", ""},
		{"the log, too", func(t *testing.T, f *attackedFile) { f.forge(t, a2, model, a3, a4); f.write(t) }, "", ""},
		{"the last of a session", func(t *testing.T, f *attackedFile) { f.forge(t, a4, model) }, "log 9", ""},
		{"the last of all", func(t *testing.T, f *attackedFile) { f.forge(t, b2, model) }, "", ""},
		{"an output", func(t *testing.T, f *attackedFile) { f.forge(t, b2, func(r *kernel.Receipt) { r.MAfter += 0.01 }) }, "replay 9", "replay 9"},
		{"a contradiction", func(t *testing.T, f *attackedFile) { f.forge(t, b2, func(r *kernel.Receipt) { r.Turn = 0 }) }, "form 9", "form 9"},
		{"another start", func(t *testing.T, f *attackedFile) {
			f.forge(t, b2, func(r *kernel.Receipt) { *r = retaken(t, *r, kernel.Point{0.3, 0.3, 0.4}) })
		}, "chain 9", "chain 9"},
		{"one dropped", func(_ *testing.T, f *attackedFile) { f.entries = slices.Delete(f.entries, a2, r1) }, "log 2, chain 5", "chain 5"},
		{"a first one dropped", func(_ *testing.T, f *attackedFile) { f.entries = slices.Delete(f.entries, b1, a2) }, "log 1, chain 3", "chain 3"},
		{"the last of a session dropped", func(_ *testing.T, f *attackedFile) { f.entries = slices.Delete(f.entries, a4, b2) }, "log 8", ""},
		{"the tail cut", func(_ *testing.T, f *attackedFile) { f.entries = f.entries[:a3] }, "", ""},
		{"the front cut", func(_ *testing.T, f *attackedFile) { f.entries = f.entries[a2:] }, "log 0, chain 0, chain 2", "chain 0, chain 2"},
		{"a session dropped", func(_ *testing.T, f *attackedFile) {
			f.entries = []store.Receipt{f.entries[a1], f.entries[a2], f.entries[r1], f.entries[r2], f.entries[a3], f.entries[r2Again], f.entries[a4]}
		}, "log 1, log 3", ""},
		{"one twice", func(_ *testing.T, f *attackedFile) { f.entries = slices.Insert(f.entries, a3, f.entries[a2]) }, "log 6, chain 6, log 7", "chain 6"},
		{"a last one twice", func(_ *testing.T, f *attackedFile) { f.entries = append(f.entries, f.entries[b2]) }, "log 10, chain 10", "chain 10"},
		{"two sessions swapped", func(_ *testing.T, f *attackedFile) {
			f.entries[a1], f.entries[b1] = f.entries[b1], f.entries[a1]
		}, "log 0, log 1, log 2", ""},
		{"two of a session swapped", func(_ *testing.T, f *attackedFile) {
			f.entries[bCall], f.entries[b2] = f.entries[b2], f.entries[bCall]
		}, "log 4, chain 4, log 5, log 9", "chain 4"},
		{"a session put in", func(t *testing.T, f *attackedFile) {
			made, r := f.entries[a1], f.receipts[a1]
			r.SessionID = "nobody"
			text, err := seal(t, r).JSON()
			if err != nil {
				t.Fatal(err)
			}
			made.JSON = text
			f.entries = slices.Insert(f.entries, a2, made)
		}, "log 2, log 3", ""},
		{"a fork of a named session", func(t *testing.T, f *attackedFile) {
			r := f.receipts[b2]
			r.Model = "another"
			f.receipts = append(f.receipts, seal(t, r))
			f.write(t)
		}, "chain 10", "chain 10"},
		{"a fork that says it was resent", func(t *testing.T, f *attackedFile) {
			r := f.receipts[b2]
			r.Resent = true
			f.receipts = append(f.receipts, seal(t, r))
			f.write(t)
		}, "chain 10", "chain 10"},
		{"moved to another session", func(t *testing.T, f *attackedFile) {
			f.forge(t, b2, func(r *kernel.Receipt) { r.SessionID = "a" })
		}, "chain 9", "chain 9"},
		{"moved with its link", func(t *testing.T, f *attackedFile) {
			f.forge(t, b2, func(r *kernel.Receipt) { r.SessionID, r.Prev = "a", f.receipts[a4].Link() })
		}, "chain 9", "chain 9"},
		{"a conversation that goes on as a session", func(t *testing.T, f *attackedFile) {
			f.forge(t, r2Again, func(r *kernel.Receipt) { r.Resent = false })
		}, "chain 7, log 8", "chain 7"},
		{"a conversation that goes on as a session first", func(t *testing.T, f *attackedFile) {
			f.forge(t, r2, func(r *kernel.Receipt) { r.Resent = false })
		}, "log 6, chain 7", "chain 7"},
		{"under another policy", func(t *testing.T, f *attackedFile) {
			f.forge(t, b2, func(r *kernel.Receipt) { r.Policy = f.receipts[a4].Policy })
		}, "replay 9, chain 9", "replay 9, chain 9"},
		{"said to be migrated", func(t *testing.T, f *attackedFile) {
			f.forge(t, b2, func(r *kernel.Receipt) { r.Migrated = true })
		}, "chain 9", "chain 9"},
		{"without a policy", func(_ *testing.T, f *attackedFile) { f.policies[1] = "\n" }, "replay 8", "replay 8"},
		{"a changed policy", func(_ *testing.T, f *attackedFile) {
			f.policies[1] = strings.Replace(f.policies[1], `"tau":0.14`, `"tau":0.13`, 1)
		}, "replay 8", "replay 8"},
		{"a number of the log", func(_ *testing.T, f *attackedFile) { f.entries[a3].Seq = 70 }, "log 6, log 7", ""},
		{"no number of the log", func(_ *testing.T, f *attackedFile) { f.entries[a3].Seq = 0 }, "form 6, log 6, log 7, chain 8", ""},
		{"a link of the log", func(_ *testing.T, f *attackedFile) { f.entries[a3].LogPrev = strings.Repeat("0", 64) }, "log 6", ""},
		{"no link of the log", func(_ *testing.T, f *attackedFile) { f.entries[a3].LogPrev = "" }, "log 6", ""},
		{"no links", func(_ *testing.T, f *attackedFile) {
			for i := range f.entries {
				f.entries[i].LogPrev = ""
			}
		}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newAttackedFile(t)
			c.attack(t, f)
			if got := faultsOf(t, f.lines(true), false); got != c.numbered {
				t.Errorf("with places: %q, want %q", got, c.numbered)
			}
			if got := faultsOf(t, f.lines(false), false); got != c.bare {
				t.Errorf("without: %q, want %q", got, c.bare)
			}
		})
	}
}

// A later part of an export is whole, wherever it begins, for who says that it is one.
func TestLaterPartsOfAFile(t *testing.T) {
	f := newAttackedFile(t)
	for entries := f.entries; len(f.entries) > 0; f.entries = f.entries[1:] {
		if got := faultsOf(t, f.lines(true), true); got != "" {
			t.Errorf("the last %d of %d: %q", len(f.entries), len(entries), got)
		}
	}
}

// retaken is the receipt with the step taken from another state.
func retaken(t *testing.T, r kernel.Receipt, x kernel.Point) kernel.Receipt {
	t.Helper()
	k, err := kernel.New(kernel.DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	s := k.NewSession()
	s.X = x
	turn, err := k.Assess(s, r.Evidence, r.Mode)
	if err != nil {
		t.Fatal(err)
	}
	n := k.Receipt(turn)
	n.SessionID, n.Prev, n.Turn, n.Timestamp, n.Nonce, n.Setup = r.SessionID, r.Prev, r.Turn, r.Timestamp, r.Nonce, r.Setup
	return n
}

// Every other value of every member shows at its id, at the next record of the log, and
// nowhere else but where the next receipt of the session follows from it.
func TestEveryChangedMemberShows(t *testing.T) {
	f := newAttackedFile(t)
	record := f.entries[a2].JSON
	members := jsontext.NewDecoder(bytes.NewReader(record))
	if _, err := members.ReadToken(); err != nil {
		t.Fatal(err)
	}
	for members.PeekKind() != '}' {
		name, err1 := members.ReadToken()
		member := name.String()
		value, err2 := members.ReadValue()
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		end := members.InputOffset()
		start := end - int64(len(value))
		f.entries[a2].JSON = slices.Concat(record[:start], other(value), record[end:])
		got := faultsOf(t, f.lines(true), false)
		if got != "form 2, log 3" && got != "form 2, log 3, chain 6" {
			t.Errorf("%s: %q", member, got)
		}
	}
}

// other is another value of the same kind.
func other(value jsontext.Value) []byte {
	text := string(value)
	switch value.Kind() {
	case '"':
		if strings.HasSuffix(text, `0"`) {
			return []byte(text[:len(text)-2] + `1"`)
		}
		return []byte(text[:max(1, len(text)-2)] + `0"`)
	case 't':
		return []byte("false")
	case 'f':
		return []byte("true")
	case '0':
		return []byte("7")
	case '[':
		return []byte(strings.NewReplacer("0", "1", "[]", `["capitulation"]`).Replace(text))
	}
	return []byte(strings.Replace(text, ":0", ":1", 1))
}

// A file that was cut in the middle of a line, or that went through another system.
func TestDamagedFiles(t *testing.T) {
	f := newAttackedFile(t)
	whole := f.lines(true)
	for name, c := range map[string]struct{ lines, want string }{
		"carriage returns":       {strings.ReplaceAll(whole, "\n", "\r\n"), ""},
		"a byte order mark":      {"\ufeff" + whole, ""},
		"one on a later line":    {strings.Replace(whole, `{"seq":10,`, "\ufeff{\"seq\":10,", 1), "form 9, log 9"},
		"empty lines at the end": {whole + "\n\n", ""},
		"no end of line":         {strings.TrimSuffix(whole, "\n"), ""},
		"a cut line":             {whole[:len(whole)-100], "form 9, log 9"},
		"a cut end":              {strings.TrimSuffix(whole, "}\n"), "form 9"},
		"two on a line":          {whole[:len(whole)-1] + whole[strings.LastIndex(whole, `{"seq"`):], "form 9"},
		"a comma":                {strings.TrimSuffix(whole, "\n") + ",\n", "form 9, log 9"},
	} {
		if got := faultsOf(t, c.lines, false); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	_, later, _ := strings.Cut(whole, `{"seq":3`)
	if got := faultsOf(t, strings.Join(f.policies, "")+`{"seq":3`+later, true); got != "" {
		t.Errorf("a later part: %q", got)
	}
}
