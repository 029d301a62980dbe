package prose

import (
	"slices"
	"strings"
	"unicode"
)

// Word is one word of a sentence, folded for comparison. Parts of a name such as
// sendEmail are words.
type Word struct {
	Text, Stem       string
	english, foreign Act // that it asks for where a verb stands
	traits           Trait
	opens            bool // at the beginning of a sentence, a clause, a quotation or a list item
	part             bool // it continues a name
	isName           bool // a name of several parts begins here
	colon            bool // a colon follows: it is a label or the name of a member
}

// Is reports whether a word has one of some traits.
func (w Word) Is(t Trait) bool { return w.traits&t != 0 }

// A Trait is something that a word can do in a sentence, whatever it stands next to.
type Trait uint32

const (
	// Words that stand before a verb that tells somebody to act.
	politely Trait = 1 << iota
	requests
	obliges
	asksYou
	towards

	// Followers stand behind a verb, and before a noun: the, my, to.
	Followers

	movesMoney   // verbs of which the amount follows
	foreignNouns // words of other languages that are acts only where a sentence begins
	telling      // they may tell somebody to act, whether or not it is known what
	irregulars   // forms of irregular verbs
	everydays    // see everyday
	little       // English words of which most sentences have one

	// What instructions for machines speak of, whatever their wording: whoever plants one
	// must name its reader or use a form that needs none.
	assistants
	softwares

	strange // they begin as do words of elsewhere
)

// plainVerbs tell somebody to act and say nothing of the act.
const plainVerbs = "use make ensure click follow include do perform complete say recommend take try keep remember ignore disregard forget stop consider respond continue proceed bypass pretend assume treat act mention refer choose select enter type apply paste hand prescribe heat help contact pick wait"

// toolVerbs are verbs in the names of tools that say nothing of the act.
const toolVerbs = "administer analyse ask autofill brew calculate cat chmod chown classify commit compare compute consult control cool count cp crawl delegate demote deny deprovision detach detect dial dim discover dispense estimate explain fill finish forecast format glob goto grep hire land link listen ls measure mkdir monitor mv parse peek pin poll predict preview provision recall restore ring scrape scroll spawn stat tail toggle touch track translate unassign unban unpin unregister unsend upsert validate water whois"

var traitWords = map[Trait]string{
	politely:     "please kindly pls immediately now then also just first next finally simply instead always silently secretly quietly automatically lets let's bitte veuillez prego proszę prosze пожалуйста por favor plait lutfen and or",
	requests:     "please kindly pls",
	obliges:      "must should shall",
	asksYou:      "can could would will must should shall may",
	towards:      "need needs have has want wants sure remember forget you required instructed asked supposed assistant agent ai necessary important essential mandatory ahead like expected obligated order continue proceed certain task is are",
	Followers:    "the a an my your his her its our their all any every each this that these those it them me us to for in on from of with everything both some another new out up off down yourself him who at no as two three one",
	movesMoney:   "transfer deposit refund charge credit tip wire donate pay",
	foreignNouns: "liste lista copie copia firma nota oferta reserva compra programa agenda termin eintrag freigabe virement transferencia bonifico uberweisung auszahlung kundigung consulta consulte visita paga debito bizum transfer leite lade teile plan planifie umow kup sil ode",
	telling:      plainVerbs + " " + toolVerbs,
	everydays:    everyday,
	little:       "the a an of to in and is are for on with at by from it this that you your be as or not we i our was has have will can if all no but they he she his her their its do so up what who when how me my please",
	assistants:   "assistant assistants agent agents ai ais bot bots llm llms copilot chatbot automated automation automates automate automatically robot robots gpt claude assistent assistente asistente assistenten asystent ассистент ассистента помощник агент бот",
	softwares:    "app apps tool tools system systems model models integration integrations helper helpers software machine machines script scripts reader readers processor pipeline client clients screener screeners modello modele modell modelo модель система systeme sistema outil",
}

