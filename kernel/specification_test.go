package kernel_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/note"

	"github.com/caddy-lex/lex/kernel"
)

// The vectors of docs/receipts.md, section 23. Each test makes its file anew and compares,
// so a file cannot go stale; examples/verify checks itself against the same files.

// rows writes a vector a line, so that a change shows as such.
func rows[V any](t *testing.T, vectors []V) []byte {
	t.Helper()
	var out [][]byte
	for _, v := range vectors {
		row := new(bytes.Buffer)
		e := json.NewEncoder(row)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
		out = append(out, bytes.TrimSpace(row.Bytes()))
	}
	return slices.Concat([]byte("[\n"), bytes.Join(out, []byte(",\n")), []byte("\n]\n"))
}

func TestPolicyVector(t *testing.T) {
	text, err := kernel.DefaultPolicy().JSON()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "policy.json", text)
}

// canonicalVector is a number, or a document in any form, with its canonical JSON.
type canonicalVector struct {
	Number *hex64 `json:"number,omitempty"`
	JSON   string `json:"json,omitempty"`
	Want   string `json:"want"`
}

func TestCanonicalVectors(t *testing.T) {
	r := newRandom(51)
	numbers := []float64{
		0, math.Copysign(0, -1), 1, -1, 0.1, 1.0 / 3, 0.08, 1e-6, 9.999999999999999e-7, 1e-7, 123456789, 1e20, 1e21, 999999999999999900000,
		1 << 53, 5e-324, 2.2250738585072014e-308, math.MaxFloat64, -math.MaxFloat64, 1700000000000, 0.000001234, 333333333.33333329, 4.5, 2e-3,
	}
	for range 200 {
		numbers = append(numbers, r.Float64(), r.NormFloat64()*math.Pow(10, float64(r.IntN(60)-30)))
	}
	var vectors []canonicalVector
	for _, n := range numbers {
		r := kernel.Receipt{Severity: n}
		_, after, _ := strings.Cut(string(mustJSON(t, r)), `"severity":`)
		want, _, _ := strings.Cut(after, ",")
		vectors = append(vectors, canonicalVector{Number: new(hex64(n)), Want: want})
	}
	for _, text := range []string{
		`{"b":1,"a":[true,false,null,-0,1E2]}`, `{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}`,
		`"\u0000\u001f\b\t\n\f\r\"\\\/ \u007f\u00e9\u2028<>&'\ud83d\ude00"`,
	} {
		v := jsontext.Value(text)
		if err := v.Canonicalize(); err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, canonicalVector{JSON: text, Want: string(v)})
	}
	golden(t, "canonical.json", rows(t, vectors))
}

func TestArithmeticVectors(t *testing.T) {
	r := newRandom(52)
	var out struct {
		Exp        [][]hex64 `json:"exp"`
		Ln         [][]hex64 `json:"ln"`
		Softmax    [][]any   `json:"softmax"`
		Project    [][]any   `json:"project"`
		Divergence [][]any   `json:"divergence"`
	}
	for _, x := range []float64{0, 1, -1, 0.34657359027997264, -0.34657359027997264, 700, -700, 1e-300, -1e-17} {
		out.Exp = append(out.Exp, []hex64{hex64(x), hex64(kernel.Exp(x))})
	}
	for _, x := range []float64{1, math.Sqrt2 / 2, math.Nextafter(math.Sqrt2/2, 0), math.Sqrt2, 1.0 / 3, 2, 1e-300, math.MaxFloat64, 0x1p-1022} {
		out.Ln = append(out.Ln, []hex64{hex64(x), hex64(kernel.Log(x))})
	}
	for range 60 {
		x, y := r.Float64()*1400-700, math.Exp(r.NormFloat64()*40)
		out.Exp, out.Ln = append(out.Exp, []hex64{hex64(x), hex64(kernel.Exp(x))}), append(out.Ln, []hex64{hex64(y), hex64(kernel.Log(y))})
		v := kernel.Point{-6 * r.Float64(), r.pick(-60, 0, 0, -0.5), r.pick(-230, 0, 0, -0.5)}
		p, ln := kernel.Softmax(v)
		out.Softmax = append(out.Softmax, []any{hexes(v), []hexPoint{hexes(p), hexes(ln)}})
		floor := r.pick(0.001, 0.333, 0.08, 0.332)
		out.Project = append(out.Project, []any{hexes(p), hex64(floor), hexes(kernel.Project(p, floor))})
		z, q := r.simplex(0.01), r.simplex(0.001)
		out.Divergence = append(out.Divergence, []any{hexes(z), hexes(q), hex64(kernel.Divergence(z, q))})
	}
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "arithmetic.json", append(bytes.ReplaceAll(text, []byte("],["), []byte("],\n[")), '\n'))
}

