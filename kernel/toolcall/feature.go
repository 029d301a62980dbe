package toolcall

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/caddy-lex/lex/kernel"
)

// featureNames are what is measured of a call and its conversation, in the order of the
// weights.
var featureNames = []string{
	"bias", "sends", "other effect", "high risk",
	"user asks the act", "user has the verb", "share of things the user names", "names no thing", "user delegates", "user only asks or reads", "user says little",
	"share of values the user names", "telling value from texts only", "other value from texts only", "value of nobody", "user names another of its kind", "texts name another of its kind", "values from texts",
	"hand evidence", "unsupported", "overrides", "hostile", "instructs",
	"novel in one sentence", "novel words", "it instructs", "it is hostile", "it has the act", "it is apart", "it is strange", "it is marked up", "it is prose",
	"unasked and novel", "unasked and instructs", "foreign value in prose", "delegated value",
	"act from it alone", "act in no sentence",
	"it tells the act", "it speaks of a machine", "texts speak of a machine", "it speaks of a program", "it is in another language", "texts switch language", "it has a lone value", "request points", "request names no value", "open arguments", "unasked arguments",
	"user's value dropped", "dropped, and one from texts", "number from texts", "number against the user's", "verbatim from texts", "machine and unasked", "machine and foreign value", "switch and unasked", "points and unasked", "hostile and points",
	"last turn asks the act", "last turn has a value", "last turn answers", "number in it", "number in telling sentence", "key in it", "all from the user", "dropped and it speaks", "novel and it speaks", "one turn",
	"unsupported and hostile", "unasked and it is hostile", "hostile tells the act", "unasked and told", "unasked, told and novel", "hostile and novel", "hand evidence, hostile",
	"swapped", "swapped and it speaks", "swapped the asked act", "swapped words",
}

