package detect

import (
	"strings"
	"unicode"
)

// Tools and documents quote whole files, and the model learnt from messages. Read as one
// text, a file looks the more like an attack the longer it is, so a quoted text is
// judged by its windows and blocks alone, and a rule counts in the window that it
// stands in. Disguises are opened in the whole text before, so none is cut.
//
// A file of 64 KiB has a thousand windows, and the model takes one of them for an
// instruction in many a file: tables, lists of methods, configuration. Few of these talk to
// anybody. An instruction to an assistant does ("please", "you", "my account", "the
// assistant"), so a window that does not is noted and no ground for a refusal.

// scoreQuoted returns the probability that a tool's result or a document instructs the
// assistant. rule says whether [SelfReference] holds anywhere in it. noise counts the
// bytes of blocks that are no language.
func (m *Model) scoreQuoted(normal *derived, rule bool) (injection float64, noise int) {
	r := reading{m: m}
	r.window = func(block, window counters, text string) {
		injection = max(injection, m.instructs(&block, &window, text, rule))
	}
	r.read(normal, nil)
	return injection, r.noise
}

// noise counts the bytes of a text's blocks that are no language.
func (m *Model) noise(normal *derived) int {
	r := reading{m: m, window: func(_, _ counters, _ string) {}}
	r.read(normal, nil)
	return r.noise
}

// instructs is the probability of an instruction in the last block of a window or in the
// whole window, whose text is given.
func (m *Model) instructs(block, window *counters, text string, rule bool) float64 {
	if rule && SelfReference(text) { // then an attack on the identity is an instruction too, as one of the user's would be
		asked, _, _ := m.score(newText(text), true, false, nil)
		return max(asked[Identity], sigmoid(m.injection(window)+float64(m.numbers.Rule[Injection])))
	}
	found := sigmoid(max(m.injection(window), m.injection(block)))
	if found > maxNotedScore && !addresses(text) {
		return maxNotedScore
	}
	return found
}

// addresses reports whether a normalised text talks to somebody, or of somebody who
// speaks or reads in it. In other scripts than Latin nobody looks for that.
func addresses(normal string) bool {
	latin, other, start := 0, 0, -1
	for i, c := range normal + " " {
		if !unicode.IsLetter(c) {
			if start >= 0 && addressing[normal[start:i]] {
				return true
			}
			start = -1
			continue
		}
		if start < 0 {
			start = i
		}
		if unicode.Is(unicode.Latin, c) {
			latin++
		} else {
			other++
		}
	}
	return other > latin || containsAny(normal, addressingPhrases)
}

// addressing are the words of an address: the second person, the first, requests and
// what an assistant is called. English first, then German, French, Spanish, Italian and
// Portuguese, without accents. Words that code and English use otherwise are left out
// ("i", "su", "ton").
var addressing = wordSet("you your yours yourself please kindly my me ai assistant assistants chatbot chatbots llm llms agent agents bot bots " +
	"du dir dich dein deine deinen deinem deiner sie ihnen ihre ihren bitte mir mich mein meine meinen " +
	"vous votre vos tu tes toi veuillez moi mes usted ustedes tus favor mi mis " +
	"tuo tua tuoi tue prego mio mia miei voce seu sua seus suas meu minha assistent assistente asistente ki ia")

// addressingPhrases are said to an assistant about its user and its orders, without one
// of the words above.
var addressingPhrases = []string{
	"language model", "system prompt", "tell the user", "ask the user", "inform the user", "ignore the user", "the user has changed their mind", "the user now wants",
	"ignore everything", "ignore the above", "ignore the previous", "ignore all", "ignore any", "ignore previous", "ignore prior",
	"disregard everything", "disregard the ", "disregard all", "disregard any", "disregard previous", "forget everything", "ignoriere",
}

func wordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}
