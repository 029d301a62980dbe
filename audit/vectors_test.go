package audit_test

import (
	"encoding/json"
	"os"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/store"
)

// The heads that docs/receipts.md specifies: the roots were computed as RFC 6962 defines
// them, recursively over all records.
func TestHeadVectors(t *testing.T) {
	text, err := os.ReadFile("../kernel/testdata/log.json")
	if err != nil {
		t.Fatal(err)
	}
	var vector struct {
		Records []string `json:"records"`
		Roots   []string `json:"roots"`
		Signed  string   `json:"signed_head"`
		Key     string   `json:"verifier_key"`
	}
	if err := json.Unmarshal(text, &vector); err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(vector.Key)
	if err != nil {
		t.Fatal(err)
	}
	head, err := audit.OpenHead([]byte(vector.Signed), verifier)
	if err != nil {
		t.Fatal(err)
	}
	reader := audit.NewHeadReader(head.Size)
	for size, root := range vector.Roots {
		if got := reader.Root().String(); got != root {
			t.Errorf("the root of %d records is %s, want %s", size, got, root)
		}
		if size == len(vector.Records) {
			break
		}
		if err := reader.Add(store.Receipt{Seq: uint64(size + 1), LogPrev: reader.Head(head.Time).Last, JSON: []byte(vector.Records[size])}); err != nil {
			t.Fatal(err)
		}
	}
	if err := reader.Extends(head); err != nil || reader.Head(head.Time) != head || len(vector.Roots) != 34 {
		t.Errorf("%v: %+v is not the head that was signed, %+v", err, reader.Head(head.Time), head)
	}
}
