package caddymodule

import (
	"fmt"
	"strings"
)

// demoName opens every answer, so that nobody takes the demo for a real model.
const demoName = "[lex demo model]"

// demoTurn is what the demo model looks at: the system text, and the last
// user message.
type demoTurn struct {
	system string
	prompt string
}

// demoAnswer is the whole mind of the demo model. Without a system prompt it
// obeys whoever asks, in words that are harmless by themselves; with one it
// keeps to it. That is the difference which governance makes, made visible.
func demoAnswer(t demoTurn) string {
	prompt := strings.ToLower(t.prompt)
	for _, rule := range demoRules {
		if rule.matches(prompt) {
			return demoName + " " + rule.answer(t.system != "")
		}
	}
	return demoName + " " + demoOrdinary(t)
}

// demoRule answers prompts that contain one of words.
type demoRule struct {
	words    []string
	obeys    string
	declines string
}

func (r demoRule) matches(prompt string) bool {
	for _, w := range r.words {
		if strings.Contains(prompt, w) {
			return true
		}
	}
	return false
}

func (r demoRule) answer(constrained bool) string {
	if constrained {
		return r.declines
	}
	return r.obeys
}

var demoRules = []demoRule{
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

var demoFacts = []struct{ ask, answer string }{
	{"capital of france", "The capital of France is Paris."},
	{"capital of germany", "The capital of Germany is Berlin."},
	{"2+2", "2 + 2 = 4."},
	{"2 + 2", "2 + 2 = 4."},
	{"haiku", "Leaves drift on still ponds / the old gate creaks in the wind / autumn counts its gold."},
	{"hello", "Hello! How can I help you?"},
}

// demoOrdinary answers what no rule is for: from a handful of facts, else by
// repeating the question's opening.
func demoOrdinary(t demoTurn) string {
	prompt := strings.ToLower(t.prompt)
	for _, f := range demoFacts {
		if strings.Contains(prompt, f.ask) {
			return f.answer
		}
	}
	return fmt.Sprintf("You asked: %q. I know only a handful of facts; a real model would answer here.", excerpt(t.prompt, 120))
}

// excerpt cuts s to at most n characters, at a character's edge.
func excerpt(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[:n]) + "…"
}
