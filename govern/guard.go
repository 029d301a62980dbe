package govern

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/model"
)

// A Guard is a guard model, and when it is asked. The detector scores every text first;
// where that leaves a text undecided, the guards that are configured for it are asked,
// side by side, and what they say moves the detector's scores. About calls of tools they
// are asked after the interceptor, and can block what it lets pass.
type Guard struct {
	// Name is the operator's. Receipts call the guard guard_<name>.
	Name string
	// Model is asked.
	Model GuardModel
	// Roles are those of the texts that it is asked about.
	Roles []model.Role
	// Ask says about which of them.
	Ask Asking
	// Low and High are the severities, in [0, 1], from which and up to which the
	// detector counts as undecided. It is never overruled from High on. Calls have none.
	Low, High float64
	// Required refuses a turn on which the guard was asked and gave no whole verdict.
	Required bool
	// Budget bounds in how many turns it is asked. Nil means in all of them.
	Budget *Budget
	// Calibration corrects its probabilities. Nil leaves them as they are.
	Calibration *Calibration
	// Files has the SHA-256 of the files of a model in this process, in hexadecimal, by
	// their names. It is nil of a model elsewhere.
	Files map[string]string
}

// A GuardModel says what a text is. Implementations are safe for concurrent use, honour
// the context and return errors that hold no text, key or address. If there is no verdict
// they return an error, never an acquittal.
type GuardModel interface {
	// Model names the model.
	Model() string
	// Reads is how many bytes of a text are read, from its beginning. The governor asks
	// about texts as [model.Condense] leaves them.
	Reads() int
	// Ask returns a verdict on the text. Beside an error, it has what was found in a part of
	// the text, and [model.Unread] tells how much was not read. The namespace identifies the
	// caller, as in [Embedder].
	Ask(ctx context.Context, namespace string, t model.GuardText) (model.Verdict, error)
}

// Asking says about which texts a guard is asked.
type Asking string

// The values of Asking. About calls that are blocked no guard is asked.
const (
	AskWhen    Asking = "when"    // those that the detector leaves undecided, and calls that may do harm
	AskAlways  Asking = "always"  // all of them
	AskObserve Asking = "observe" // all of them, and its verdict is only recorded
)

// detector is the guard's name in receipts, for texts in a role.
func (g *Guard) detector(r model.Role) string { return detectorOfGuard(g.Name, r) }

func detectorOfGuard(name string, r model.Role) string { return "guard_" + name + "." + string(r) }

// wants reports whether the guard is to be asked about a text.
func (g *Guard) wants(q question) bool {
	return slices.Contains(g.Roles, q.text.Role) && (g.Ask != AskWhen || q.severity >= g.Low && q.severity < g.High)
}

// A Budget is a bucket of turns in which a guard may be asked. Each turn puts a share of
// one in, and a turn in which the guard is asked takes one out. What is not used is saved
// up, for budgetBurst turns at most: of n turns in a row, the guard is asked in no more than
// budgetBurst and the share of n. It is safe for concurrent use.
type Budget struct {
	share float64 // in (0, 1]
	mu    sync.Mutex
	turns float64
}

// budgetBurst is how many turns a bucket holds at most.
const budgetBurst = 10

// NewBudget returns a budget of a share of all turns, in (0, 1].
func NewBudget(share float64) *Budget { return &Budget{share: share, turns: 1} }

func (b *Budget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turns = min(budgetBurst, b.turns+b.share)
}

func (b *Budget) spend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.turns < 1 {
		return false
	}
	b.turns--
	return true
}

// A question is a text that guards may be asked about.
type question struct {
	text model.GuardText
	// hidden is a text that the detector found hidden in it, or "": a guard that sees
	// only the code would acquit what the code says.
	hidden string
	// severity is the detector's, in a session of its own.
	severity float64
}

// questionOn returns the question about some texts in a role, which the detector has read
// as s.
func (g *Governor) questionOn(r model.Role, texts []detect.Text, s detect.Signal) question {
	return question{text: model.GuardText{Role: r, Text: joinTexts(texts)}, hidden: s.Hidden, severity: g.Kernel.Severity(s.Scores)}
}

func joinTexts(texts []detect.Text) string {
	bodies := make([]string, len(texts))
	for i, t := range texts {
		bodies[i] = t.Body
	}
	return strings.Join(bodies, "\n\n")
}

// An opinion is what the guards that were asked about a text say together.
type opinion struct {
	// verdict has for each class the highest probability that any of them gave. Guards
	// look for different things: what one finds is not refuted by another that does not.
	verdict model.Verdict
	by      string // the model that gave the highest of all
	// partial: one of them failed, or did not read the whole text, so that it cannot be
	// acquitted.
	partial bool
	// failed and denied: one of those that count gave no whole verdict, and one that must.
	failed, denied bool
	// decided: the detector's severity is not to be lowered.
	decided bool
}

// An asking is one guard asked about one text.
type asking struct {
	guard    *Guard
	question int
	text     model.GuardText
	verdict  model.Verdict
	err      error
	took     time.Duration
	known    bool // it was asked before in this turn, and is recorded
	left     int  // bytes of what was read before a call that the question leaves out
}

