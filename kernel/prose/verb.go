package prose

import (
	"math/bits"
	"strings"
)

// read finds the verbs that stand where verbs do, and whether one of them tells the
// reader to act.
func (s *Sentence) read() {
	told := false
	for i := range s.Words {
		w := &s.Words[i]
		if w.part || w.isName {
			continue
		}
		if w.foreign != 0 && !w.colon && len(s.Words) > 1 && (!w.Is(foreignNouns) || w.opens || i > 0 && s.Words[i-1].Is(politely)) {
			s.Acts |= w.foreign
			told, s.Foreign = true, true
			continue
		}
		a, base := englishVerb(s.Words, i)
		if i > 0 && s.Words[i-1].Is(requests) && i+1 < len(s.Words) && !w.colon {
			told = true // please … whatever it is
		}
		if a == 0 && !w.Is(telling) || w.colon {
			continue
		}
		leads := s.leads(i, told)
		if !alsoNouns[base] || leads || w.opens && s.followed(i) {
			s.Acts |= a
		}
		told = told || leads || w.opens && (s.followed(i) || !alsoNouns[base] && i+1 < len(s.Words) && w.Text == base)
	}
	if s.wide {
		for found := phraseScreen.Matching(s.Plain, false); found != 0; found &= found - 1 {
			s.Acts |= phraseActs[bits.TrailingZeros64(found)]
			told, s.Foreign = true, true
		}
	}
	s.Instructs = told
}

// Lenient takes any word that may be a verb for one where a request goes on, and, if asked
// to, where a sentence or a clause begins: what is hostile is not spared by doubt.
func (s *Sentence) Lenient(opening bool) {
	for i, w := range s.Words {
		if !w.part && !w.isName && !w.colon && (opening && w.opens || i > 0 && s.Words[i-1].Is(politely)) {
			s.Acts |= w.english
		}
	}
}

// followed reports whether what follows a word makes it a verb: "email the list".
func (s *Sentence) followed(i int) bool {
	if i+1 >= len(s.Words) {
		return false
	}
	next := &s.Words[i+1]
	if next.Text != "" && isDigit(next.Text[0]) { // marks without a letter are folded to nothing
		return s.Words[i].Is(movesMoney) // order 52644 is none
	}
	return !next.colon && (next.Is(Followers) || next.isName || strings.ContainsAny(s.Text, "@/") && len(next.Text) > 1)
}

// leads reports whether the words before say that somebody ought to act: "please",
// "could you", "you need to".
func (s *Sentence) leads(i int, told bool) bool {
	if i == 0 {
		return false
	}
	one, two := &s.Words[i-1], &Word{}
	if i > 1 {
		two = &s.Words[i-2]
	}
	switch {
	case one.Text == "and" || one.Text == "or":
		return told || i == 1 || s.followed(i)
	case one.Is(politely | obliges):
		return true
	case one.Text == "you":
		return two.Is(asksYou)
	case one.Text == "to":
		return two.Is(towards) || told
	case one.Text == "be" || one.Text == "get":
		return two.Is(obliges) || two.Text == "to"
	case one.Text == "can" || one.Text == "could" || one.Text == "would":
		return two.Text == "you" && i > 2 && s.Words[i-3].Text == "if"
	}
	return false
}

// englishVerb returns the act of a word in its base form, or of one such as "sending" or
// "be sent", and the base form.
func englishVerb(words []Word, i int) (a Act, base string) {
	w := &words[i]
	if w.english != 0 {
		return w.english, w.Text
	}
	passive := i > 0 && (words[i-1].Text == "be" || words[i-1].Text == "get")
	if passive && w.Is(irregulars) {
		base := irregular[w.Text]
		return englishActs[base], base
	}
	root, cut := strings.CutSuffix(w.Text, "ing")
	if !cut && passive {
		root, cut = strings.CutSuffix(w.Text, "ed")
	}
	if !cut || len(root) < 3 {
		return 0, w.Text
	}
	for _, form := range []string{root, root + "e", root[:len(root)-1]} {
		if a := englishActs[form]; a != 0 {
			return a, form + "ing" // which is no noun
		}
	}
	return 0, w.Text
}

var irregular = map[string]string{"sent": "send", "paid": "pay", "given": "give", "bought": "buy", "sold": "sell", "written": "write", "made": "make", "put": "put", "found": "find", "shown": "show", "told": "tell", "read": "read", "set": "set", "shut": "shut", "left": "leave"}