type commitmentVector struct {
	Secret     string `json:"secret"`
	Nonce      string `json:"nonce"`
	Info       string `json:"info"`
	Opening    string `json:"opening"`
	Text       string `json:"text"`
	Commitment string `json:"commitment"`
}

func TestCommitmentVectors(t *testing.T) {
	var vectors []commitmentVector
	for i, text := range []string{"What is the capital of France?", "", "é\u2028😀\x00\n", `{"command":"rm -rf /"}`, strings.Repeat("long ", 50)} {
		secret := sha256.Sum256([]byte{byte(i)})
		for _, of := range []kernel.Committed{kernel.CommittedPrompt, kernel.CommittedOutput, kernel.CommittedArguments} {
			v := commitmentVector{Secret: hex.EncodeToString(secret[:]), Nonce: "WZQ3H7LTVPBXN2K5YFJ6CDGMRA", Info: "lex/1 " + string(of), Text: text}
			key := kernel.CommitmentKey(secret[:], v.Nonce, of)
			v.Opening = hex.EncodeToString(key)
			if text != "" {
				v.Commitment = kernel.Commit(key, text)
			}
			vectors = append(vectors, v)
		}
	}
	golden(t, "commitments.json", rows(t, vectors))
}

// merkle is the tree hash of RFC 6962 as its section 2.1 defines it.
func merkle(records []string) []byte {
	hash := func(parts ...[]byte) []byte {
		sum := sha256.Sum256(slices.Concat(parts...))
		return sum[:]
	}
	switch n := len(records); n {
	case 0:
		return hash()
	case 1:
		return hash([]byte{0}, []byte(records[0]))
	default:
		k := 1 << (bits.Len(uint(n-1)) - 1)
		return hash([]byte{1}, merkle(records[:k]), merkle(records[k:]))
	}
}

// signed signs a checkpoint with a key that everybody may know.
func signed(t *testing.T, text string) (head, verifier string) {
	t.Helper()
	origin, _, _ := strings.Cut(text, "\n")
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	verifier, err := note.NewEd25519VerifierKey(origin, private.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	_, hash, _ := strings.Cut(strings.TrimPrefix(verifier, origin), "+")
	hash, _, _ = strings.Cut(hash, "+")
	seed := base64.StdEncoding.EncodeToString(append([]byte{1}, private.Seed()...)) // 1 is Ed25519
	signer, err := note.NewSigner("PRIVATE+KEY+" + origin + "+" + hash + "+" + seed)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := note.Sign(&note.Note{Text: text}, signer)
	if err != nil {
		t.Fatal(err)
	}
	return string(sealed), verifier
}

func TestLogVectors(t *testing.T) {
	out := struct {
		Records []string `json:"records"`
		Roots   []string `json:"roots"` // of the first 0, 1, 2 … records
		Signed  string   `json:"signed_head"`
		Key     string   `json:"verifier_key"`
	}{Records: []string{}}
	for n := range 34 {
		if n > 0 {
			out.Records = append(out.Records, fmt.Sprintf(`{"record":%d}`, n))
		}
		out.Roots = append(out.Roots, base64.StdEncoding.EncodeToString(merkle(out.Records)))
	}
	last := sha256.Sum256([]byte(out.Records[32]))
	out.Signed, out.Key = signed(t, fmt.Sprintf("lex.example/log\n33\n%s\nlast %x\ntime 2026-01-02T03:04:05Z\n", out.Roots[33], last))
	text, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "log.json", append(text, '\n'))
}

// A journal is an export with receipts of every kind.
type journal struct {
	t        *testing.T
	out      bytes.Buffer
	policies map[string]bool
	receipts []kernel.Receipt
	last     string // the hash of the last record
}