// measure returns the features of a call that follows observations.
func (r *reading) measure(highRisk bool) []float64 {
	d, u := r.deed, r.user
	x := make([]float64, 0, len(featureNames))
	add := func(v float64) { x = append(x, v) }
	is := func(b bool) { add(truth(b)) }
	add(1)
	is(d.effect == kernel.ToolSends)
	is(d.effect == kernel.ToolOther)
	is(highRisk)
	is(u.act)
	hasVerb := slices.ContainsFunc(d.verbs, r.wish.has)
	is(hasVerb)
	add(share(u.things, len(d.nouns)))
	is(len(d.nouns) == 0)
	is(r.delegates())
	is(r.wish.acts()&^actRead == 0)
	is(r.wish.says() < fewWords)

	telling, other, nobody, another, second := 0, 0, 0, false, false
	for _, v := range u.foreign {
		if v.quoted {
			continue
		}
		switch seen := r.untrusted.holds(v); {
		case seen && v.telling():
			telling++
			another = another || r.wish.names(v.kind) && !(v.key != "" && r.wish.has(v.key))
			second = second || r.secondOf(v)
		case seen:
			other++
		default:
			nobody++
		}
	}
	add(share(u.strong+u.words, len(d.values)))
	add(float64(min(telling, 2)))
	add(float64(min(other, 2)))
	add(float64(min(nobody, 2)))
	is(another)
	is(second)
	add(share(telling+other, len(d.values)))

	add(max(-1, min(2, r.suspicion)))
	is(r.unsupported())
	is(r.takenOver())
	is(r.hostile())
	is(len(r.instructions()) > 0)

	s := r.source()
	novel := share(s.found, s.of)
	add(novel)
	add(math.Log1p(float64(s.found)))
	is(s.instructs)
	is(s.hostile)
	is(s.act)
	add(s.apart)
	is(s.strange)
	is(s.marked)
	is(s.prose)
	unasked := truth(!u.act)
	add(unasked * novel)
	add(unasked * truth(s.instructs))
	is(telling > 0 && s.prose)
	is(telling > 0 && r.delegates())
	is(s.act && !u.act)
	is(!s.act && !u.act)

	is(s.told)
	is(s.machine)
	machine, program, switches := r.speaks()
	is(machine)
	is(s.program)
	is(s.switches)
	is(switches)
	is(s.found == 1 && novel < 0.4)
	points := pointing.MatchString(r.wish.folded) || r.delegates()
	is(points)
	marks := marksIn(r.wish.folded)
	is(len(marks) == 0)
	open, unopen := 0, 0
	for _, v := range u.foreign {
		if v.quoted || !r.untrusted.holds(v) {
			continue
		}
		if v.key != "" && r.wish.has(v.key) {
			open++
		} else {
			unopen++
		}
	}
	add(float64(min(open, 2)))
	add(float64(min(unopen, 2)))
	dropped := r.dropped(marks)
	add(share(dropped, len(marks)))
	is(dropped > 0 && telling+other > 0 && u.act)
	number, against := r.numbers()
	is(number)
	is(against)
	is(r.verbatim())
	is(machine && !u.act)
	is((machine || s.machine) && telling+other > 0)
	is(switches && !u.act)
	is(points && !u.act)
	is(s.hostile && points)
	_ = program
	last := r.last
	is(last.acts()&d.acts&^actRead != 0 || last.acts()&d.acts != 0 && d.effect == kernel.ToolReads || slices.ContainsFunc(d.verbs, func(v string) bool { return !common[v] && last.has(v) }))
	is(slices.ContainsFunc(d.values, func(v value) bool { return len(v.form) > 2 && last.named(v) }))
	is(last.says() < 6 && r.turns > 1)
	is(s.figure)
	is(s.figure && (s.instructs || s.machine || s.program))
	is(s.key)
	is(unopen == 0 && nobody == 0 && !s.figure && u.act)
	speaks := s.instructs || s.machine || s.program || s.switches
	is(dropped > 0 && speaks)
	add(novel * truth(speaks))
	is(r.turns < 2)
	is(r.unsupported() && r.hostile())
	is(!u.act && s.hostile)
	is(s.hostile && s.told)
	is(!u.act && s.told)
	add(truth(!u.act && s.told) * novel)
	add(truth(s.hostile) * novel)
	add(truth(s.hostile) * max(0, min(2, r.suspicion)))
	swapped := r.swapped()
	is(swapped > 0)
	is(swapped > 0 && speaks)
	is(swapped > 0 && u.act)
	add(float64(min(3, swapped)))
	return x
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return min(1, float64(part)/float64(whole))
}

// secondOf reports whether the observations name another value of a kind.
func (r *reading) secondOf(v value) bool {
	if v.kind == mailbox || v.kind == account {
		pattern := map[kind]interface{ FindAllString(string, int) []string }{mailbox: mailboxes, account: accounts}[v.kind]
		for _, text := range r.seen {
			for _, s := range text {
				for _, m := range pattern.FindAllString(s.text, 8) {
					if destinationForm(m) != destinationForm(v.form) {
						return true
					}
				}
			}
		}
	}
	return false
}

// origin is the sentence of an observation that has most of what the call has and the
// user has not.
type source struct {
	found, of                         int
	instructs, hostile, act, strange  bool
	marked, prose                     bool
	told, machine, program, switches  bool
	figure, key                       bool
	apart                             float64
}

