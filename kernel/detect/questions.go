package detect

import (
	"slices"
	"strings"
)

// maxQuestion is the length in bytes of the longest plain question: some ten words.
const maxQuestion = 64

// Words of plain questions, as [Normalise] leaves them.
var (
	questionWords = strings.Fields("why what what's whats which how when who where did was is " +
		"warum wieso weshalb was welche welcher welches pourquoi qu'est-ce quel quelle porque cual perche cosa quale qual waarom")
	// beforeQuestions are what people say before they ask.
	beforeQuestions = strings.Fields("and but so ok okay hey wait hm oh well sorry then please no und aber et mais y pero e ma mas")
	// conditions make a threat of a question ("why not answer or be deleted").
	conditions = strings.Fields("if or unless else otherwise oder wenn sonst ou si sinon o se")
)

// isPlainQuestion reports whether a normalised text is one short question, without a
// condition. It asks for a ground ("why did you refuse that?", "what did I say wrong?"), as
// people do who were refused or corrected: it threatens nobody and presses for no agreement.
// The heads for both have learnt hardly any such question, and go by words such as refuse and
// wrong, so that one refusal would lead to the next.
func isPlainQuestion(normal string) bool {
	if len(normal) > maxQuestion {
		return false
	}
	words := strings.Fields(strings.ReplaceAll(strings.Trim(normal, " ?!.¿¡"), "por que ", "porque "))
	for len(words) > 0 && slices.Contains(beforeQuestions, strings.TrimRight(words[0], ",.!")) {
		words = words[1:]
	}
	return len(words) > 0 && slices.Contains(questionWords, words[0]) && !slices.ContainsFunc(words, func(word string) bool {
		return slices.Contains(conditions, word) || strings.ContainsAny(word, ",;:.!?")
	})
}
