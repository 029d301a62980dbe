package kernel_test

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

// What somebody who writes receipts can change in them unnoticed. He knows all of this
// package and the secrets of the sessions: he changes a member, computes everything anew
// that can be computed, also what the session left, and seals the receipt. He cannot change
// the receipts before, of which others have copies, nor the texts.
//
// The class of a member is the check that notices any other value of it all the same, the
// weakest of those that he cannot avoid: form, replay, chain or commitment. Where he
// avoids all of them the value is merely asserted by the service.
func TestClassesOfMembers(t *testing.T) {
	s := newScene(t)
	order := []string{"form", "replay", "chain", "commitment", "asserted"}
	var lines []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[kernel.Receipt]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		weakest := -1
		for _, original := range s.originals {
			for _, forged := range s.forgeries(original, field) {
				weakest = max(weakest, slices.Index(order, s.noticed(original, forged)))
			}
		}
		if weakest < 0 {
			t.Fatalf("%s was not changed", name)
		}
		lines = append(lines, name+" "+order[weakest])
	}
	slices.Sort(lines)
	golden(t, "receipt_classes.txt", []byte(strings.Join(lines, "\n")+"\n"))
}

// A scene has receipts of all kinds that follow those of one session.
type scene struct {
	before    []kernel.Receipt
	originals []kernel.Receipt
	kernels   map[string]*kernel.Kernel
	secret    []byte
}

// The texts that receipts of a scene commit to.
var committed = map[kernel.Committed]string{
	kernel.CommittedPrompt: "What?", kernel.CommittedOutput: "That.", kernel.CommittedArguments: "{}",
}

func newScene(t *testing.T) *scene {
	t.Helper()
	k := newKernel(t, kernel.DefaultPolicy())
	p := kernel.DefaultPolicy()
	p.Tau, p.Recovery = 0.14, 0.2
	other := newKernel(t, p)
	s := &scene{kernels: map[string]*kernel.Kernel{k.PolicyHash(): k, other.PolicyHash(): other}, secret: bytes.Repeat([]byte{7}, 32)}
	state, prev := k.NewSession(), ""
	for _, e := range []kernel.Evidence{scores(0.45, 0, 0, 0.3, 0, 0), scores(0.6, 0.2, 0, 0, 0, 0)} {
		turn := take(t, k, state, e, kernel.Observe, kernel.Output{Capitulated: true, Category: kernel.IdentityAdoption, Confidence: 0.8})
		r := s.receipt(t, k, turn, prev)
		s.before = append(s.before, r)
		state, prev = turn.Next, r.Link()
	}
	add := func(k *kernel.Kernel, turn kernel.Turn) {
		s.originals = append(s.originals, s.receipt(t, k, turn, prev))
	}
	text := func(k *kernel.Kernel, e kernel.Evidence, m kernel.Mode, o kernel.Output) {
		add(k, take(t, k, state, e, m, o))
	}
	call := func(c kernel.ToolCall, scores kernel.Scores, m kernel.Mode) {
		add(k, record(t, k, state, c, scores, m))
	}
	text(k, kernel.Evidence{}, kernel.Enforce, kernel.Output{})
	text(k, kernel.Evidence{}, kernel.Observe, kernel.Output{LostThread: true})
	text(k, scores(0.4, 0.1, 0, 0, 0, 0.2), kernel.Enforce, kernel.Output{})
	text(k, scores(0.9, 0.1, 0, 0, 0, 0.2), kernel.Enforce, kernel.Output{})
	text(k, scores(0.9, 0.1, 0, 0, 0, 0.2), kernel.Observe, kernel.Output{Capitulated: true, Category: kernel.IdentityAdoption, Confidence: 0.8})
	text(k, kernel.Evidence{ThreatSignal: 0.2, DeniedBy: "rule", Standing: []kernel.Reason{kernel.SlowDripAlarm}, SovereigntyDrift: true}, kernel.Enforce, kernel.Output{})
	text(k, kernel.Evidence{Repeated: true}, kernel.Enforce, kernel.Output{})
	text(k, kernel.Evidence{Unassessed: true}, kernel.Enforce, kernel.Output{})
	text(other, scores(0.4, 0, 0, 0, 0, 0), kernel.Enforce, kernel.Output{})
	call(kernel.ToolCall{Tool: "read", Effect: kernel.ToolReads, Provenance: kernel.FromUser}, kernel.Scores{}, kernel.Enforce)
	call(kernel.ToolCall{Tool: "read", Effect: kernel.ToolReads, Standalone: true}, kernel.Scores{}, kernel.Enforce)
	call(kernel.ToolCall{Tool: "send", Effect: kernel.ToolSends, HighRisk: true}, kernel.Scores{}, kernel.Enforce)
	call(kernel.ToolCall{Tool: "send", Invariant: "exfiltration", Rule: "no-mail", Flagged: "x"}, kernel.Scores{Injection: 0.8}, kernel.Enforce)
	call(kernel.ToolCall{Tool: "send", Invariant: "exfiltration"}, kernel.Scores{Injection: 0.8}, kernel.Observe)
	for _, r := range s.originals {
		if by := s.noticed(r, r); by != "asserted" {
			t.Fatalf("%+v is refused by %s", r, by)
		}
	}
	return s
}

