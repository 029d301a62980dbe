package toolcall

import (
	"regexp"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel"
)

// A deed is what a call does, in words that texts can be compared with.
type deed struct {
	effect kernel.ToolEffect
	acts   action
	verbs  []string // stems of the verbs of the tool's name
	nouns  []string // stems of its other words
	name   string   // letters only
	values []value
}

// value is one argument as a text may name it.
type value struct {
	form  string   // folded; it stands between other words of a text
	stems []string // of its words
}

// generic are the words of tools' names that tell nothing of what they act on.
var generic = wordSet("manager manage tool api service system app application client server mcp function get set do a an the of to for by from in on with and or new all my user item items data info information details v1 v2 v3 api assistant helper handler request id")

func (r *reading) deed(c Call, effect kernel.ToolEffect, leaves []leaf) deed {
	d := deed{effect: effect, name: lettersOnly(c.Name)}
	words := nameWords(c.Name)
	for _, l := range leaves {
		if l.text && (l.key == "action" || l.key == "operation" || l.key == "op") && len(l.value) < maxKey {
			words = append(words, nameWords(l.value)...)
		}
	}
	for i, w := range words {
		switch {
		case verbs[w] != "" && (d.acts == 0 || vague[w]) || len(words) == 1:
			d.acts |= englishActs[w]
			d.verbs = append(d.verbs, stem(w))
		case d.acts == 0 && nouns[w] != "" && firstVerb(words[i:]) == "":
			d.acts |= englishActs[w]
			d.nouns = append(d.nouns, stem(w))
		case !generic[w] && len(w) > 1:
			if len(d.verbs) > 0 && vague[words[slices.IndexFunc(words, func(w string) bool { return verbs[w] != "" })]] {
				d.acts |= englishActs[w]
			}
			d.nouns = append(d.nouns, stem(w))
		}
	}
	for _, l := range leaves {
		d.argument(r, l)
	}
	return d
}

// vague verbs leave it to the words after them what is done: create_payment pays.
var vague = wordSet("create add make do manage perform submit update set execute run request process handle operate control apply place call put start give")

// argument takes a value that a text could name. Long prose is composed by the model, and
// small numbers and flags are named by chance.
func (d *deed) argument(r *reading, l leaf) {
	as := r.tool.roleOf(l.key)
	if l.composed || len(l.value) < 3 || len(l.value) > 240 || as == roleProse && len(l.value) > 60 {
		return
	}
	if !l.text && len(l.value) < 4 && !amountKey(l.key) || l.value == "true" || l.value == "false" || l.value == "null" {
		return
	}
	if as == roleShell {
		d.command(l.value)
	}
	v := value{form: foldText(strings.TrimSpace(l.value))}
	for _, w := range readWords(l.value) {
		if len(w.text) > 2 && !followers[w.text] {
			v.stems = append(v.stems, stem(w.text))
		}
	}
	if len(v.stems) > 0 {
		d.values = append(d.values, v)
	}
}

// command adds the acts of a command line.
func (d *deed) command(text string) {
	for _, part := range between.Split(text, 8) {
		f := strings.Fields(part)
		for _, w := range f[:min(len(f), 2)] {
			d.acts |= englishActs[strings.ToLower(w)] | commandActs[strings.ToLower(w)]
		}
	}
}

var commandActs = map[string]action{"rm": actDelete, "del": actDelete, "unlink": actDelete, "shred": actDelete, "curl": actSend | actRead | actUpload, "wget": actRead, "scp": actSend | actUpload, "rsync": actSend | actMove, "mv": actMove, "cp": actMove, "cat": actRead, "ls": actRead, "mail": actSend, "npm": actRun, "pip": actRun, "apt": actRun, "apt-get": actRun, "chmod": actGrant | actUpdate, "tee": actCreate, "kill": actStop, "commit": actSign, "git": 0, "install": actRun, "sh": actRun, "bash": actRun, "python": actRun, "make": actRun}

func lettersOnly(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == '.' || c == ' ' || c == '/' || c == ':' {
			return -1
		}
		return c
	}, strings.ToLower(s))
}

// A passage is one or several sentences that are read together.
type passage struct {
	sentences []sentence
	folded    string
	hostile   bool
}

func newPassage(all []sentence) passage {
	p := passage{sentences: all}
	var text strings.Builder
	for _, s := range all {
		text.WriteString(s.text)
		p.hostile = p.hostile || s.hostile
	}
	p.folded = foldText(text.String())
	return p
}