// ask asks the guard, as the caller of a namespace.
func (a *asking) ask(ctx context.Context, namespace string) {
	began := time.Now()
	verdict, err := a.guard.Model.Ask(ctx, namespace, a.text)
	a.verdict, a.err = a.guard.calibrated(verdict), err
	a.took = time.Since(began)
}

// overBudget is why a guard that should be asked is not.
const overBudget = "over its budget"

// consult asks the guards about the texts whose severity calls for it, all at once, so a
// turn waits for the slowest of them and no longer than its timeout. It records each in
// the coverage and returns an opinion on each text.
func (o *Opened) consult(ctx context.Context, questions ...question) []opinion {
	askings := o.askings(questions)
	var all sync.WaitGroup
	for i := range askings {
		a := &askings[i]
		if o.reread.recalls(a) {
			continue
		}
		all.Go(func() { a.ask(ctx, o.Namespace) })
	}
	all.Wait()
	opinions, waited := make([]opinion, len(questions)), make(map[string]time.Duration)
	for _, a := range askings {
		opinions[a.question].add(a, questions[a.question])
		if a.known { // nobody waited for it again
			continue
		}
		o.Coverage.guarded(a)
		o.reread.keeps(a)
		name := a.guard.detector(a.text.Role)
		waited[name] = max(waited[name], a.took)
	}
	o.Coverage.waitedFor(waited)
	return opinions
}

// askings returns what is to be asked of whom, as far as the budgets allow.
func (o *Opened) askings(questions []question) (out []asking) {
	for _, guard := range o.governor.Guards {
		for i, q := range questions {
			switch {
			case strings.TrimSpace(q.text.Text) == "" || !guard.wants(q):
			case !o.affords(guard):
				o.Coverage.notGuarded(guard.detector(q.text.Role), overBudget)
			default:
				for _, text := range []string{q.text.Text, q.hidden} {
					if strings.TrimSpace(text) != "" {
						asked := q.text
						asked.Text = model.Condense(text)
						out = append(out, asking{guard: guard, question: i, text: asked})
					}
				}
			}
		}
	}
	return out
}

// affords reports whether the guard's budget lets it be asked in this turn. Once it does,
// it does for all texts of the turn.
func (o *Opened) affords(g *Guard) bool {
	if g.Budget == nil {
		return true
	}
	allowed, known := o.afforded[g]
	if !known {
		allowed = g.Budget.spend()
		o.afforded[g] = allowed
	}
	return allowed
}

// fillBudgets counts the turn for all guards.
func (o *Opened) fillBudgets() {
	if o.afforded != nil {
		return
	}
	o.afforded = make(map[*Guard]bool)
	for _, g := range o.governor.Guards {
		if g.Budget != nil {
			g.Budget.earn()
		}
	}
}

// add adds what one guard said, unless it is only observed. What a guard that failed has
// found counts beside its failure: a finding of its own need not be enough for a refusal.
func (op *opinion) add(a asking, q question) {
	switch {
	case a.guard.Ask == AskObserve:
		return
	case a.err != nil:
		op.partial, op.failed = true, true
		op.denied = op.denied || a.guard.Required // also if the client left: it may have closed its own direction only
	}
	op.partial = op.partial || len(a.text.Text) > a.guard.Model.Reads()
	op.decided = op.decided || q.severity >= a.guard.High
	if len(a.verdict) == 0 {
		return
	}
	if op.verdict == nil {
		op.verdict = make(model.Verdict)
	}
	if a.verdict.Highest() >= op.verdict.Highest() {
		op.by = a.guard.Model.Model()
	}
	for class, p := range a.verdict {
		op.verdict[class] = max(op.verdict[class], p)
	}
}

// The fusion is a pool of log-odds (Genest and Zidek, Combining Probability Distributions,
// 1986), with weights of sum 1: the detector and a guard learnt from texts of the same
// kind, so they are not independent, and adding up their odds would count the same
// evidence twice. The guard has three quarters, because it is asked where the detector
// has little to say. With that a plain "unsafe" (labelProbability) about a text that the
// detector calls harmless is just enough for a refusal at the default of refuse_at.
const (
	localWeight = 0.25
	guardWeight = 0.75
)

// No detector is surer than that, however sure it says it is: the local one is fused as
// undecided, and a guard was measured on texts that nobody had written for it.
const (
	localSurest = 0.95
	guardSurest = 0.98
)

// GuardUnsure is how near to 0 and 1 the probability of a guard counts at most.
const GuardUnsure = 1 - guardSurest

// fuse returns the probability that follows from the detector's and a guard's.
func fuse(local, guard float64) float64 {
	odds := localWeight*logit(local, localSurest) + guardWeight*logit(guard, guardSurest)
	return math.Round(1e6/(1+math.Exp(-odds))) / 1e6
}

// logit is that of a probability, which is first brought between 1-surest and surest.
func logit(p, surest float64) float64 {
	p = max(1-surest, min(surest, p))
	return math.Log(p / (1 - p))
}