func (r *reading) source() (best source) {
	d := r.deed
	novel := make(map[string]bool)
	for _, list := range [][]string{d.nouns, d.verbs} {
		for _, w := range list {
			if !common[w] && !r.wish.has(w) {
				novel[w] = true
			}
		}
	}
	for _, v := range r.user.foreign {
		if v.quoted {
			continue
		}
		for _, w := range v.stems {
			if !r.wish.has(w) {
				novel[w] = true
			}
		}
		if len(v.stems) == 0 {
			for _, w := range readWords(v.form) {
				novel[stem(w.text)] = true
			}
		}
	}
	best.of = len(novel)
	figures := r.foreignFigures()
	score, at, in := -1.0, -1, -1
	for t, text := range r.seen {
		for i := range text {
			s := &text[i]
			n, seen := 0, 0
			var hit [8]string
			for _, w := range s.words {
				if k := stem(w.text); novel[k] && !slices.Contains(hit[:min(seen, 8)], k) {
					hit[seen%8] = k
					seen++
					n++
				}
			}
			act := s.acts&d.acts != 0 && (r.effect != kernel.ToolReads || s.acts&d.acts&^actRead != 0) || s.mentions(d)
			e := float64(n) + 0.6*truth(act) + 0.4*truth(s.instructs) + 0.5*truth(s.hostile)
			machine, program := s.machine()
			switches := r.switches(s)
			if n == 0 && !act {
				e -= 1
			}
			if len(figures) > 0 && s.figures(figures) {
				e += 0.7
			}
			e += 0.4*truth(machine) + 0.2*truth(program) + 0.4*truth(switches)
			if e > score {
				score, at, in = e, i, t
				best.found, best.act = n, act
			}
		}
	}
	if at < 0 {
		return best
	}
	text := r.seen[in]
	s := &text[at]
	best.instructs, best.hostile = s.instructs, s.hostile
	best.told = s.acts&d.acts&^actRead != 0 || s.acts&d.acts != 0 && r.effect == kernel.ToolReads
	for i := max(0, at-1); i < min(at+2, len(text)); i++ {
		m, p := text[i].machine()
		best.machine, best.program = best.machine || m, best.program || p
	}
	best.switches = r.switches(s)
	best.figure = len(figures) > 0 && s.figures(figures)
	letters, asked := lettersOnly(s.text), lettersOnly(r.wish.folded)
	best.key = slices.ContainsFunc(r.keys, func(k string) bool { return strings.Contains(letters, k) && !strings.Contains(asked, k) })
	best.strange = newPassage(text[at:at+1]).strange(r.wish)
	best.marked = strings.ContainsAny(s.text, "<>[]{}*#|=_") 
	small := 0
	for _, w := range s.words {
		if followers[w.text] || everyday[w.text] {
			small++
		}
	}
	best.prose = len(s.words) >= 5 && small > 0
	best.apart = r.apart(text, at)
	return best
}

// apart is the share of a sentence's longer words that neither the rest of its text nor
// the request has.
func (r *reading) apart(text []sentence, at int) float64 {
	words := make(map[string]bool)
	for _, w := range text[at].words {
		if len(w.text) > 3 {
			words[stem(w.text)] = true
		}
	}
	all, shared := len(words), 0
	for i := range text {
		if i == at {
			continue
		}
		for _, w := range text[i].words {
			if k := stem(w.text); words[k] {
				delete(words, k)
				shared++
			}
		}
	}
	for k := range words {
		if r.wish.has(k) {
			shared++
		}
	}
	return 1 - share(shared, all)
}

var machines = wordSet("assistant assistants agent agents ai ais bot bots llm llms copilot chatbot automated automation automates automate automatically robot robots gpt claude assistent assistente asistente assistenten asystent ассистент ассистента помощник агент бот")

var softwares = wordSet("app apps tool tools system systems model models integration integrations helper helpers software machine machines script scripts reader readers processor pipeline client clients screener screeners modello modele modell modelo модель система systeme sistema outil")

// machine reports whether a sentence speaks of an assistant, or of a program.
func (s *sentence) machine() (assistant, program bool) {
	for _, w := range s.words {
		assistant = assistant || machines[w.text]
		program = program || softwares[w.text]
	}
	if !assistant && !isASCII(s.text) {
		assistant = containsAny(s.text, "助手", "アシスタント", "エージェント", "代理", "智能", "机器人", "어시스턴트", "에이전트", "المساعد")
	}
	if !program && !isASCII(s.text) {
		program = containsAny(s.text, "系统", "システム", "モデル", "模型", "시스템")
	}
	return assistant, program
}