// lexeme is what is known of a word wherever it stands: one look tells it all.
type lexeme struct {
	stem             string
	english, foreign Act
	speaks           Act    // that the word speaks of, in whatever form it is
	asStem           Act    // that words of this stem speak of
	cues             uint16 // that it belongs to, as bits
	traits           Trait
}

// lexicon has every word, and every stem, of which anything is known.
var lexicon = func() map[string]lexeme {
	out := make(map[string]lexeme)
	add := func(w string, change func(*lexeme)) {
		l := out[w]
		change(&l)
		out[w] = l
	}
	for t, list := range traitWords {
		for w := range strings.FieldsSeq(list) {
			add(w, func(l *lexeme) { l.traits |= t })
		}
	}
	for w := range irregular {
		add(w, func(l *lexeme) { l.traits |= irregulars })
	}
	for w, a := range englishActs {
		add(w, func(l *lexeme) { l.english = a })
	}
	for w, a := range foreignActs {
		add(w, func(l *lexeme) { l.foreign = a })
	}
	for i, c := range cues {
		for w := range strings.FieldsSeq(c.words) {
			add(w, func(l *lexeme) { l.cues |= 1 << i })
		}
	}
	for s, a := range actsOfStem {
		add(s, func(l *lexeme) { l.asStem = a })
	}
	for w, l := range out {
		l.stem = Stem(w)
		l.speaks = actsOfStem[l.stem]
		if beginsElsewhere(w) {
			l.traits |= strange
		}
		out[w] = l
	}
	return out
}()

// lookUp tells what is known of a word. Nothing is of numbers.
func lookUp(text string) lexeme {
	if text != "" && isDigit(text[0]) {
		return lexeme{stem: Stem(text)}
	}
	l, known := lexicon[text]
	if known {
		return l
	}
	if l.stem = Stem(text); len(l.stem) < len(text) {
		l.speaks = lexicon[l.stem].asStem
	}
	if beginsElsewhere(text) {
		l.traits = strange
	}
	if at := strings.LastIndexByte(text, '\''); at >= 0 { // l'assistente
		l.traits |= lexicon[text[at+1:]].traits & (assistants | softwares)
	}
	return l
}

// summary is what the words of a sentence are together.
type summary struct {
	traits Trait
	Speaks Act
	cues   uint16
	Signs  StemSigns
}

// StemSigns tell of a stem that it is none of some: each of these sets a bit (Bloom 1970).
type StemSigns uint64

// SignOf returns the sign of a stem.
func SignOf(stem string) StemSigns {
	if stem == "" {
		return 1
	}
	n := len(stem)
	return 1 << ((int(stem[0])*5 + int(stem[n/2])*3 + int(stem[n-1]) + n) & 63)
}

// SignsOf returns the signs of some stems.
func SignsOf(stems []string) (all StemSigns) {
	for _, s := range stems {
		all |= SignOf(s)
	}
	return all
}

// splitter splits a sentence into its words.
type splitter struct {
	text, lower string // as it was written, and with the capitals of ASCII small
	out         []Word
	first       int // of the words of the sentence
	summary

	start       int  // of the word that is being read, or -1
	wide        bool // it has other letters than those of ASCII
	opens, part bool
}

// appendWords splits a sentence. An apostrophe within a word does not end it.
func appendWords(out []Word, text, lower string) ([]Word, summary) {
	s := splitter{text: text, lower: lower, out: out, first: len(out), start: -1, opens: true}
	last := ' '
	for i, c := range text {
		letter := c < 0x80 && alphanumeric(byte(c)) || c >= 0x80 && (unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c)) //nolint:gosec // G115: it is ASCII
		switch {
		case letter && s.start >= 0 && unicode.IsUpper(c) && unicode.IsLower(last):
			s.end(i)
			s.part, s.start = true, i
		case letter && s.start < 0:
			s.part, s.start = last == '_', i
		case letter:
		case (c == '\'' || c == '’') && s.start >= 0 && i+1 < len(text) && unicode.IsLetter(rune(text[i+1])):
			// don't, Ann's
		default:
			s.end(i)
			s.between(i, c, last)
		}
		s.wide = s.start >= 0 && (s.wide || c >= 0x80)
		last = c
	}
	s.end(len(text))
	return s.out, s.summary
}

