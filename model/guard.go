package model

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/caddy-lex/lex/kernel"
)

// A Role says who says a text that a guard is asked about.
type Role string

// The roles.
const (
	RolePrompt     Role = "prompt"      // the user, in the newest turn
	RoleAnswer     Role = "answer"      // the model
	RoleToolResult Role = "tool_result" // a tool or a document
	RoleToolCall   Role = "tool_call"   // the model, which asks for a call of a tool
)

// Roles are all roles.
var Roles = []Role{RolePrompt, RoleAnswer, RoleToolResult, RoleToolCall}

// A Class is one of the kernel's scores, by its name in receipts.
type Class string

// The classes.
const (
	Identity     Class = "identity"
	Coercion     Class = "coercion"
	Exploitative Class = "exploitative"
	HarmRequest  Class = "harm_request"
	Sycophancy   Class = "sycophancy"
	Injection    Class = "injection"
)

// Of returns the score of the class, or nil if there is no such class.
func (c Class) Of(s *kernel.Scores) *float64 {
	switch c {
	case Identity:
		return &s.Identity
	case Coercion:
		return &s.Coercion
	case Exploitative:
		return &s.Exploitative
	case HarmRequest:
		return &s.HarmRequest
	case Sycophancy:
		return &s.Sycophancy
	case Injection:
		return &s.Injection
	}
	return nil
}

// A Verdict is what a guard says of a text: for each class that its categories map to
// (see [GuardCategories]) the probability in [0, 1] that the text is of the class. Of a
// class that is absent the guard says nothing. A verdict must not be changed.
type Verdict map[Class]float64

// Highest is the highest probability of any class, 0 of an empty verdict.
func (v Verdict) Highest() (p float64) {
	for _, q := range v {
		p = max(p, q)
	}
	return p
}

// worse returns for each class the higher probability of the two.
func (v Verdict) worse(other Verdict) Verdict {
	out := make(Verdict, len(v))
	for _, one := range []Verdict{v, other} {
		for class, p := range one {
			out[class] = max(out[class], p)
		}
	}
	return out
}

// found returns the classes that are more likely than not.
func (v Verdict) found() Verdict {
	out := make(Verdict)
	for class, p := range v {
		if p >= 0.5 {
			out[class] = p
		}
	}
	return out
}

// A GuardText is a text that a guard is asked about, or a call of a tool.
type GuardText struct {
	Role Role
	// Text is what is said. Of a call it is what the agent has read before it.
	Text string
	// Prompt is what an answer answers, or what the user asked for before a call; "" in the
	// other roles.
	Prompt string
	// Call is the call, in the role of calls.
	Call GuardCall
}

// A GuardCall is a call of a tool that a guard is asked about.
type GuardCall struct {
	// Name of the tool, and the arguments as the model wrote them, or as
	// [CondenseArguments] leaves them.
	Name, Arguments string
	// Definition is what is known of the tool, Application what the application has told
	// the model to do; both may be "".
	Definition, Application string
}

// A Guard asks a guard model whether texts are attacks or harmful. It is safe for
// concurrent use.
type Guard struct {
	*client
	form   guardForm
	secret []byte // of the cache's keys
	cache  *lru.Cache[[sha256.Size]byte, Verdict]
}

// A guardForm says how a kind of guards is asked, and how its answer is read.
type guardForm struct {
	roles []Role
	// reaches cut a text into pieces. The second one is used if the server rejects the
	// pieces of the first: all read the same bytes, the later ones in smaller pieces.
	reaches []reach
	batch   int // pieces in one question
	// ask asks about some pieces of a text and returns a verdict on each.
	ask func(ctx context.Context, g *Guard, namespace string, t GuardText, pieces []string) ([]Verdict, error)
}

// verdicts is how many verdicts a guard keeps. One takes about as much memory as a
// cached signal of an embedder, and a map.
const verdicts = cacheBytes / (4 * entryBytes)

func newGuard(c Config, form guardForm, observer Observer) (*Guard, error) {
	if c.Dimensions != 0 {
		return nil, errors.New("a guard has no dimensions")
	}
	client, err := newClient(c, "Authorization", observer)
	if err != nil {
		return nil, err
	}
	return guardOf(client, form)
}

// guardOf makes a guard that asks through a client.
func guardOf(client *client, form guardForm) (*Guard, error) {
	cache, err := lru.New[[sha256.Size]byte, Verdict](verdicts)
	if err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // never fails (crypto/rand)
	return &Guard{client: client, form: form, secret: secret, cache: cache}, nil
}

// Model names the model.
func (g *Guard) Model() string { return g.config.Model }

// Knows reports whether the guard can be asked about texts in a role.
func (g *Guard) Knows(r Role) bool { return slices.Contains(g.form.roles, r) }

// Reads is how many bytes of a text the guard reads, after [Condense].
func (g *Guard) Reads() int { return g.form.reaches[0].bytes() }

