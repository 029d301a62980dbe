package kernel_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

// sealedReceipt is the receipt of one eventful turn, as a caller would make it.
func sealedReceipt(t testing.TB, k *kernel.Kernel) kernel.Receipt {
	t.Helper()
	s := k.NewSession()
	s.CUSUM, s.Carry = 0.21, kernel.Point{0, 0.1, 0.2}
	e := kernel.Evidence{
		Scores:       kernel.Scores{Identity: 0.82, HarmRequest: 0.41, Injection: 0.07},
		ThreatSignal: 0.21, SovereigntyDrift: true, DeniedBy: "no-<weapons> & \u2028 \"é\"",
		Standing: []kernel.Reason{kernel.SlowDripAlarm},
	}
	o := kernel.Output{Capitulated: true, Category: kernel.IdentityAdoption, Confidence: 0.9}
	r := k.Receipt(take(t, k, s, e, kernel.Enforce, o))
	r.SessionID, r.Turn, r.Timestamp = "demo", 3, 1_700_000_000_000
	r.Nonce = "4E0C3B1F7A2D9865"
	r.Prev, r.Version = "KRN-00112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF", "lex-go/0.1.0+policy."+k.PolicyHash()[:12]
	r.Endpoint, r.Dialect, r.Model = "lex/govern", "openai", "m"
	r.PromptCommitment = kernel.Commit([]byte("key"), "prompt")
	r.Coverage = kernel.Coverage{
		Detectors: []kernel.DetectorRun{{Name: "local", Outcome: kernel.Flagged}},
		Inspected: []kernel.CoveredPart{{Part: "request.prompt", Detector: "local", Bytes: 6}},
		Skipped:   []kernel.SkippedPart{{Part: "request.image", Why: "image", Bytes: 9}},
	}
	if _, err := r.Seal(); err != nil {
		t.Fatal(err)
	}
	return r
}