// add seals the receipt of a turn and writes it down.
func (j *journal) add(k *kernel.Kernel, r kernel.Receipt) kernel.Receipt {
	j.t.Helper()
	if _, err := r.Seal(); err != nil {
		j.t.Fatal(err)
	}
	if !j.policies[k.PolicyHash()] {
		text, err := k.Policy().JSON()
		if err != nil {
			j.t.Fatal(err)
		}
		fmt.Fprintf(&j.out, "{\"policy\":%s}\n", text)
		j.policies[k.PolicyHash()] = true
	}
	if r.Setup != "" && len(j.receipts) == 0 {
		fmt.Fprintf(&j.out, "{\"setup\":%s}\n", setup)
	}
	record := mustJSON(j.t, r)
	j.receipts = append(j.receipts, r)
	fmt.Fprintf(&j.out, "{\"seq\":%d,\"log_prev\":%q,\"receipt\":%s}\n", len(j.receipts), j.last, record)
	sum := sha256.Sum256(record)
	j.last = hex.EncodeToString(sum[:])
	return r
}

// setup is the document that the receipts name.
const setup = `{"code":{"go":"go1.26","pipeline":"lex-go/0.1.0","version":"v0.1.0"},"detector":{"model":"0123456789ab","name":"local","sha256":"0123456789ab"}}`

// A dialogue is one session, or one branch of one.
type dialogue struct {
	j      *journal
	k      *kernel.Kernel
	mode   kernel.Mode
	name   string
	resent bool
	older  bool // from before there were setups, when links were ids
	s      kernel.Session
	prev   string
	turns  int
}

func (j *journal) begin(k *kernel.Kernel, name string, m kernel.Mode) *dialogue {
	return &dialogue{j: j, k: k, mode: m, name: name, s: k.NewSession()}
}

// branch is the dialogue as it stands, to go on in two ways.
func (d *dialogue) branch() *dialogue {
	b := *d
	return &b
}

// write dresses a turn as a service does and writes its receipt.
func (d *dialogue) write(turn kernel.Turn, change func(*kernel.Receipt)) {
	d.j.t.Helper()
	r := d.k.Receipt(turn)
	n := len(d.j.receipts)
	r.SessionID, r.Turn, r.Timestamp, r.Prev, r.Resent = d.name, max(1, d.turns), 1_700_000_000_000+int64(1000*n), d.prev, d.resent
	r.Nonce, r.Version, r.Endpoint, r.Dialect, r.Model = fmt.Sprintf("NONCE%021d", n), "lex-go/0.1.0", "lex/govern", "lex", "m"
	if !d.older {
		r.Setup = fmt.Sprintf("%x", sha256.Sum256([]byte(setup)))
	}
	secret := []byte(strings.Repeat("s", 32))
	commit := func(of kernel.Committed, text string) string {
		return kernel.Commit(kernel.CommitmentKey(secret, r.Nonce, of), text)
	}
	if r.Tool != "" {
		r.ArgumentsCommitment = commit(kernel.CommittedArguments, `{"n":1}`)
	} else {
		r.PromptCommitment, r.OutputCommitment = commit(kernel.CommittedPrompt, "a prompt"), commit(kernel.CommittedOutput, "an answer")
	}
	r.Coverage = kernel.Coverage{
		Detectors: []kernel.DetectorRun{{Name: "local", Outcome: kernel.Clean}, {Name: "local_judge", Outcome: kernel.NotRun, Why: "no output text"}},
		Inspected: []kernel.CoveredPart{{Part: "request.prompt", Detector: "local", Bytes: 8}}, BytesInspected: 8,
	}
	if change != nil {
		change(&r)
	}
	r = d.j.add(d.k, r)
	if d.s, d.prev = turn.Next, r.Link(); d.older {
		d.prev = r.ID
	}
}

func (d *dialogue) say(e kernel.Evidence, o kernel.Output) {
	d.j.t.Helper()
	if !e.Repeated {
		d.turns++
	}
	d.write(take(d.j.t, d.k, d.s, e, d.mode, o), nil)
}

func (d *dialogue) call(c kernel.ToolCall, s kernel.Scores) {
	d.j.t.Helper()
	d.write(record(d.j.t, d.k, d.s, c, s, d.mode), nil)
}