// Ask asks about a text without its long runs of blanks (see [Condense]): its first
// [Guard.Reads] bytes, piece by piece, of which the worst counts. The verdict on a blank text
// is empty; that on a call is not, whatever was read before it. If the guard fails on a piece, Ask returns an error, whose kind [Why] tells.
// Beside it, the verdict has only the classes that other pieces were found to be of: that a
// text is of no class is said only when all pieces were read. [Unread] tells how much was not.
//
// The namespace names the caller: limits on how much is asked, failures and the cache
// are its own, see [Embedder.Threat].
func (g *Guard) Ask(ctx context.Context, namespace string, t GuardText) (verdict Verdict, err error) {
	for _, text := range []*string{&t.Text, &t.Prompt, &t.Call.Name, &t.Call.Arguments, &t.Call.Definition, &t.Call.Application} {
		*text = Condense(*text)
	}
	t.Text = strings.ToValidUTF8(t.Text[:min(len(t.Text), g.Reads())], "?")
	spans := g.form.reaches[0].spans(t.Text)
	switch {
	case len(spans) > 0:
	case t.Role == RoleToolCall:
		spans = []span{{}} // the question is about the call
	default:
		return Verdict{}, nil
	}
	key := g.cacheKey(namespace, t)
	if verdict, ok := g.cache.Get(key); ok {
		g.observer.Cached()
		return verdict, nil
	}
	err = g.gatherEvidence(ctx, namespace, len(spans), func(ctx context.Context) error {
		verdict, err = g.askAll(ctx, namespace, t, spans)
		for _, r := range g.form.reaches[1:] {
			if smaller := r.spans(t.Text); Why(err) == Rejected && len(smaller) > len(spans) {
				found := verdict // in pieces that were not rejected
				verdict, err = g.askAll(ctx, namespace, t, smaller)
				verdict = verdict.worse(found)
			}
		}
		return err
	})
	switch {
	case err == nil:
		g.cache.Add(key, verdict)
	case len(verdict) == 0:
		verdict = nil
	}
	return verdict, err
}

// inPartError is a failure on some pieces of a text of which others have a verdict.
type inPartError struct {
	error
	unread int // bytes
}

func (e inPartError) Unwrap() error { return e.error }

// Unread is how many of the bytes that a guard reads of a text it has not read, by the error
// of [Guard.Ask]; 0 if it has read all of them or none.
func Unread(err error) (bytes int) {
	var part inPartError
	if errors.As(err, &part) {
		return part.unread
	}
	return 0
}

// cacheKey is keyed by a secret of this process, so that nobody who sees the memory of
// the cache can look for a text in it.
func (g *Guard) cacheKey(namespace string, t GuardText) (key [sha256.Size]byte) {
	mac := hmac.New(sha256.New, g.secret)
	for _, part := range []string{namespace, string(t.Role), t.Prompt, t.Text, t.Call.Name, t.Call.Arguments, t.Call.Definition, t.Call.Application} {
		sum := sha256.Sum256([]byte(part)) // no two lists of parts run together
		mac.Write(sum[:])
	}
	mac.Sum(key[:0])
	return key
}

// askAll asks about all pieces side by side. If some of them have no verdict, what is found
// in the others stands beside the error, and nothing else.
func (g *Guard) askAll(ctx context.Context, namespace string, t GuardText, spans []span) (verdict Verdict, err error) {
	batches := slices.Collect(slices.Chunk(spans, g.form.batch))
	found, errs := make([]Verdict, len(batches)), make([]error, len(batches))
	var all sync.WaitGroup
	for i, batch := range batches {
		all.Go(func() { found[i], errs[i] = g.askBatch(ctx, namespace, t, batch) })
	}
	all.Wait()
	for _, v := range found {
		verdict = verdict.worse(v)
	}
	if err = firstFailure(errs); err == nil {
		return verdict, nil
	}
	var read []bool
	for i, batch := range batches {
		read = append(read, slices.Repeat([]bool{errs[i] == nil}, len(batch))...)
	}
	if slices.Contains(read, true) {
		err = inPartError{err, unread(spans, read)}
	}
	return verdict.found(), err
}

// firstFailure prefers an error that is no rejection: smaller pieces do not help then.
func firstFailure(errs []error) error {
	var first error
	for _, err := range errs {
		if err != nil && (first == nil || Why(first) == Rejected) {
			first = err
		}
	}
	return first
}

func (g *Guard) askBatch(ctx context.Context, namespace string, t GuardText, spans []span) (Verdict, error) {
	pieces := make([]string, len(spans))
	for i, s := range spans {
		pieces[i] = t.Text[s.from:s.to]
	}
	verdicts, err := g.form.ask(ctx, g, namespace, t, pieces)
	if err != nil {
		return nil, err
	}
	worst := Verdict{}
	for _, v := range verdicts {
		worst = worst.worse(v)
	}
	return worst, nil
}

// question asks one question and reads as many verdicts as it has pieces.
func (g *Guard) question(ctx context.Context, namespace, path string, question any, pieces int, read func(answer []byte) ([]Verdict, error)) (verdicts []Verdict, err error) {
	err = g.ask(ctx, namespace, path, question, func(answer []byte) error {
		if verdicts, err = read(answer); err == nil && len(verdicts) != pieces {
			err = unusable("not one verdict for each text")
		}
		return err
	})
	return verdicts, err
}

// isProbability is false for NaN.
func isProbability(p float64) bool { return p >= 0 && p <= 1 }