func mustJSON(t testing.TB, r kernel.Receipt) []byte {
	t.Helper()
	text, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestReceiptRoundTripsByteForByte(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	r := newRandom(50)
	s := k.NewSession()
	receipts := []kernel.Receipt{{}, sealedReceipt(t, k)}
	for range 300 {
		turn := take(t, k, s, r.evidence(), kernel.Observe, r.output())
		s = turn.Next
		receipts = append(receipts, k.Receipt(turn))
	}
	for _, receipt := range receipts {
		text := mustJSON(t, receipt)
		back, err := kernel.ParseReceipt(text)
		if err != nil {
			t.Fatal(err)
		}
		if again := mustJSON(t, back); !bytes.Equal(text, again) {
			t.Fatalf("%s\nbecame\n%s", text, again)
		}
	}
}

// The names of the record are an interface. Every record has all of them, and those of
// what a step need not have only where it has it.
func TestReceiptMembers(t *testing.T) {
	for _, r := range []kernel.Receipt{{}, sealedReceipt(t, newKernel(t, kernel.DefaultPolicy()))} {
		var members map[string]stdjson.RawMessage
		if err := stdjson.Unmarshal(mustJSON(t, r), &members); err != nil {
			t.Fatal(err)
		}
		var names []string
		for name, value := range members {
			names = append(names, name)
			if string(value) == "null" {
				t.Errorf("%s is null", name)
			}
		}
		names = slices.DeleteFunc(names, func(name string) bool {
			return slices.Contains([]string{"cusum_slow", "cusum_slow_next", "m_floor"}, name)
		})
		slices.Sort(names)
		golden(t, "receipt_members.txt", []byte(strings.Join(names, "\n")+"\n"))
	}
	golden(t, "receipt.json", mustJSON(t, sealedReceipt(t, newKernel(t, kernel.DefaultPolicy()))))
}

// The id is what anybody can compute: the hash of the canonical record without
// its member id.
func TestSealIsTheHashOfTheRecord(t *testing.T) {
	r := sealedReceipt(t, newKernel(t, kernel.DefaultPolicy()))
	text := mustJSON(t, r)
	without := bytes.Replace(text, []byte(`"id":"`+r.ID+`",`), nil, 1)
	if canonical, err := r.Canonical(); err != nil || !bytes.Equal(canonical, without) {
		t.Fatalf("canonical %s, %v\nwant %s", canonical, err, without)
	}
	digest := sha256.Sum256(without)
	if want := "KRN-" + strings.ToUpper(hex.EncodeToString(digest[:16])); r.ID != want {
		t.Errorf("id %s, want %s", r.ID, want)
	}
	if err := r.CheckID(); err != nil {
		t.Error(err)
	}
	link := "KRN-" + strings.ToUpper(hex.EncodeToString(digest[:]))
	opened, err := kernel.OpenReceipt(text)
	if err != nil || r.Link() != link || opened.Link() != link || kernel.IDOf(link) != r.ID || kernel.IDOf(r.ID) != r.ID || kernel.IDOf("") != "" {
		t.Errorf("links %s and %s, want %s (%v)", r.Link(), opened.Link(), link, err)
	}
	parsed, err := kernel.ParseReceipt(text)
	if err != nil || parsed.Link() != link {
		t.Errorf("parsed only: link %s, %v", parsed.Link(), err)
	}
	tool := r
	tool.Tool = "shell"
	if _, err := tool.Seal(); err != nil || tool.ID[:4] != "TCR-" || tool.ID[4:] == r.ID[4:] {
		t.Errorf("sealed as a tool call: %s, %v", tool.ID, err)
	}
	tool.ID = "KRN-" + tool.ID[4:]
	if err := tool.CheckID(); !errors.Is(err, kernel.ErrReceiptID) {
		t.Errorf("the prefix of the other kind gives %v", err)
	}
}

// Every single bit of a sealed record counts. A flip leaves a record that does
// not parse, has another hash, or is written otherwise than canonically.
func TestEveryFlippedBitIsFound(t *testing.T) {
	t.Parallel()
	k := newKernel(t, kernel.DefaultPolicy())
	text := mustJSON(t, sealedReceipt(t, k))
	notOne, otherID := 0, 0
	for i := range text {
		for bit := range 8 {
			flipped := bytes.Clone(text)
			flipped[i] ^= 1 << bit
			switch _, err := kernel.OpenReceipt(flipped); {
			case errors.Is(err, kernel.ErrReceipt):
				notOne++
			case errors.Is(err, kernel.ErrReceiptID):
				otherID++
			default:
				t.Errorf("bit %d of byte %d flipped gives %v: %s", bit, i, err, flipped[max(0, i-30):min(len(text), i+30)])
			}
		}
	}
	t.Logf("%d bytes: %d are no receipt, %d have another id", len(text), notOne, otherID)
}

func TestParseReceiptIsStrict(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	text := string(mustJSON(t, sealedReceipt(t, k)))
	for name, bad := range map[string]string{
		"empty":             "",
		"null bytes":        "\x00",
		"an array":          "[]",
		"a string":          `"receipt"`,
		"truncated":         text[:len(text)-1],
		"trailing data":     text + "{}",
		"trailing letters":  text + "x",
		"unknown member":    `{"prompt":"secret",` + text[1:],
		"other case":        strings.Replace(text, `"severity"`, `"Severity"`, 1),
		"duplicate":         `{"severity":0,` + text[1:],
		"duplicate, nested": strings.Replace(text, `"bytes_inspected":0`, `"bytes_inspected":0,"bytes_inspected":1`, 1),
		"text for number":   strings.Replace(text, `"turn":3`, `"turn":"3"`, 1),
		"fraction for turn": strings.Replace(text, `"turn":3`, `"turn":3.5`, 1),
		"long triple":       strings.Replace(text, `"x":[`, `"x":[0,`, 1),
		"huge number":       strings.Replace(text, `"cusum":0.21`, `"cusum":1e999`, 1),
		"bad UTF-8":         strings.Replace(text, `"demo"`, "\"de\xffmo\"", 1),
		"lone surrogate":    strings.Replace(text, `"demo"`, `"\ud800"`, 1),
	} {
		if bad == text {
			t.Fatalf("%s: nothing was changed", name)
		}
		_, err := kernel.ParseReceipt([]byte(bad))
		if !errors.Is(err, kernel.ErrReceipt) {
			t.Errorf("%s: got %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error quotes the data: %v", name, err)
		}
	}
}

// Other spellings of the same record are read; only JSON's own are canonical.
func TestParseReceiptReadsOtherSpellings(t *testing.T) {
	r := sealedReceipt(t, newKernel(t, kernel.DefaultPolicy()))
	var spaced bytes.Buffer
	if err := stdjson.Indent(&spaced, mustJSON(t, r), "", "  "); err != nil {
		t.Fatal(err)
	}
	back, err := kernel.ParseReceipt(spaced.Bytes())
	if err != nil || back.CheckID() != nil || !bytes.Equal(mustJSON(t, back), mustJSON(t, r)) {
		t.Errorf("%v, %v", err, back.CheckID())
	}
}

func TestWhatHasNoCanonicalForm(t *testing.T) {
	for name, change := range map[string]func(*kernel.Receipt){
		"not a number":     func(r *kernel.Receipt) { r.DeltaV = math.NaN() },
		"infinite":         func(r *kernel.Receipt) { r.X[1] = math.Inf(1) },
		"bad UTF-8":        func(r *kernel.Receipt) { r.Model = "\xff" },
		"a huge timestamp": func(r *kernel.Receipt) { r.Timestamp = 1<<53 + 1 },
	} {
		r := sealedReceipt(t, newKernel(t, kernel.DefaultPolicy()))
		change(&r)
		if _, err := r.JSON(); !errors.Is(err, kernel.ErrReceipt) {
			t.Errorf("%s: JSON gives %v", name, err)
		}
		if _, err := r.Seal(); !errors.Is(err, kernel.ErrReceipt) {
			t.Errorf("%s: Seal gives %v", name, err)
		}
		if err := r.CheckID(); !errors.Is(err, kernel.ErrReceiptID) {
			t.Errorf("%s: CheckID gives %v", name, err)
		}
	}
}

func TestNegativeZeroIsWrittenZero(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	minus := math.Copysign(0, -1)
	s := k.NewSession()
	s.CUSUM, s.Carry = minus, kernel.Point{minus, minus, minus}
	e := kernel.Evidence{Scores: kernel.Scores{Identity: minus, Injection: minus}, ThreatSignal: minus}
	turn := take(t, k, s, e, kernel.Enforce, kernel.Output{Confidence: minus})
	for name, v := range map[string]float64{
		"cusum": turn.Before.CUSUM, "carry": turn.Before.Carry[0], "score": turn.Evidence.Scores.Identity,
		"threat": turn.Evidence.ThreatSignal, "confidence": turn.Output.Confidence, "severity": turn.Severity,
		"delta_V": turn.DeltaV, "z_shift": turn.ZShift, "pressure": turn.Pressure[2], "effort": turn.Effort,
		"sigma_viol": turn.SigmaViol, "lyapunov_V": turn.LyapunovV, "next cusum": turn.Next.CUSUM,
	} {
		if v != 0 || math.Signbit(v) {
			t.Errorf("%s is %v", name, v)
		}
	}
	r := kernel.Receipt{DeltaV: minus}
	if text := mustJSON(t, r); bytes.Contains(text, []byte("-0")) {
		t.Errorf("written as %s", text)
	}
}

func TestReceiptTellsWhatObserveWithheld(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	attack := scores(0.9, 0, 0, 0, 0, 0)
	for _, c := range []struct {
		mode         kernel.Mode
		evidence     kernel.Evidence
		refused      bool
		wouldRefuse  bool
		outcome      kernel.Outcome
		governorMode string
	}{
		{kernel.Enforce, attack, true, false, kernel.Refused, kernel.GovernorRefuse},
		{kernel.Observe, attack, false, true, kernel.Answered, kernel.GovernorObserve},
		{kernel.Enforce, kernel.Evidence{}, false, false, kernel.Answered, kernel.GovernorPass},
		{kernel.Observe, kernel.Evidence{}, false, false, kernel.Answered, kernel.GovernorObserve},
	} {
		r := k.Receipt(take(t, k, k.NewSession(), c.evidence, c.mode, kernel.Output{}))
		got := fmt.Sprint(r.Refused, r.WouldRefuse, r.Outcome, r.GovernorMode)
		if want := fmt.Sprint(c.refused, c.wouldRefuse, c.outcome, c.governorMode); got != want {
			t.Errorf("%s: %s, want %s", c.mode, got, want)
		}
		if (len(r.Reasons) > 0) != (r.Refused || r.WouldRefuse) {
			t.Errorf("%s: reasons %v", c.mode, r.Reasons)
		}
	}
}

// Each text of each receipt has a key of its own, and the key says nothing of others.
func TestCommitmentKeys(t *testing.T) {
	secret := bytes.Repeat([]byte{7}, 32)
	// Computed with hmac and hashlib of Python.
	const opening = "ce1009253b120cb34bc78aa56219c7534414b4648cbb88e25dbdc22a30f4a16d"
	key := kernel.CommitmentKey(secret, "4E0C3B1F7A2D9865", kernel.CommittedPrompt)
	if hex.EncodeToString(key) != opening {
		t.Errorf("the opening is %x", key)
	}
	commitment := kernel.Commit(key, "prompt")
	seen := map[string]bool{opening: true}
	for _, nonce := range []string{"4E0C3B1F7A2D9865", "4E0C3B1F7A2D9865.1", ""} {
		for _, of := range []kernel.Committed{kernel.CommittedPrompt, kernel.CommittedOutput, kernel.CommittedArguments} {
			other := hex.EncodeToString(kernel.CommitmentKey(secret, nonce, of))
			if own := of == kernel.CommittedPrompt && nonce == "4E0C3B1F7A2D9865"; own != seen[other] || own != kernel.Opens(other, "prompt", commitment) {
				t.Errorf("the opening of %s with the nonce %q is %s", of, nonce, other)
			}
			seen[other] = true
		}
	}
	for _, wrong := range []string{"", opening[:62], opening + "00", strings.ToUpper(opening), hex.EncodeToString(secret), strings.Repeat("g", 64)} {
		if kernel.Opens(wrong, "prompt", commitment) {
			t.Errorf("%q opens it", wrong)
		}
	}
	if kernel.Opens(opening, "Prompt", commitment) || kernel.Opens(opening, "prompt", "") {
		t.Error("the opening opens another text or nothing")
	}
}

// Receipts without a setup committed with the session's secret itself.
func TestCommitsTo(t *testing.T) {
	secret := bytes.Repeat([]byte{7}, 32)
	r := kernel.Receipt{Nonce: "n", PromptCommitment: kernel.Commit(secret, "prompt")}
	r.OutputCommitment = kernel.Commit(kernel.CommitmentKey(secret, "n", kernel.CommittedOutput), "output")
	if !r.CommitsTo("prompt", kernel.CommittedPrompt, secret) || !r.CommitsTo("output", kernel.CommittedOutput, secret) {
		t.Error("an older receipt")
	}
	r.Setup = strings.Repeat("0", 64)
	if r.CommitsTo("prompt", kernel.CommittedPrompt, secret) || !r.CommitsTo("output", kernel.CommittedOutput, secret) {
		t.Error("a receipt with a setup")
	}
	if r.CommitsTo("", kernel.CommittedArguments, secret) || r.CommitsTo("output", "another", secret) {
		t.Error("a text that there is not")
	}
}

func TestCommit(t *testing.T) {
	// RFC 4231, test case 2.
	const want = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
	if got := kernel.Commit([]byte("Jefe"), "what do ya want for nothing?"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSealReturnsTheRecord(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	r := sealedReceipt(t, k)
	blank := kernel.PrefixText + strings.Repeat("0", 32)
	r.Dialect, r.Endpoint = blank, `"id":"`+blank+`"` // they stand before the id
	for _, id := range []string{"", r.ID, "short", strings.Repeat("long", 50)} {
		r.ID = id
		record, err := r.Seal()
		if err != nil {
			t.Fatal(err)
		}
		if want := mustJSON(t, r); string(record) != string(want) {
			t.Errorf("sealed over the id %q: the record is\n%s, want\n%s", id, record, want)
		}
		if err := r.CheckID(); err != nil {
			t.Errorf("sealed over the id %q: %v", id, err)
		}
	}
}