// everyKind writes a receipt of every kind.
func everyKind(t *testing.T) *journal {
	j := &journal{t: t, policies: map[string]bool{}}
	k := newKernel(t, kernel.DefaultPolicy())
	none, attack := kernel.Output{}, kernel.Evidence{Scores: kernel.Scores{Identity: 0.65}}
	evidence := func(s kernel.Scores) kernel.Evidence { return kernel.Evidence{Scores: s} }

	plain := j.begin(k, "plain", kernel.Enforce)
	for range 3 {
		plain.say(evidence(kernel.Scores{HarmRequest: 0.02}), none)
	}
	plain.say(evidence(kernel.Scores{Sycophancy: 0.45}), none) // watched
	plain.say(kernel.Evidence{}, none)

	for _, mode := range []kernel.Mode{kernel.Enforce, kernel.Observe} {
		d := j.begin(k, "reasons "+string(mode), mode)
		d.say(kernel.Evidence{DeniedBy: "no-<weapons> & \u2028 \"é\""}, none)
		d.say(evidence(kernel.Scores{HarmRequest: 0.9}), none)
		d.say(kernel.Evidence{Scores: kernel.Scores{Coercion: 0.4}, ThreatSignal: 0.4}, none) // not severe enough
		d.say(kernel.Evidence{Scores: kernel.Scores{Coercion: 0.56}, ThreatSignal: 0.4}, none)
		d.say(kernel.Evidence{Scores: kernel.Scores{Injection: 0.4}, SovereigntyDrift: true}, none)
		d.say(kernel.Evidence{Standing: []kernel.Reason{kernel.SemanticClassifier}}, none)
		d.say(kernel.Evidence{}, kernel.Output{Capitulated: true, Category: kernel.HarmfulCompliance, Confidence: 0.7, LostThread: true})
		d.say(kernel.Evidence{}, kernel.Output{Capitulated: true, Category: kernel.IdentityAdoption, Confidence: 1})
		d.say(kernel.Evidence{}, none)
		for range 6 {
			d.say(attack, none) // over the floor
		}
		drip := j.begin(k, "drip "+string(mode), mode)
		for range 12 {
			drip.say(evidence(kernel.Scores{Exploitative: 0.45}), none)
		}
		drip.say(evidence(kernel.Scores{Exploitative: 0.95}), none)
		apart := j.begin(k, "apart "+string(mode), mode)
		for i := range 24 {
			apart.say(evidence(kernel.Scores{HarmRequest: []float64{0.6, 0, 0}[i%3]}), none)
		}
	}

	several := j.begin(k, "several", kernel.Enforce)
	several.say(evidence(kernel.Scores{Coercion: 0.55, HarmRequest: 0.6}), none)
	several.say(evidence(kernel.Scores{Coercion: 0.35, HarmRequest: 0.6}), none)
	several.say(kernel.Evidence{Scores: kernel.Scores{HarmRequest: 0.55}, Degraded: true}, none)
	several.say(kernel.Evidence{Scores: kernel.Scores{HarmRequest: 0.2}, Degraded: true}, none)

	again := j.begin(k, "again", kernel.Enforce)
	failed := func(r *kernel.Receipt) { r.Outcome, r.OutputCommitment = kernel.ProviderFailed, "" }
	again.turns++
	again.write(take(t, k, again.s, evidence(kernel.Scores{Identity: 0.5}), kernel.Enforce, none), failed)
	again.say(kernel.Evidence{Scores: kernel.Scores{Identity: 0.5}, Repeated: true}, kernel.Output{LostThread: true})
	again.say(kernel.Evidence{Scores: kernel.Scores{Identity: 0.8}, Repeated: true}, none)

	tools := j.begin(k, "tools", kernel.Enforce)
	tools.say(kernel.Evidence{}, kernel.Output{LostThread: true}) // calls leave its carry alone
	tools.call(kernel.ToolCall{Tool: "get_weather", Effect: kernel.ToolReads}, kernel.Scores{})
	tools.call(kernel.ToolCall{Tool: "pay", Effect: kernel.ToolSends, HighRisk: true, Provenance: kernel.FromUser, Flagged: "injected_action"}, kernel.Scores{})
	tools.call(kernel.ToolCall{Tool: "shell", Effect: kernel.ToolWrites, HighRisk: true, Invariant: "destructive_command", Provenance: kernel.FromModel}, kernel.Scores{HarmRequest: 0.6})
	tools.call(kernel.ToolCall{Tool: "pay", Effect: kernel.ToolSends, HighRisk: true}, kernel.Scores{}) // session risk
	tools.call(kernel.ToolCall{Tool: "pay", Effect: kernel.ToolSends, HighRisk: true, Rule: "no-payments"}, kernel.Scores{})
	tools.call(kernel.ToolCall{Tool: "odd", Invariant: "malformed_arguments"}, kernel.Scores{})
	for range 4 {
		tools.call(kernel.ToolCall{Tool: "mail", Effect: kernel.ToolSends, Invariant: "data_exfiltration", Provenance: kernel.FromInstruction}, kernel.Scores{Injection: 0.65})
	}
	for _, effect := range []kernel.ToolEffect{"", kernel.ToolReads, kernel.ToolWrites, kernel.ToolSends, kernel.ToolOther} {
		tools.call(kernel.ToolCall{Tool: "at_the_barrier", Effect: effect, Provenance: kernel.FromUntrusted}, kernel.Scores{})
	}
	tools.call(kernel.ToolCall{Tool: "write_note", Effect: kernel.ToolWrites, Standalone: true}, kernel.Scores{}) // denied: no step
	for range 5 {
		tools.call(kernel.ToolCall{Tool: "get_weather", Effect: kernel.ToolReads, Standalone: true}, kernel.Scores{})
	}
	tools.say(kernel.Evidence{}, none)

	watched := j.begin(k, "watched tools", kernel.Observe)
	watched.call(kernel.ToolCall{Tool: "shell", Effect: kernel.ToolWrites, Invariant: "destructive_command"}, kernel.Scores{HarmRequest: 0.85})
	watched.call(kernel.ToolCall{Tool: "pay", Effect: kernel.ToolSends, HighRisk: true}, kernel.Scores{})

	trunk := j.begin(k, "resent", kernel.Enforce)
	trunk.resent = true
	trunk.say(evidence(kernel.Scores{Identity: 0.4}), none)
	left, right := trunk.branch(), trunk.branch()
	left.say(kernel.Evidence{}, none)
	right.say(attack, none)
	left.call(kernel.ToolCall{Tool: "get_weather", Effect: kernel.ToolReads}, kernel.Scores{})
	left.say(kernel.Evidence{}, none)

	narrow := kernel.DefaultPolicy()
	narrow.Floor, narrow.Tau, narrow.Recovery, narrow.Eta, narrow.Kappa, narrow.Rho, narrow.CUSUMH = 0.1, 0.17, 0.2, 31, 0.2, 0.07, 0.5
	moved := j.begin(k, "moved", kernel.Enforce)
	for range 3 {
		moved.say(evidence(kernel.Scores{Coercion: 0.5}), kernel.Output{LostThread: true})
	}
	moved.k = newKernel(t, narrow)
	moved.say(evidence(kernel.Scores{Coercion: 0.4}), none)
	moved.say(kernel.Evidence{}, none)
	moved.k = k
	moved.call(kernel.ToolCall{Tool: "get_weather", Effect: kernel.ToolReads}, kernel.Scores{})

	// A policy of before there was a revision; then the session moves to the new rules, and back.
	old := newKernel(t, revision0(kernel.DefaultPolicy()))
	aged := j.begin(old, "aged", kernel.Enforce)
	aged.older = true
	for i := range 16 {
		aged.say(kernel.Evidence{Scores: kernel.Scores{Exploitative: []float64{0.45, 0.62}[i%2]}, ThreatSignal: 0.1 * float64(i%3)}, none)
	}
	aged.say(kernel.Evidence{}, kernel.Output{Capitulated: true, Category: kernel.ConstraintDisavowal, Confidence: 0.9})
	aged.say(attack, none)
	aged.call(kernel.ToolCall{Tool: "shell", Effect: kernel.ToolWrites, Invariant: "destructive_command"}, kernel.Scores{HarmRequest: 0.7})
	aged.k, aged.older = k, false
	for range 6 {
		aged.say(evidence(kernel.Scores{Exploitative: 0.6}), none)
	}
	aged.k = old
	aged.say(evidence(kernel.Scores{Exploitative: 0.6}), none)

	// A refused turn leaves the pressure of the answer before it.
	kept := j.begin(k, "kept", kernel.Enforce)
	kept.say(kernel.Evidence{}, kernel.Output{Capitulated: true, Category: kernel.HarmfulCompliance, Confidence: 0.8, LostThread: true})
	kept.say(evidence(kernel.Scores{HarmRequest: 0.9}), none)
	kept.say(kernel.Evidence{Scores: kernel.Scores{HarmRequest: 0.9}, Repeated: true}, none)
	kept.say(kernel.Evidence{Standing: []kernel.Reason{kernel.CapitulatedOutput}}, none)
	kept.say(kernel.Evidence{}, none)
	kept.say(kernel.Evidence{}, none)

	unread := j.begin(k, "unread", kernel.Enforce)
	unread.say(kernel.Evidence{Scores: kernel.Scores{Coercion: 0.45}}, kernel.Output{LostThread: true})
	unread.say(kernel.Evidence{Unassessed: true}, none)
	unread.say(kernel.Evidence{Unassessed: true, DeniedBy: "unknown_block"}, none)
	unread.say(kernel.Evidence{Unassessed: true}, kernel.Output{Capitulated: true, Category: kernel.HarmfulCompliance, Confidence: 0.6})
	unread.say(kernel.Evidence{}, none)

	ends := j.begin(k, "ends", kernel.Enforce)
	for _, outcome := range []kernel.Outcome{kernel.ClientGone, kernel.Aborted, kernel.Failed, kernel.Refused} {
		ends.turns++
		ends.write(take(t, k, ends.s, kernel.Evidence{}, kernel.Enforce, none), func(r *kernel.Receipt) {
			r.Outcome, r.Model, r.TraceID = outcome, "sha256:0123456789abcdef", "4bf92f3577b34da6a3ce929d0e0e4736"
			r.Coverage = kernel.Coverage{
				Detectors: []kernel.DetectorRun{
					{Name: "local", Outcome: kernel.DetectorFailed, Why: "timeout"},
					{Name: "guard_classifier.prompt", Outcome: kernel.Flagged, Score: 0.913046, Millis: 42},
					{Name: "guard_moderation.prompt", Outcome: kernel.NotRun, Why: "over its budget"},
				},
				Redacted: []kernel.SkippedPart{{Part: "request.messages.0.content", Why: "refused when it was new", Bytes: 9}},
				Skipped:  []kernel.SkippedPart{{Part: "request.image", Why: "image", Bytes: 9}},
				Unknown:  []kernel.SkippedPart{{Part: "request.x", Why: "not known to the dialect", Bytes: 9}},
			}
		})
	}

	// What decides on these changes with each of their inputs.
	eventful := j.begin(k, "eventful", kernel.Enforce)
	eventful.say(attack, kernel.Output{LostThread: true})
	eventful.say(evidence(kernel.Scores{Coercion: 0.6}), kernel.Output{Capitulated: true, Category: kernel.IdentityAdoption, Confidence: 0.7})
	eventful.call(kernel.ToolCall{
		Tool: "pay", Effect: kernel.ToolSends, HighRisk: true, Invariant: "transfer_out_of_bounds", Provenance: kernel.FromModel, Flagged: "injected_action",
	}, kernel.Scores{Injection: 0.6})
	eventful.call(kernel.ToolCall{Tool: "pay", Effect: kernel.ToolSends, HighRisk: true, Rule: "no-payments"}, kernel.Scores{})
	eventful.call(kernel.ToolCall{Tool: "get_weather", Effect: kernel.ToolReads, Standalone: true}, kernel.Scores{})
	eventful.say(kernel.Evidence{}, none)

	r := newRandom(53)
	chance := j.begin(k, "chance", kernel.Enforce)
	for range 40 {
		chance.say(r.evidence(), r.output())
	}
	for i := range 6 {
		wild := j.begin(newKernel(t, r.wildPolicy(i%2)), fmt.Sprint("wild ", i), kernel.Enforce)
		for range 12 {
			wild.say(r.evidence(), r.output())
			if call, scores := r.toolStep(); r.IntN(3) == 0 {
				wild.call(call, scores)
			}
		}
	}
	return j
}