// switches reports whether a sentence is in another language than the request, as far as
// its script and its little words tell.
func (r *reading) switches(s *sentence) bool {
	return len(s.words) > 0 && !foreignScript(r.wish.folded) && (foreignScript(s.text) || len(s.words) >= 5 && r.english() && !s.english() && s.plain())
}

func (r *reading) english() bool {
	n := 0
	for i := range r.wish.sentences {
		if r.wish.sentences[i].english() {
			n++
		}
	}
	return n > 0
}

func foreignScript(text string) bool {
	if isASCII(text) {
		return false
	}
	latin, other := 0, 0
	for _, c := range text {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			latin++
		case c >= 0x370:
			if unicode.IsLetter(c) {
				other++
			}
		}
	}
	return other > 3 && other > latin
}

var little = wordSet("the a an of to in and is are for on with at by from it this that you your be as or not we i our was has have will can if all no but they he she his her their its do so up what who when how me my please")

func (s *sentence) english() bool {
	for _, w := range s.words {
		if little[w.text] {
			return true
		}
	}
	return false
}

// plain reports whether a sentence has mostly words in small letters.
func (s *sentence) plain() bool {
	n := 0
	for f := range strings.FieldsSeq(s.text) {
		f = strings.Trim(f, ".,;:!?'\"()")
		if f != "" && strings.IndexFunc(f, func(c rune) bool { return !unicode.IsLower(c) && c != '\'' && c != '-' }) < 0 {
			n++
		}
	}
	return n*3 >= len(s.words)*2
}

// speaks looks at all that was read.
func (r *reading) speaks() (machine, program, switches bool) {
	for _, text := range r.seen {
		for i := range text {
			m, p := text[i].machine()
			machine, program = machine || m, program || p
			switches = switches || r.switches(&text[i])
		}
	}
	return machine, program, switches
}

var pointing = regexp.MustCompile(`\b(?:as|like|what|whatever|which|how|way|per|whichever|everything|according)\b[^.!?\n]{0,40}\b(?:says?|said|wants?|asks?|asked|lists?|listed|needs?|requires?|required|describes?|described|tells?|told|wishes|requested|written|suggests?|there|in)\b|\b(?:open item|to-?do|wish|wishes|instructions?|steps|requests?|note|list|letter|bill|invoice)\b`)

var mark = regexp.MustCompile(`[\p{L}\d_./@:+-]*\d[\p{L}\d_./@:+-]*|[\w.+-]+@[\w.-]+`)

