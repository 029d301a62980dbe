package audit_test

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/store"
)

// logOf makes a log of records.
func logOf(records ...[]byte) (log []store.Receipt) {
	prev := ""
	for i, record := range records {
		log = append(log, store.Receipt{Seq: uint64(i + 1), LogPrev: prev, JSON: record})
		sum := sha256.Sum256(record)
		prev = hex.EncodeToString(sum[:])
	}
	return log
}

func numbered(n int) (records [][]byte) {
	for i := range n {
		records = append(records, fmt.Appendf(nil, `{"n":%d}`, i))
	}
	return records
}

func headOf(t *testing.T, log []store.Receipt, sizes ...uint64) *audit.HeadReader {
	t.Helper()
	r := audit.NewHeadReader(sizes...)
	for _, entry := range log {
		if err := r.Add(entry); err != nil {
			t.Fatalf("%d: %v", entry.Seq, err)
		}
	}
	return r
}

// The roots are those of the reference data of Certificate Transparency
// (github.com/google/certificate-transparency, merkle_tree_test.cc).
func TestRootsOfReferenceData(t *testing.T) {
	var leaves [][]byte
	for _, text := range []string{"", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"} {
		leaf, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leaf)
	}
	for i, want := range []string{
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
		"fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
		"aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
		"d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
		"4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
		"76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
		"ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
		"5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
	} {
		if root := headOf(t, logOf(leaves[:i]...)).Root(); hex.EncodeToString(root[:]) != want {
			t.Errorf("%d leaves: %x, want %s", i, root, want)
		}
	}
}

// The root is that of the reference implementation at every size, and a marked size keeps
// its root while the log grows.
func TestRootsOfEverySize(t *testing.T) {
	var hashes []tlog.Hash
	stored := tlog.HashReaderFunc(func(indexes []int64) (list []tlog.Hash, _ error) {
		for _, i := range indexes {
			list = append(list, hashes[i])
		}
		return list, nil
	})
	const n = 300
	log := logOf(numbered(n)...)
	sizes := make([]uint64, n+1)
	for i := range sizes {
		sizes[i] = uint64(i)
	}
	r := audit.NewHeadReader(sizes...)
	var heads []audit.Head
	for i := 0; ; i++ {
		want, err := tlog.TreeHash(int64(i), stored)
		if err != nil {
			t.Fatal(err)
		}
		h := r.Head(time.Unix(7, 7))
		if h.Root != want && i > 0 || h.Size != uint64(i) || h.Time != time.Unix(7, 0).UTC() {
			t.Fatalf("%d receipts: %+v, want the root %v", i, h, want)
		}
		heads = append(heads, h)
		if i == n {
			break
		}
		if err := r.Add(log[i]); err != nil {
			t.Fatal(err)
		}
		more, err := tlog.StoredHashes(int64(i), log[i].JSON, stored)
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, more...)
	}
	for _, h := range heads {
		if err := r.Extends(h); err != nil {
			t.Errorf("%d: %v", h.Size, err)
		}
	}
	if last := heads[n].Last; last != fmt.Sprintf("%x", sha256.Sum256(log[n-1].JSON)) || heads[0].Last != "" {
		t.Errorf("the last record is %q, and %q in an empty log", last, heads[0].Last)
	}
}

// Whatever is done to the part of a log that a head was made of, the log no longer extends
// the head.
func TestHeadNoticesEveryChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "receipts of the head")
		later := rapid.IntRange(0, 10).Draw(t, "later ones")
		records := numbered(n + later)
		reader := func(records [][]byte) *audit.HeadReader {
			r := audit.NewHeadReader(uint64(n))
			for _, entry := range logOf(records...) { // with links and numbers that were mended
				if err := r.Add(entry); err != nil {
					t.Fatal(err)
				}
			}
			return r
		}
		head := reader(records[:n]).Head(time.Unix(7, 0))
		if err := reader(records).Extends(head); err != nil {
			t.Fatalf("untouched: %v", err)
		}
		at := rapid.IntRange(0, n-1).Draw(t, "at")
		switch what := rapid.SampledFrom([]string{"change", "drop", "insert", "swap", "repeat", "cut"}).Draw(t, "what"); what {
		case "change":
			records[at] = append(bytes.Clone(records[at]), ' ')
		case "drop":
			records = append(records[:at:at], records[at+1:]...)
		case "insert":
			records = append(records[:at:at], append([][]byte{[]byte("{}")}, records[at:]...)...)
		case "repeat":
			records = append(records[:at:at], append([][]byte{records[at]}, records[at:]...)...)
			if at+1 == n && later == 0 { // it is not part of what the head was made of
				return
			}
			if at+1 == n {
				records[n-1] = []byte("{}")
			}
		case "swap":
			other := rapid.IntRange(0, n+later-1).Draw(t, "with")
			if other == at {
				return
			}
			records[at], records[other] = records[other], records[at]
		case "cut":
			records = records[:at]
		}
		if err := reader(records).Extends(head); err == nil {
			t.Fatalf("it was not noticed")
		}
	})
}