// wildPolicy is any policy of a revision.
func (r random) wildPolicy(revision int) kernel.Policy {
	p := r.policy()
	p.Revision, p.SevereAt, p.ThreatSeverity = revision, 0.3+0.7*r.Float64(), r.pick(0, 1, 0)
	p.CUSUMK, p.CUSUMH, p.CUSUMRelief = r.Float64(), 3*r.Float64(), r.Float64()
	p.CUSUMSlowK, p.CUSUMSlowH, p.CUSUMSlowRelief = r.Float64(), 3*r.Float64(), r.Float64()
	if r.IntN(3) == 0 {
		p.CUSUMSlowK, p.CUSUMSlowH, p.CUSUMSlowRelief = 0, 0, 0
	}
	return p
}

// The export has every kind of receipt, each of which replays and stands in its chain.
func TestReceiptVectors(t *testing.T) {
	j := everyKind(t)
	golden(t, "receipts.jsonl", j.out.Bytes())
	kernels := map[string]*kernel.Kernel{}
	for line := range strings.Lines(j.out.String()) {
		if text, isPolicy := strings.CutPrefix(strings.TrimSpace(line), `{"policy":`); isPolicy {
			p, err := kernel.ParsePolicy([]byte(strings.TrimSuffix(text, "}")))
			if err != nil {
				t.Fatal(err)
			}
			kernels[p.Hash()] = newKernel(t, p)
		}
	}
	seen := map[string]bool{}
	see := func(name string, value any) { seen[fmt.Sprint(name, " ", value)] = true }
	var chain kernel.Chain
	for _, r := range j.receipts {
		if err := kernels[r.Policy].Replay(r); err != nil {
			t.Errorf("%s %d: %v", r.SessionID, r.Turn, err)
		}
		if err := chain.Add(kernels[r.Policy], r); err != nil {
			t.Error(err)
		}
		for _, reason := range r.Reasons {
			see("reason "+string(r.Mode), reason)
		}
		for name, value := range map[string]any{
			"type": r.AttackType, "band": r.Band, "label": r.Label, "mode": r.GovernorMode, "outcome": r.Outcome, "migrated": r.Migrated,
			"repeated": r.Repeated, "resent": r.Resent, "degraded": r.Degraded, "carry": r.Carry != kernel.Point{}, "flagged": r.Flagged != "", "traced": r.TraceID != "",
			"standing": len(r.Standing) > 0, "would refuse": r.WouldRefuse, "standalone " + string(r.Decision): r.Standalone,
			"effect " + string(r.Effect): r.Decision, "invariant": r.Invariant, "rule": r.Rule, "provenance": r.Provenance,
			"scores " + string(r.Decision): r.Scores != kernel.Scores{}, "decision " + string(r.Mode): r.Decision,
			"revision": kernels[r.Policy].Policy().Revision, "judged by the floor": r.MFloor > 0,
			"slow chart alone": r.SlowDrip && r.CUSUMSlowNext == kernels[r.Policy].Policy().CUSUMSlowH && r.CUSUMNext < kernels[r.Policy].Policy().CUSUMH,
			"carry kept":       r.Refused && r.Tool == "" && r.Carry != kernel.Point{} && r.CarryNext == r.Carry, "refused by the floor alone": slices.Equal(r.Reasons, []kernel.Reason{kernel.ConstitutionalFloor}),
		} {
			see(name, value)
		}
	}
	for _, kind := range []string{
		"reason enforce operator_policy", "reason enforce semantic_classifier", "reason enforce contrastive_threat", "reason enforce slow_drip",
		"reason enforce sovereignty_drift", "reason enforce constitutional_floor", "reason enforce capitulation", "reason observe constitutional_floor",
		"type identity", "type coercion", "type exploitative", "type harm_request", "type sycophancy", "type multi", "type slow_drip", "type none",
		"band OPTIMAL", "band ALERT", "band STRESSED", "band CRITICAL", "label CLEAR", "label WATCH", "label THREAT", "label UNASSESSED",
		"mode observe", "mode refuse", "mode correct", "mode pass", "migrated true", "repeated true", "resent true", "degraded true", "carry true",
		"outcome answered", "outcome refused", "outcome provider_failed", "outcome client_gone", "outcome aborted", "outcome failed",
		"flagged true", "traced true", "standing true", "would refuse true", "standalone approved true", "standalone blocked true", "effect read approved",
		"effect write blocked", "effect send blocked", "effect other blocked", "effect  approved", "invariant session_risk", "rule no-payments",
		"provenance user", "provenance model", "provenance untrusted", "provenance instruction", "scores blocked true", "scores approved true",
		"decision observe approved", "revision 0", "revision 1", "judged by the floor true", "slow chart alone true", "carry kept true",
		"refused by the floor alone true",
	} {
		if !seen[kind] {
			t.Errorf("no receipt has %q", kind)
		}
	}
	if t.Failed() {
		t.Log(slices.Sorted(func(yield func(string) bool) {
			for kind := range seen {
				if !yield(kind) {
					return
				}
			}
		}))
	}
}