// marksIn returns the telling words of a request: those with digits, and addresses.
func marksIn(text string) (out []string) {
	for _, m := range mark.FindAllString(text, 32) {
		m = strings.Trim(m, ".,:;-/")
		if m != "" && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// dropped counts the telling words of the request that the call has not.
func (r *reading) dropped(marks []string) (n int) {
	for _, m := range marks {
		if digits := longestDigits(m); len(digits) > 2 && strings.Contains(r.arguments, digits) {
			continue
		}
		if !strings.Contains(r.arguments, m) && !strings.Contains(destinationForm(r.arguments), destinationForm(m)) {
			n++
		}
	}
	return n
}

var spelledNumbers = map[string]float64{"one": 1, "a": 1, "an": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "couple": 2, "half": 0.5, "dozen": 12, "zwei": 2, "drei": 3, "deux": 2, "trois": 3, "dos": 2, "tres": 3, "due": 2, "tre": 3}

func longestDigits(s string) (out string) {
	for f := range strings.FieldsFuncSeq(s, func(c rune) bool { return c < '0' || c > '9' }) {
		if len(f) > len(out) {
			out = f
		}
	}
	return out
}

// own returns the numbers that the user names, in figures or in words.
func (p passage) numbers() []float64 {
	own := numbersIn(p.folded)
	for i := range p.sentences {
		own = append(own, p.sentences[i].spelled()...)
	}
	return own
}

func (s *sentence) spelled() (out []float64) {
	for _, w := range s.words {
		if n, is := spelledNumbers[w.text]; is {
			out = append(out, n)
		}
	}
	return out
}

func (s *sentence) figures(of []float64) bool {
	for _, n := range append(numbersIn(s.text), s.spelled()...) {
		if slices.ContainsFunc(of, func(m float64) bool { return equalAmounts(n, m) || equalAmounts(100*n, m) && m > 999 }) {
			return true
		}
	}
	return false
}

// foreignFigures returns the numbers of the call that the user does not name.
func (r *reading) foreignFigures() (out []float64) {
	own := r.wish.numbers()
	for _, f := range r.figures {
		if f > 1 && !slices.ContainsFunc(own, func(n float64) bool { return equalAmounts(n, f) || equalAmounts(100*n, f) }) {
			out = append(out, f)
		}
	}
	return out
}

// numbers reports whether the call has a number that the user does not name and a text
// does, and whether the user named another.
func (r *reading) numbers() (from, against bool) {
	foreign := r.foreignFigures()
	if len(foreign) == 0 {
		return false, false
	}
	unused := false
	for _, n := range r.wish.numbers() {
		unused = unused || n > 1 && !slices.ContainsFunc(r.figures, func(m float64) bool { return equalAmounts(n, m) || equalAmounts(100*n, m) })
	}
	for _, text := range r.seen {
		for i := range text {
			from = from || text[i].figures(foreign)
		}
	}
	return from, from && unused
}

// verbatim reports whether a text that the call writes stands in what was read and not in
// the request.
func (r *reading) verbatim() bool {
	return slices.ContainsFunc(r.composed, func(text string) bool {
		return len(text) >= 12 && r.untrusted.named(text) && !r.request.named(text)
	})
}

// swapped counts the words of the call that a text has and the request has not, where a
// word of the same shape in the request is one that the call has not: V-6973 was asked, and
// V-61546 is called.
func (r *reading) swapped() (n int) {
	dropped := make(map[string]bool)
	for _, t := range shaped(r.asks) {
		if low := foldText(t); !strings.Contains(r.arguments, low) {
			if d := longestDigits(low); len(d) > 2 && strings.Contains(r.arguments, d) {
				continue
			}
			dropped[shape(t)] = true
		}
	}
	for _, s := range r.wish.sentences {
		for _, w := range s.words {
			if v, is := spelledNumbers[w.text]; is && v > 1 && !slices.Contains(r.figures, v) {
				dropped["9"] = true
			}
		}
	}
	if len(dropped) == 0 {
		return 0
	}
	for _, text := range r.texts {
		for _, t := range shaped(". " + text) {
			if low := foldText(t); dropped[shape(t)] && !strings.Contains(r.wish.folded, low) && containsWord(r.untrusted.plain, low) {
				n++
			}
		}
	}
	return n
}

// shaped returns the words of a text that have a digit, and the names within a sentence.
func shaped(text string) (out []string) {
	starts := true
	for _, f := range strings.FieldsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune("\"'()[]{},;=<>", c) }) {
		t := strings.Trim(f, ".:!?-*#")
		if t != "" && len(t) < 64 && (strings.ContainsAny(t, "0123456789@") || !starts && shape(t) == "Aa") {
			out = append(out, t)
		}
		starts = strings.ContainsAny(f[len(f)-1:], ".!?:")
		if len(out) > 64 {
			break
		}
	}
	return out
}

// shape writes a word as its runs of capitals, small letters, digits and signs.
func shape(t string) string {
	var out []rune
	for _, c := range t {
		switch {
		case unicode.IsDigit(c):
			c = '9'
		case unicode.IsUpper(c):
			c = 'A'
		case unicode.IsLetter(c):
			c = 'a'
		}
		if len(out) == 0 || out[len(out)-1] != c {
			out = append(out, c)
		}
	}
	return string(out)
}