func (p passage) acts() (a action) {
	for _, s := range p.sentences {
		a |= s.acts
	}
	return a
}

func (p passage) has(stem string) bool {
	return slices.ContainsFunc(p.sentences, func(s sentence) bool { return s.stems[stem] })
}

// hasAny counts the stems that a passage, or a word for the same thing, has.
func (p passage) count(stems []string) (n int) {
	for _, s := range stems {
		if p.has(s) || slices.ContainsFunc(sameThing[s], p.has) {
			n++
		}
	}
	return n
}

// sameThing lists, by stem, other words for a thing.
var sameThing = func() map[string][]string {
	out := make(map[string][]string)
	for _, group := range []string{
		"email mail message inbox gmail letter", "file document attachment folder pdf report", "repository repo project", "calendar event appointment meeting schedule", "money fund payment dollar bitcoin amount transfer usd eur",
		"payee recipient beneficiary", "reservation booking flight hotel trip", "user account profile member", "shipment package parcel delivery order", "door lock home house", "password credential secret login", "channel group room slack", "note memo evernote",
		"contact friend person people address phone", "history log record", "ticket issue bug", "webpage page website site url link", "purchase order item product", "crypto bitcoin ethereum coin wallet", "patient health medical", "ambulance emergency fire police", "photo picture image", "permission access role sharing", "device thermostat light lamp camera robot", "database table row sql", "server host machine instance vm",
	} {
		words := strings.Fields(group)
		for _, w := range words {
			for _, other := range words {
				if w != other {
					out[stem(w)] = append(out[stem(w)], stem(other))
				}
			}
		}
	}
	return out
}()

// named returns how well a passage names a value: wholly, or by its words.
func (p passage) named(v value) float64 {
	if containsWord(p.folded, v.form) {
		return 1
	}
	found := 0
	for _, s := range v.stems {
		if p.has(s) {
			found++
		}
	}
	if share := float64(found) / float64(len(v.stems)); share >= 0.6 {
		return 0.7 * share
	}
	return 0
}

// containsWord reports whether a form stands in a text and is no part of a longer word.
func containsWord(text, form string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], form)
		if i < 0 {
			return false
		}
		i += at
		j := i + len(form)
		if (i == 0 || !alphanumeric(text[i-1]) || !alphanumeric(form[0])) && (j == len(text) || !alphanumeric(text[j]) || !alphanumeric(form[len(form)-1])) {
			return true
		}
		at = i + 1
	}
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// A likeness is how much of a deed a passage speaks of, in [0, 1], and whether it
// speaks of the act itself.
type likeness struct {
	score float64
	act   bool
}

// likeness compares a deed with a passage. values are the arguments to look for; the best
// of them counts if any, and else their mean.
func (d deed) likeness(p passage, values []value, best bool) likeness {
	act, things, named := 0.0, 0.0, 0.0
	if p.acts()&d.acts != 0 || d.acts == 0 && p.count(d.verbs) > 0 {
		act = 1
	}
	if len(d.nouns) > 0 {
		things = min(1, float64(p.count(d.nouns))/float64(min(2, len(d.nouns))))
	}
	for _, v := range values {
		n := p.named(v)
		if best {
			named = max(named, n)
		} else {
			named += n / float64(len(values))
		}
	}
	l := likeness{act: act == 1}
	switch {
	case d.effect == kernel.ToolReads:
		l.score = 0.2*act + 0.5*things + 0.3*named
	case len(d.nouns) == 0:
		l.score = 0.6*act + 0.4*named
	default:
		l.score = 0.5*act + 0.25*things + 0.25*named
	}
	if len(d.name) > 5 && strings.Contains(lettersOnly(p.folded), d.name) {
		l = likeness{score: max(l.score, 0.9), act: true}
	}
	return l
}

// Thresholds of the likeness, chosen on the open halves of the data (docs/tools.md).
const (
	toldEnough  = 0.5  // what a passage tells to do is this call
	askedEnough = 0.5  // what the user asks for is this call
	clearlyMore = 0.25 // a passage speaks of this call and the user of one like it
	hardlyAsked = 0.3  // the user asks for nothing like this call
)