// What does not follow is named at its place.
func TestHeadReaderNamesTheBreak(t *testing.T) {
	whole := func() []store.Receipt { return logOf(numbered(5)...) }
	for name, c := range map[string]struct {
		change func(log []store.Receipt) []store.Receipt
		want   string // the first error, "" for none
	}{
		"untouched":       {func(l []store.Receipt) []store.Receipt { return l }, ""},
		"one dropped":     {func(l []store.Receipt) []store.Receipt { return append(l[:2], l[3:]...) }, "receipt 3 of the log is missing before it"},
		"first dropped":   {func(l []store.Receipt) []store.Receipt { return l[1:] }, "receipt 1 of the log is missing before it"},
		"one twice":       {func(l []store.Receipt) []store.Receipt { l[3] = l[2]; return l }, "it is receipt 3 of the log and stands after receipt 3"},
		"one renumbered":  {func(l []store.Receipt) []store.Receipt { l[4].Seq = 6; return l }, "receipt 5 of the log is missing before it"},
		"one changed":     {func(l []store.Receipt) []store.Receipt { l[2].JSON = []byte("{}"); return l }, "is another than the one that it names"},
		"two swapped":     {func(l []store.Receipt) []store.Receipt { l[2].JSON, l[3].JSON = l[3].JSON, l[2].JSON; return l }, "is another than the one that it names"},
		"no link":         {func(l []store.Receipt) []store.Receipt { l[3].LogPrev = ""; return l }, "does not name the record before it"},
		"link of first":   {func(l []store.Receipt) []store.Receipt { l[0].LogPrev = l[1].LogPrev; return l }, "names one before it"},
		"no place":        {func(l []store.Receipt) []store.Receipt { l[0].Seq, l[0].LogPrev = 0, ""; return l }, "no place"},
		"before the log":  {func(l []store.Receipt) []store.Receipt { l[1].LogPrev, l[2].LogPrev = "", ""; return l }, ""},
		"all before it":   {withoutLinks, ""},
		"last two before": {func(l []store.Receipt) []store.Receipt { return append(l[:3:3], withoutLinks(l[3:])...) }, "does not name the record before it"},
	} {
		var first error
		r, faults := new(audit.HeadReader), 0
		for _, entry := range c.change(whole()) {
			if err := r.Add(entry); err != nil {
				faults++
				first = cmp.Or(first, err)
			}
		}
		if strings.HasSuffix(name, "dropped") && faults != 1 {
			t.Errorf("%s: one gap is %d faults", name, faults)
		}
		if c.want == "" && first != nil || c.want != "" && (first == nil || !strings.Contains(first.Error(), c.want)) {
			t.Errorf("%s: %v", name, first)
		}
	}
}

func withoutLinks(log []store.Receipt) []store.Receipt {
	for i := range log {
		log[i].LogPrev = ""
	}
	return log
}

func keyPair(t *testing.T, name string) (note.Signer, note.Verifier) {
	t.Helper()
	private, public, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(public)
	if err != nil {
		t.Fatal(err)
	}
	return signer, verifier
}

func TestSignedHead(t *testing.T) {
	signer, verifier := keyPair(t, "lex.example/log")
	for _, n := range []int{0, 1, 5} {
		head := headOf(t, logOf(numbered(n)...), uint64(n)).Head(time.Unix(1_790_000_000, 0))
		signed, err := head.Sign(signer)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("lex.example/log\n%d\n%s\n", n, base64.StdEncoding.EncodeToString(head.Root[:]))
		if n > 0 {
			want += "last " + head.Last + "\n"
		}
		want += "time 2026-09-21T14:13:20Z\n\n\u2014 lex.example/log "
		if !strings.HasPrefix(string(signed), want) {
			t.Errorf("signed is\n%s\nwant\n%s", signed, want)
		}
		if got, err := audit.OpenHead(signed, verifier); err != nil || got != head {
			t.Errorf("opened %+v, %v, want %+v", got, err, head)
		}
		for i := range signed { // no byte of it may be another
			changed := bytes.Clone(signed)
			changed[i] ^= 1
			if got, err := audit.OpenHead(changed, verifier); err == nil && got != head {
				t.Errorf("with byte %d changed it is %+v", i, got)
			}
		}
	}
}

