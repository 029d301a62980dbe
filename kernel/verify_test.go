package kernel_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/caddy-lex/lex/kernel"
)

func TestOpenReceiptTakesServedBytesOnly(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	r := sealedReceipt(t, k)
	text := mustJSON(t, r)
	opened, err := kernel.OpenReceipt(text)
	if err != nil || opened.ID != r.ID {
		t.Fatalf("%s, %v", opened.ID, err)
	}
	for name, form := range map[string][]byte{
		"space":          bytes.Replace(text, []byte(`,"id"`), []byte(`, "id"`), 1),
		"an exponent":    bytes.Replace(text, []byte(`"cusum":0.21`), []byte(`"cusum":21e-2`), 1),
		"a digit of use": bytes.Replace(text, []byte(`"cusum":0.21`), []byte(`"cusum":0.210`), 1),
		"an escape":      bytes.Replace(text, []byte(`"demo"`), []byte(`"d\u0065mo"`), 1),
		"the id first":   append([]byte(`{"id":"`+r.ID+`",`), bytes.Replace(text, []byte(`,"id":"`+r.ID+`"`), nil, 1)[1:]...),
		"a second id":    bytes.Replace(text, []byte(`"mode":`), []byte(`"id":"`+r.ID+`","mode":`), 1),
		"another member": bytes.Replace(text, []byte(`"mode":`), []byte(`"mod":1,"mode":`), 1),
		"half of it":     text[:len(text)/2],
		"nothing":        nil,
	} {
		if bytes.Equal(form, text) {
			t.Fatalf("%s changes nothing", name)
		}
		if _, err := kernel.OpenReceipt(form); !errors.Is(err, kernel.ErrReceipt) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	changed := bytes.Replace(text, []byte(`"turn":3`), []byte(`"turn":4`), 1)
	written := bytes.Replace(changed, []byte(`,"id"`), []byte(`, "id"`), 1) // anew
	for name, form := range map[string][]byte{"another turn": changed, "another turn, written anew": written} {
		if got, err := kernel.OpenReceipt(form); !errors.Is(err, kernel.ErrReceiptID) || got.Turn != 4 {
			t.Errorf("%s: %v with turn %d", name, err, got.Turn)
		}
	}
}

// A record whose id is the hash of its very bytes is still refused when these
// bytes are not the one canonical form of its values.
func TestOpenReceiptRefusesSealedBytesInAnotherForm(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	r := sealedReceipt(t, k)
	r.DeniedBy = "no-weapons"
	if _, err := r.Seal(); err != nil {
		t.Fatal(err)
	}
	text := mustJSON(t, r)
	for name, form := range map[string][]byte{
		"a digit too many":    bytes.Replace(text, []byte(`"cusum":0.21`), []byte(`"cusum":0.21000000000000001`), 1),
		"a zero too many":     bytes.Replace(text, []byte(`"cusum":0.21`), []byte(`"cusum":0.210`), 1),
		"an exponent":         bytes.Replace(text, []byte(`"cusum":0.21`), []byte(`"cusum":3.1e-1`), 1),
		"a negative zero":     bytes.Replace(text, []byte(`"carry":[0,`), []byte(`"carry":[-0,`), 1),
		"an escape":           bytes.Replace(text, []byte(`"demo"`), []byte(`"d\u0065mo"`), 1),
		"space":               bytes.Replace(text, []byte(`"lost_thread":`), []byte(`"lost_thread": `), 1),
		"another order":       bytes.Replace(text, []byte(`"coercion":0,"exploitative":0`), []byte(`"exploitative":0,"coercion":0`), 1),
		"a member left out":   bytes.Replace(text, []byte(`"lost_thread":false,`), nil, 1),
		"a default written":   bytes.Replace(text, []byte(`"resent":`), []byte(`"repeated":false,"resent":`), 1),
		"an empty list extra": bytes.Replace(text, []byte(`"skipped":`), []byte(`"redacted":[],"skipped":`), 1),
	} {
		if bytes.Equal(form, text) {
			t.Fatalf("%s changes nothing", name)
		}
		without := bytes.Replace(form, []byte(`"id":"`+r.ID+`",`), nil, 1)
		digest := sha256.Sum256(without)
		id := kernel.PrefixText + strings.ToUpper(hex.EncodeToString(digest[:16]))
		sealed := bytes.Replace(form, []byte(r.ID), []byte(id), 1)
		if _, err := kernel.OpenReceipt(sealed); !errors.Is(err, kernel.ErrReceipt) && !errors.Is(err, kernel.ErrReceiptID) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// What the package writes is what the library of the JSON stack makes canonical.
func TestReceiptsAreCanonical(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	receipts := append(session(t, k, 60, 500), sealedReceipt(t, k), kernel.Receipt{})
	for _, r := range receipts {
		checkCanonical(t, r)
	}
}

// checkCanonical compares a record with what the ordinary encoder and its
// canonical form make of the same values.
func checkCanonical(t *testing.T, r kernel.Receipt) {
	t.Helper()
	got, err := r.JSON()
	if err != nil {
		return // it has no canonical form
	}
	want, err := json.Marshal(r)
	if err == nil {
		err = (*jsontext.Value)(&want).Canonicalize()
	}
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%s\nshould be\n%s, %v", got, want, err)
	}
}

// One receipt as `caddy lex verify` checks it: seal, replay and chain.
func BenchmarkVerify(b *testing.B) {
	k := newKernel(b, kernel.DefaultPolicy())
	for name, evidence := range map[string]func(random) kernel.Evidence{
		"ordinary": func(r random) kernel.Evidence {
			return scores(hundredths(r), hundredths(r), hundredths(r), hundredths(r), 0, 0)
		},
		"random": random.evidence,
	} {
		b.Run(name, func(b *testing.B) {
			records := archive(b, k, 1000, evidence)
			b.SetBytes(int64(len(records[0])))
			b.ReportAllocs()
			var c kernel.Chain
			for i := 0; b.Loop(); i++ {
				if i%len(records) == 0 {
					c = kernel.Chain{}
				}
				r, err := kernel.OpenReceipt(records[i%len(records)])
				if err := errors.Join(err, k.Replay(r), c.Add(k, r)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// hundredths is a score as the detectors round it.
func hundredths(r random) float64 { return float64(r.IntN(60)) / 100 }

// archive returns the records of one session as a store would keep them.
func archive(b *testing.B, k *kernel.Kernel, n int, evidence func(random) kernel.Evidence) [][]byte {
	r, s, example, prev := newRandom(7), k.NewSession(), sealedReceipt(b, k), ""
	records := make([][]byte, n)
	for i := range records {
		turn := take(b, k, s, evidence(r), kernel.Enforce, kernel.Output{})
		receipt := k.Receipt(turn)
		receipt.SessionID, receipt.Prev, receipt.Nonce, receipt.Timestamp = "demo", prev, example.Nonce, example.Timestamp
		receipt.Version, receipt.Endpoint, receipt.Dialect, receipt.Model = example.Version, "lex/govern", "openai", "a-model"
		receipt.PromptCommitment, receipt.OutputCommitment = example.PromptCommitment, example.PromptCommitment
		receipt.Coverage = example.Coverage
		receipt = sealed(b, receipt)
		s, prev, records[i] = turn.Next, receipt.ID, mustJSON(b, receipt)
	}
	return records
}