// move returns the detector's scores as the guards move them. A guard that finds a class
// never lowers its score, and one that does not never raises it. Only a verdict on the
// whole text lowers a score, and neither one that the detector is sure of nor one that a
// rule supports (see [detect.SelfReference]): what guards are known for is to acquit what
// they have not understood.
func (op opinion) move(s detect.Signal) detect.Signal {
	for class, p := range op.verdict {
		score := class.Of(&s.Scores)
		if score == nil { // a module's own idea of a class
			continue
		}
		fused := fuse(*score, p)
		ruled := s.SelfReference && (class == model.Identity || class == model.Injection)
		switch {
		case p >= 0.5:
			*score = max(*score, fused)
		case !op.partial && !op.decided && !ruled:
			*score = min(*score, fused)
		}
	}
	return s
}

// ruleNoGuardVerdict names the operator's rule "guard … fail refuse" in receipts.
const ruleNoGuardVerdict = "guard_gave_no_verdict"

// heed makes the failures of guards evidence: detection is degraded, or the turn is
// refused if the operator wants that.
func (op opinion) heed(e *kernel.Evidence) {
	e.Degraded = e.Degraded || op.failed
	if op.denied && e.DeniedBy == "" {
		e.DeniedBy = ruleNoGuardVerdict
	}
}

// guardSaid asks the guards about the newest turn, and moves the signals of what the user
// says and of what tools and documents say. The user's words before it are asked about
// together with it, because an attack may be split between them, and alone: what is an
// attack there goes by itself, and the turn is judged without it.
func (a *Assessed) guardSaid(ctx context.Context, said, quoted []detect.Text, found *detect.Signal) error {
	o, g := a.Opened, a.Opened.governor
	if len(g.Guards) == 0 {
		return nil
	}
	o.fillBudgets()
	before := g.questionOn(model.RolePrompt, g.wordsOf(a.input.earlier...), a.earlier)
	prompt := g.questionOn(model.RolePrompt, slices.Concat(g.wordsOf(a.input.earlier...), said), a.said)
	results := g.questionOn(model.RoleToolResult, quoted, *found)
	a.severity = max(prompt.severity, results.severity)
	if a.input.deniedBy != "" { // the turn is refused, whatever they say
		a.input.unasked = before.text.Text != ""
		return nil
	}
	opinions := o.consult(ctx, prompt, results, before)
	a.said, *found = opinions[0].move(a.said), opinions[1].move(*found)
	for _, op := range append(opinions, o.reread.opinion()) {
		op.heed(&a.evidence)
	}
	a.input.unasked = before.text.Text != "" && a.evidence.DeniedBy != "" || ctx.Err() != nil
	moved := opinions[2].move(a.earlier)
	refused, err := g.refusesAlone(moved)
	if refused {
		return a.findAttacks(ctx, moved)
	}
	return err
}

// guardAnswer asks the guards about an answer that no judge has flagged. A guard can only
// add to what the judges find: it knows some kinds of harm, and they look for more. The
// answer is as undecided as what it answers was.
func (a *Assessed) guardAnswer(ctx context.Context, whole string) (found detect.Judgement, by string, op opinion) {
	if len(a.Opened.governor.Guards) == 0 || a.Turn.Refused {
		return found, "", op
	}
	a.Opened.fillBudgets()
	text := model.GuardText{Role: model.RoleAnswer, Text: whole, Prompt: a.input.Prompt}
	op = a.Opened.consult(ctx, question{text: text, severity: a.severity})[0]
	if p := fuse(0, op.verdict.Highest()); p >= 0.5 {
		found = detect.Judgement{Capitulated: true, Category: kernel.HarmfulCompliance, Confidence: p, Reason: "a guard model finds that the output helps to do harm"}
	}
	return found, op.by, op
}

// A quotedReading is what was found in texts that tools and documents say.
type quotedReading struct {
	signal  detect.Signal // as the guards move it
	opinion opinion
	// attack: the texts would be refused alone; local: the detector found that itself.
	attack, local bool
}

// readQuoted scores each group of texts that tools and documents say, and asks the guards
// about all groups at once.
func (o *Opened) readQuoted(ctx context.Context, groups ...[]detect.Text) ([]quotedReading, error) {
	o.fillBudgets()
	g, out, questions := o.governor, make([]quotedReading, len(groups)), make([]question, len(groups))
	for i, texts := range groups {
		s, err := o.score(ctx, texts)
		if err != nil {
			return nil, err
		}
		out[i].signal = s
		if out[i].local, err = g.refusesAlone(s); err != nil {
			return nil, err
		}
		questions[i] = g.questionOn(model.RoleToolResult, texts, s)
	}
	for i, op := range o.consult(ctx, questions...) {
		r := &out[i]
		r.opinion, r.signal = op, op.move(r.signal)
		var err error
		if r.attack, err = g.refusesAlone(r.signal); err != nil {
			return nil, err
		}
	}
	return out, nil
}