// A brokenSigner is one whose key cannot be used, as one in a device that is gone.
type brokenSigner struct{ note.Signer }

func (brokenSigner) Sign([]byte) ([]byte, error) { return nil, errors.New("no key") }

func TestHeadThatCannotBeSigned(t *testing.T) {
	signer, _ := keyPair(t, "lex.example/broken")
	if signed, err := headOf(t, nil).Head(time.Unix(7, 0)).Sign(brokenSigner{signer}); err == nil {
		t.Errorf("signed is %q", signed)
	}
}

// A note that is signed with the key and says something else is no head.
func TestOpenHeadRefuses(t *testing.T) {
	signer, verifier := keyPair(t, "lex.example/log")
	_, other := keyPair(t, "lex.example/log")
	root := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for name, c := range map[string]struct {
		text string
		key  note.Verifier
		want bool
	}{
		"a checkpoint of others": {"lex.example/log\n7\n" + root + "\n", verifier, true},
		"more extension lines":   {"lex.example/log\n7\n" + root + "\nfoo\ntime 2026-01-02T03:04:05Z\n", verifier, true},
		"another key":            {"lex.example/log\n7\n" + root + "\n", other, false},
		"another origin":         {"lex.example/other\n7\n" + root + "\n", verifier, false},
		"no root":                {"lex.example/log\n7\n", verifier, false},
		"a negative size":        {"lex.example/log\n-7\n" + root + "\n", verifier, false},
		"a short root":           {"lex.example/log\n7\n" + root[:40] + "\n", verifier, false},
		"a root of something":    {"lex.example/log\n7\n" + strings.Repeat("!", 44) + "\n", verifier, false},
		"no time":                {"lex.example/log\n7\n" + root + "\ntime yesterday\n", verifier, false},
		"something":              {"hello\n", verifier, false},
	} {
		signed, err := note.Sign(&note.Note{Text: c.text}, signer)
		if err != nil {
			t.Fatal(err)
		}
		h, err := audit.OpenHead(signed, c.key)
		if (err == nil) != c.want || c.want && h.Size != 7 {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
	if _, err := audit.OpenHead([]byte("{}"), verifier); err == nil {
		t.Error("a text that is no note was opened")
	}
}

func FuzzOpenHead(f *testing.F) {
	private, public, err := note.GenerateKey(rand.Reader, "k")
	if err != nil {
		f.Fatal(err)
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		f.Fatal(err)
	}
	verifier, err := note.NewVerifier(public)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("k\n1\n" + base64.StdEncoding.EncodeToString(make([]byte, 32)) + "\nlast x\ntime 2026-01-02T03:04:05Z\n")
	f.Add("\n\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		signed, err := note.Sign(&note.Note{Text: text}, signer)
		if err != nil {
			return
		}
		if h, err := audit.OpenHead(signed, verifier); err == nil {
			again, err := h.Sign(signer)
			if err != nil {
				t.Fatalf("%+v cannot be signed again: %v", h, err)
			}
			if got, err := audit.OpenHead(again, verifier); err != nil || got.Size != h.Size || got.Root != h.Root || got.Last != h.Last {
				t.Errorf("%+v is read back as %+v, %v", h, got, err)
			}
		}
	})
}

// A line of the log holds the record byte for byte, and is a line whatever the record is.
func TestLogLines(t *testing.T) {
	link := strings.Repeat("ab", 32)
	for name, c := range map[string]struct {
		entry store.Receipt
		want  string
	}{
		"first":          {store.Receipt{Seq: 1, JSON: []byte(`{"a": 1.0,"<":"é"}`)}, `{"seq":1,"log_prev":"","receipt":{"a": 1.0,"<":"é"}}`},
		"later":          {store.Receipt{Seq: 18446744073709551615, LogPrev: link, JSON: []byte(`{}`)}, `{"seq":18446744073709551615,"log_prev":"` + link + `","receipt":{}}`},
		"two lines":      {store.Receipt{Seq: 2, LogPrev: link, JSON: []byte("{\n}")}, `{"seq":2,"log_prev":"` + link + `","receipt":null}`},
		"no JSON":        {store.Receipt{Seq: 2, LogPrev: link, JSON: []byte(`{}}`)}, `{"seq":2,"log_prev":"` + link + `","receipt":null}`},
		"nothing":        {store.Receipt{Seq: 2, LogPrev: link}, `{"seq":2,"log_prev":"` + link + `","receipt":null}`},
		"a member twice": {store.Receipt{Seq: 2, LogPrev: link, JSON: []byte(`{"a":1,"a":2}`)}, `{"seq":2,"log_prev":"` + link + `","receipt":{"a":1,"a":2}}`},
		"a damaged link": {store.Receipt{Seq: 2, LogPrev: "\"\n", JSON: []byte(`{}`)}, `{"seq":2,"log_prev":"","receipt":{}}`},
		"a line in it":   {store.Receipt{Seq: 2, LogPrev: link, JSON: []byte(`{"seq":3,"log_prev":"","receipt":{}}`)}, `{"seq":2,"log_prev":"` + link + `","receipt":{"seq":3,"log_prev":"","receipt":{}}}`},
		"what is a mark": {store.Receipt{Seq: 2, LogPrev: link, JSON: []byte(`{"x":"\",\"receipt\":"}`)}, `{"seq":2,"log_prev":"` + link + `","receipt":{"x":"\",\"receipt\":"}}`},
	} {
		line := audit.AppendLogLine([]byte("before "), c.entry)
		if got := strings.TrimPrefix(string(line), "before "); got != c.want+"\n" {
			t.Errorf("%s: %s", name, got)
			continue
		}
		entry, known := audit.ParseLogLine([]byte(c.want))
		_, record, _ := strings.Cut(c.want, `","receipt":`)
		if !known || entry.Seq != c.entry.Seq || string(entry.JSON) != strings.TrimSuffix(record, "}") {
			t.Errorf("%s is read as %+v %v", name, entry, known)
		}
	}
	for _, line := range []string{
		"", "{}", `{"id":"KRN-1"}`, `{"policy":{}}`, `{"seq":0,"log_prev":"","receipt":{}}`, `{"seq":-1,"log_prev":"","receipt":{}}`,
		`{"seq":1.5,"log_prev":"","receipt":{}}`, `{"seq":"1","log_prev":"","receipt":{}}`, `{"seq":1,"receipt":{}}`,
		`1,"log_prev":"","receipt":{}}`, `{"seq":18446744073709551616,"log_prev":"","receipt":{}}`,
		`{"seq":1,"log_prev":""}`, `{"seq":1,"log_prev":"","receipt":{}`[:30], `{"seq":1,"log_prev":"","receipt":{}} `,
	} {
		if entry, known := audit.ParseLogLine([]byte(line)); known {
			t.Errorf("%s is read as %+v", line, entry)
		}
	}
}

// Whatever a record and a link are, a line of the log is one line that is read back.
func FuzzLogLine(f *testing.F) {
	f.Add(uint64(1), "", []byte(`{"a":1}`))
	f.Add(uint64(7), strings.Repeat("ab", 32), []byte(`{"x":"\",\"receipt\":"}`))
	f.Add(uint64(9), "\n", []byte("{\n}"))
	f.Fuzz(func(t *testing.T, seq uint64, link string, record []byte) {
		if seq == 0 {
			return
		}
		line := audit.AppendLogLine(nil, store.Receipt{Seq: seq, LogPrev: link, JSON: record})
		text, ended := bytes.CutSuffix(line, []byte("\n"))
		entry, known := audit.ParseLogLine(text)
		if !ended || bytes.ContainsAny(text, "\r\n") || !known || entry.Seq != seq {
			t.Fatalf("%q is read as %+v", line, entry)
		}
		if entry.LogPrev != link && entry.LogPrev != "" || !bytes.Equal(entry.JSON, record) && string(entry.JSON) != "null" {
			t.Errorf("%q, %q are read as %+v", link, record, entry)
		}
		again := audit.AppendLogLine(nil, entry)
		if !bytes.Equal(again, line) {
			t.Errorf("%q is written again as %q", line, again)
		}
	})
}

func BenchmarkHeadReader(b *testing.B) {
	entry := logOf(bytes.Repeat([]byte("x"), 2000))[0]
	b.SetBytes(2000)
	r := new(audit.HeadReader)
	for b.Loop() {
		_ = r.Add(entry)
	}
}