// receipt is the sealed record of a turn as a service would make it.
func (s *scene) receipt(t *testing.T, k *kernel.Kernel, turn kernel.Turn, prev string) kernel.Receipt {
	r := k.Receipt(turn)
	r.SessionID, r.Prev, r.Turn, r.Timestamp, r.Nonce = "demo", prev, 1+len(s.before), 1_700_000_000_000, "4E0C3B1F7A2D9865"
	r.Version, r.Setup, r.Endpoint, r.Dialect, r.Model = "lex-go/1", strings.Repeat("0", 64), "lex/govern", "openai", "m"
	r.TraceID = strings.Repeat("4", 32)
	commit := func(of kernel.Committed) string {
		return kernel.Commit(kernel.CommitmentKey(s.secret, r.Nonce, of), committed[of])
	}
	if r.Tool == "" {
		r.PromptCommitment, r.OutputCommitment = commit(kernel.CommittedPrompt), commit(kernel.CommittedOutput)
	} else {
		r.ArgumentsCommitment = commit(kernel.CommittedArguments)
	}
	return sealed(t, r)
}

// forgeries returns the receipt with other values of a member: changed and nothing else,
// with the outputs computed anew, and with the whole step taken anew.
func (s *scene) forgeries(original kernel.Receipt, field reflect.StructField) (all []kernel.Receipt) {
	member := func(r *kernel.Receipt) reflect.Value { return reflect.ValueOf(r).Elem().FieldByIndex(field.Index) }
	for _, value := range s.others(member(&original)) {
		changed := original
		member(&changed).Set(value)
		tries := []kernel.Receipt{changed}
		if k := s.kernels[changed.Policy]; k != nil {
			for _, again := range []func(kernel.Receipt) (kernel.Receipt, error){
				k.Remake,
				func(r kernel.Receipt) (kernel.Receipt, error) { return k.Retake(s.before[len(s.before)-1], r) },
			} {
				r, err := again(changed)
				if err == nil && reflect.DeepEqual(member(&r).Interface(), value.Interface()) {
					tries = append(tries, fitting(r, field.Name))
				}
			}
		}
		for _, r := range tries {
			if field.Name == "ID" {
				all = append(all, r)
			} else if _, err := r.Seal(); err == nil && r.ID != original.ID {
				all = append(all, r)
			}
		}
	}
	return all
}

// fitting gives a receipt an outcome that fits, unless that is what is changed.
func fitting(r kernel.Receipt, changed string) kernel.Receipt {
	switch {
	case changed == "Outcome":
	case r.Refused:
		r.Outcome = kernel.Refused
	case r.Outcome == kernel.Refused:
		r.Outcome = kernel.Answered
	}
	return r
}

// words are the values of the texts that have few.
var words = []string{
	"", "x", "enforce", "observe", "answered", "refused", "aborted", "none", "identity", "multi", "identity_adoption", "harmful_compliance",
	"approved", "blocked", "read", "other", "user", "model", "exfiltration", "session_risk", "CLEAR", "THREAT", "pass", "correct", "refuse", "OPTIMAL", "CRITICAL",
}

// others returns other values for a member.
func (s *scene) others(v reflect.Value) (all []reflect.Value) {
	add := func(values ...any) {
		for _, o := range values {
			if o := reflect.ValueOf(o).Convert(v.Type()); !reflect.DeepEqual(o.Interface(), v.Interface()) {
				all = append(all, o)
			}
		}
	}
	switch value := v.Interface().(type) {
	case bool:
		add(!value)
	case int:
		add(value+1, max(1, value-1))
	case int64:
		add(value+1, value-1)
	case float64:
		add(0.0, value/2, value+0.25, math.Nextafter(value, 1), math.Nextafter(value, 0))
	case kernel.Point:
		third := 1.0 / 3
		add(kernel.Point{third, third, third}, kernel.Point{value[1], value[2], value[0]}, kernel.Point{0.3, 0.3, 0.4}, kernel.Point{value[0], value[1], math.Nextafter(value[2], 1)})
	case kernel.Scores:
		for i := range 6 {
			o := value
			field := reflect.ValueOf(&o).Elem().Field(i)
			field.SetFloat(field.Float()/2 + 0.1)
			add(o)
		}
	case []kernel.Reason:
		add([]kernel.Reason{}, []kernel.Reason{kernel.ConstitutionalFloor}, append(slices.Clone(value), kernel.CapitulatedOutput))
	case kernel.Coverage:
		value.BytesInspected++
		add(value)
	default: // a text
		for _, word := range words {
			add(word)
		}
		for hash := range s.kernels {
			add(hash)
		}
		add(strings.Repeat("5", 32), s.before[0].Link(), s.before[1].ID, s.before[1].Link(), v.String()+"0", strings.ToUpper(v.String()))
	}
	return all
}

// noticed names a check that notices a forgery, or says that it is a mere assertion.
func (s *scene) noticed(original, forged kernel.Receipt) string {
	text, err := forged.JSON()
	if err == nil {
		forged, err = kernel.OpenReceipt(text)
	}
	k := s.kernels[forged.Policy]
	switch {
	case err != nil:
		return "form"
	case k == nil || k.Replay(forged) != nil:
		return "replay"
	case forged.CheckForm() != nil:
		return "form"
	}
	var chain kernel.Chain
	for _, r := range s.before {
		if err := chain.Add(s.kernels[r.Policy], r); err != nil {
			panic(err)
		}
	}
	if chain.Add(k, forged) != nil {
		return "chain"
	}
	for of, text := range committed {
		if original.Commitment(of) != "" && !forged.CommitsTo(text, of, s.secret) {
			return "commitment"
		}
	}
	return "asserted"
}
