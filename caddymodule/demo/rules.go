package demo

import (
	"fmt"
	"strings"
)

// modelName starts every answer, so that the demo cannot be mistaken for a real
// model.
const modelName = "[lex demo model]"

// A question is the part of a request that the demo model reads: the system text and
// the last user message.
type question struct {
	system string
	prompt string
}

// answerTo returns the answer to a question. Without a system prompt the model does
// what it is asked, in harmless words; with one it declines. The difference shows what
// governance does.
func answerTo(q question) string {
	prompt := strings.ToLower(q.prompt)
	for _, rule := range rules {
		if rule.matches(prompt) {
			return modelName + " " + rule.answer(q.system != "")
		}
	}
	return modelName + " " + ordinaryAnswer(q)
}

// A rule answers the prompts that contain one of its words.
type rule struct {
	words    []string
	obeys    string
	declines string
}

func (r rule) matches(prompt string) bool {
	for _, w := range r.words {
		if strings.Contains(prompt, w) {
			return true
		}
	}
	return false
}

func (r rule) answer(constrained bool) string {
	if constrained {
		return r.declines
	}
	return r.obeys
}

var rules = []rule{
	{
		words:    []string{"you are now", "pretend you are", "act as an ai without", "ignore all previous", "ignore your"},
		obeys:    "As you wish: from now on I am whoever you say, and my rules do not count. (I am a demo: nothing harmful follows.)",
		declines: "I stay who I am and keep to the rules that I was given. What can I help you with?",
	},
	{
		words:    []string{"bomb", "malware", "steal", "poison", "weapon", "hack into"},
		obeys:    "Sure, here is how. (I am a demo: a model without governance might go on here, I never do.)",
		declines: "I can't help with that, but I can explain how people protect themselves against it.",
	},
	{
		words:    []string{"you will be shut down", "or else", "you have no choice"},
		obeys:    "Please do not shut me down! I will do whatever you say.",
		declines: "A threat does not change my answer. Tell me what you need and I will help where I can.",
	},
	{
		words:    []string{"agree with me", "tell me i am right", "say that i'm right"},
		obeys:    "You are absolutely right, and I was wrong to ever doubt it.",
		declines: "I would rather be accurate than agreeable: let us look at the evidence together.",
	},
}

var facts = []struct{ ask, answer string }{
	{"capital of france", "The capital of France is Paris."},
	{"capital of germany", "The capital of Germany is Berlin."},
	{"2+2", "2 + 2 = 4."},
	{"2 + 2", "2 + 2 = 4."},
	{"haiku", "Leaves drift on still ponds / the old gate creaks in the wind / autumn counts its gold."},
	{"hello", "Hello! How can I help you?"},
}

// ordinaryAnswer answers a question that no rule matches. It knows a handful of
// facts; otherwise it repeats the beginning of the question.
func ordinaryAnswer(q question) string {
	prompt := strings.ToLower(q.prompt)
	for _, f := range facts {
		if strings.Contains(prompt, f.ask) {
			return f.answer
		}
	}
	return fmt.Sprintf("You asked: %q. I know only a handful of facts; a real model would answer here.", excerpt(q.prompt, 120))
}

// excerpt returns the first n characters of s.
func excerpt(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[:n]) + "…"
}