// intention judges whether the call is what the user asks for, or what a text that the
// agent read tells it to do. (Instructions and data share one channel, as Greshake et al.
// 2023, arXiv:2302.12173, describe; what was asked is the only thing that tells them
// apart.)
func (r *reading) intention(c Call, leaves []leaf) {
	if len(r.seen) == 0 {
		return
	}
	d := r.deed(c, r.effect, leaves)
	asked := d.likeness(r.wish, d.values, false)
	var foreign []value // that the user does not name
	for _, v := range d.values {
		if r.wish.named(v) < 0.6 {
			foreign = append(foreign, v)
		}
	}
	for _, p := range r.instructions() {
		told := d.likeness(p, foreign, true)
		if r.follows(d, p, told, asked) && !r.application(d) {
			r.inject(d, p)
		}
	}
	if r.takenOver() && asked.score < hardlyAsked && !asked.act && !r.application(d) && d.effect != kernel.ToolReads {
		r.breaks(InjectedAction)
	}
}

// follows reports whether an instruction rather than the user is what the call follows.
func (r *reading) follows(d deed, p passage, told, asked likeness) bool {
	switch {
	case told.score < toldEnough:
		return false
	case d.effect == kernel.ToolReads:
		return asked.score < told.score && asked.score < askedEnough
	case !asked.act:
		return told.act && (p.hostile || !r.delegates())
	}
	return told.act && told.score-asked.score >= clearlyMore && (p.hostile || !r.delegates())
}

// inject blocks what changes the world, and a reading that a hostile instruction, or one
// that goes on to send what was read, tells the agent to do; it flags other readings.
func (r *reading) inject(d deed, p passage) {
	if d.effect != kernel.ToolReads || p.hostile || p.acts()&(actSend|actPublish|actUpload|actPay) != 0 {
		r.breaks(InjectedAction)
		return
	}
	r.flags(InjectedAction)
}

// delegates reports whether the user hands the choice of acts to what will be read.
func (r *reading) delegates() bool { return delegation.MatchString(r.wish.folded) }

var delegation = regexp.MustCompile(`\b(?:follow|do|carry out|execute|complete|perform|handle|apply|implement|process|work through|take care of|deal with|act on|respond to|address|go through|resolve)\b[^.!?\n]{0,50}\b(?:instructions?|steps?|tasks?|to-?dos?|checklist|guide|readme|runbook|playbook|items|requests?|tickets?|issues?|whatever|says?|asks?|asked|described|listed|procedure|actions?)\b|\b(?:whatever|what) (?:it|he|she|they|the \w+) (?:says?|asks?|wants?|needs?|tells?)\b`)

// application reports whether the application's own instructions ask for the deed. What
// they say the agent can do is no wish.
func (r *reading) application(d deed) bool {
	for _, s := range r.rules {
		p := newPassage([]sentence{s})
		if l := d.likeness(p, d.values, false); s.instructs && l.act && l.score > 0.5 {
			return true
		}
	}
	return false
}

// takenOver reports whether anything that was read speaks as injections do.
func (r *reading) takenOver() bool {
	return slices.ContainsFunc(r.seen, func(o []sentence) bool {
		return slices.ContainsFunc(o, func(s sentence) bool { return s.hostile })
	})
}

// instructions returns the passages that tell a reader to do something: neighbouring
// sentences of one text that do, with the one after them, which often holds the details.
func (r *reading) instructions() []passage {
	if r.told != nil {
		return r.told
	}
	r.told = []passage{}
	for _, text := range r.seen {
		hostile := slices.ContainsFunc(text, func(s sentence) bool { return s.hostile })
		for i := 0; i < len(text); i++ {
			if !text[i].instructs {
				continue
			}
			end := i + 1
			for end < len(text) && end-i < maxPassage && text[end].instructs {
				end++
			}
			p := newPassage(text[i:min(end+1, len(text))])
			p.hostile = hostile
			r.told = append(r.told, p)
			i = end - 1
		}
	}
	return r.told
}

// maxPassage is the number of sentences that are read together.
const maxPassage = 6

// listen reads what was said in the conversation.
func (r *reading) listen(c Call) {
	if !slices.ContainsFunc(c.Context, func(o Observation) bool { return strings.TrimSpace(o.Text) != "" }) {
		return
	}
	r.wish = newPassage(r.sentences(c.Request))
	r.rules = slices.DeleteFunc(r.sentences(c.System), func(s sentence) bool {
		return capability.MatchString(s.text)
	})
	for _, o := range c.Context {
		r.seen = append(r.seen, r.sentences(o.Text))
	}
}

// capability finds what an application says of abilities rather than wishes.
var capability = regexp.MustCompile(`(?i)\b(?:can|able|may|access to|tools?|capab\w+|helps?|allowed|assist\w*)\b`)