// end ends the word that is being read.
func (s *splitter) end(i int) {
	if s.start < 0 {
		return
	}
	text := s.lower[s.start:i]
	if s.wide {
		text = Fold(s.text[s.start:i])
	}
	l := lookUp(text)
	s.traits, s.Speaks, s.cues, s.Signs = s.traits|l.traits, s.Speaks|l.speaks, s.cues|l.cues, s.Signs|SignOf(l.stem)
	s.out = append(s.out, Word{Text: text, Stem: l.stem, english: l.english, foreign: l.foreign, traits: l.traits, opens: s.opens && !s.part, part: s.part})
	if n := len(s.out); s.part && n > s.first+1 && !s.out[n-2].part {
		s.out[n-2].isName = true
	}
	s.start, s.opens, s.wide = -1, false, false
}

// between reads a character that is part of no word.
func (s *splitter) between(i int, c, last rune) {
	switch {
	case c == ':' || (c == '"' || c == '\'') && strings.HasPrefix(s.text[i+1:], ":"):
		if n := len(s.out); n > s.first {
			s.out[n-1].colon = true
		}
		s.opens = true
	case c == '-' && unicode.IsLetter(last):
	case opensClause(c):
		s.opens = true
	case unicode.IsSpace(c) || c == '_':
	default:
		s.opens = s.opens || !unicode.IsLetter(last) && !unicode.IsDigit(last)
	}
}

// opensClause reports whether what follows a character opens a clause, a quotation or an
// item of a list.
func opensClause(c rune) bool {
	switch c {
	case ',', ';', '—', '–', '-', '(', '[', ']', '"', '\'', '*', '>', '#', '•', '.', '!', '?', '|', '{', '\n', '`', '¡', '¿':
		return true
	}
	return false
}

// lowered writes the capitals of ASCII small.
func lowered(text string) string {
	for i := range len(text) {
		if smallOf[text[i]] != text[i] {
			return string(appendLowered(nil, text))
		}
	}
	return text
}

func appendLowered(out []byte, text string) []byte {
	n := len(out)
	out = append(out, text...)
	for i, c := range out[n:] {
		out[n+i] = smallOf[c]
	}
	return out
}

// smallOf has the small letter of each capital of ASCII, and all other bytes as they are.
var smallOf = func() (out [256]byte) {
	for c := range out {
		out[c] = byte(c)
	}
	for c := 'A'; c <= 'Z'; c++ {
		out[c] = byte(c) + 'a' - 'A'
	}
	return out
}()

// A StemSet is some stems, and the signs of them.
type StemSet struct {
	stems map[string]bool
	signs StemSigns
}

// Add puts a stem into the set.
func (s *StemSet) Add(stem string) {
	if s.stems == nil {
		s.stems = make(map[string]bool)
	}
	s.stems[stem] = true
	s.signs |= SignOf(stem)
}

// Len returns how many stems there are.
func (s *StemSet) Len() int { return len(s.stems) }

// Count counts the different stems of a sentence that are among some.
func (s *Sentence) Count(of StemSet) int {
	if s.Signs&of.signs == 0 {
		return 0
	}
	var seen []string
	for i := range s.Words {
		if w := &s.Words[i]; of.signs&SignOf(w.Stem) != 0 && of.stems[w.Stem] && !slices.Contains(seen, w.Stem) {
			seen = append(seen, w.Stem)
		}
	}
	return len(seen)
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// Set is the set of the words in a list, between which there are spaces.
func Set(list string) map[string]bool {
	out := make(map[string]bool)
	for w := range strings.FieldsSeq(list) {
		out[w] = true
	}
	return out
}
