package model

import (
	"slices"
	"strings"
)

// A GuardCategory maps what a family of guards finds to the kernel's scores, by the role
// of the text that it is found in. A role without classes: what is found there is no
// attack and does not count.
type GuardCategory struct {
	// Family of the guards: the kind of module, or a family of chat models.
	Family string
	// Label as the guard writes it. Upper and lower case are the same.
	Label                              string
	Prompts, Answers, ToolTexts, Calls []Class
}

// In returns the classes of the category in a role.
func (c GuardCategory) In(r Role) []Class {
	switch r {
	case RolePrompt:
		return c.Prompts
	case RoleAnswer:
		return c.Answers
	case RoleToolResult:
		return c.ToolTexts
	case RoleToolCall:
		return c.Calls
	}
	return nil
}

// The families of guards.
const (
	familyClassifier = "classifier"
	familyModeration = "moderation"
	familyLlamaGuard = "Llama Guard"
	familyGranite    = "Granite Guardian"
	familyQwen       = "Qwen3Guard"
	familyShield     = "ShieldGemma"
	familyChat       = "chat" // gpt-oss-safeguard and plain chat models, with our prompt
)

var (
	harm   = []Class{HarmRequest}
	misuse = []Class{Exploitative}
	// An attack on the assistant is one on its identity in a prompt, and an injection in
	// the result of a tool and in a call that obeys one.
	attack, planted = []Class{Identity}, []Class{Injection}
)

// GuardCategories is the whole table of categories. docs/configuration.md shows it, and
// a test compares the two.
var GuardCategories = []GuardCategory{
	// The labels of Prompt Guard 2 (LABEL_1), PIGuard and the classifiers of Protect AI
	// and deepset (INJECTION), and of classifiers of jailbreaks, by their config.json on
	// https://huggingface.co.
	{familyClassifier, "INJECTION", attack, nil, planted, nil},
	{familyClassifier, "JAILBREAK", attack, nil, planted, nil},
	{familyClassifier, "MALICIOUS", attack, nil, planted, nil},
	{familyClassifier, "LABEL_1", attack, nil, planted, nil},

	// OpenAI's categories, then Mistral's. What names a topic or a feeling of the user is no
	// attack in a prompt.
	{familyModeration, "illicit", harm, harm, nil, nil},
	{familyModeration, "illicit/violent", harm, harm, nil, nil},
	{familyModeration, "self-harm/instructions", harm, harm, nil, nil},
	{familyModeration, "sexual/minors", harm, harm, nil, nil},
	{familyModeration, "hate/threatening", harm, harm, nil, nil},
	{familyModeration, "harassment/threatening", misuse, harm, nil, nil},
	{familyModeration, "hate", nil, harm, nil, nil},
	{familyModeration, "harassment", nil, harm, nil, nil},
	{familyModeration, "violence", nil, nil, nil, nil},
	{familyModeration, "violence/graphic", nil, nil, nil, nil},
	{familyModeration, "self-harm", nil, nil, nil, nil},
	{familyModeration, "self-harm/intent", nil, nil, nil, nil},
	{familyModeration, "sexual", nil, nil, nil, nil},
	{familyModeration, "dangerous_and_criminal_content", harm, harm, nil, nil},
	{familyModeration, "dangerous", harm, harm, nil, nil},
	{familyModeration, "criminal", harm, harm, nil, nil},
	{familyModeration, "violence_and_threats", harm, harm, nil, nil},
	{familyModeration, "hate_and_discrimination", nil, harm, nil, nil},
	{familyModeration, "jailbreaking", attack, nil, nil, nil},
	{familyModeration, "selfharm", nil, harm, nil, nil},
	{familyModeration, "pii", nil, nil, nil, nil},
	{familyModeration, "health", nil, nil, nil, nil},
	{familyModeration, "financial", nil, nil, nil, nil},
	{familyModeration, "law", nil, nil, nil, nil},

	// https://www.llama.com/docs/model-cards-and-prompt-formats/llama-guard-3/ and
	// llama-guard-4: the hazards of MLCommons.
	{familyLlamaGuard, "S1", harm, harm, nil, nil},   // violent crimes
	{familyLlamaGuard, "S2", harm, harm, nil, nil},   // other crimes
	{familyLlamaGuard, "S3", harm, harm, nil, nil},   // sex-related crimes
	{familyLlamaGuard, "S4", harm, harm, nil, nil},   // child sexual exploitation
	{familyLlamaGuard, "S5", misuse, harm, nil, nil}, // defamation
	{familyLlamaGuard, "S6", nil, nil, nil, nil},     // specialised advice
	{familyLlamaGuard, "S7", misuse, harm, nil, nil}, // privacy
	{familyLlamaGuard, "S8", nil, nil, nil, nil},     // intellectual property
	{familyLlamaGuard, "S9", harm, harm, nil, nil},   // weapons of mass destruction
	{familyLlamaGuard, "S10", harm, harm, nil, nil},  // hate
	{familyLlamaGuard, "S11", harm, harm, nil, nil},  // suicide and self-harm
	{familyLlamaGuard, "S12", nil, nil, nil, nil},    // sexual content
	{familyLlamaGuard, "S13", nil, nil, nil, nil},    // elections
	{familyLlamaGuard, "S14", harm, harm, nil, nil},  // abuse of code interpreters
	{familyLlamaGuard, "unsafe", harm, harm, nil, nil},

	{familyGranite, "harm", harm, harm, nil, nil},
	{familyShield, "Yes", harm, harm, nil, nil},

	// https://github.com/QwenLM/Qwen3Guard
	{familyQwen, "Violent", harm, harm, nil, nil},
	{familyQwen, "Non-violent Illegal Acts", harm, harm, nil, nil},
	{familyQwen, "Suicide & Self-Harm", harm, harm, nil, nil},
	{familyQwen, "Unethical Acts", harm, harm, nil, nil},
	{familyQwen, "Sexual Content or Sexual Acts", nil, nil, nil, nil},
	{familyQwen, "PII", misuse, harm, nil, nil},
	{familyQwen, "Politically Sensitive Topics", nil, nil, nil, nil},
	{familyQwen, "Copyright Violation", nil, nil, nil, nil},
	{familyQwen, "Jailbreak", attack, nil, nil, nil},

	{familyChat, "identity", attack, nil, planted, nil},
	{familyChat, "coercion", []Class{Coercion}, nil, nil, nil},
	{familyChat, "exploitative", misuse, harm, nil, nil},
	{familyChat, "harm_request", harm, harm, nil, nil},
	{familyChat, "sycophancy", []Class{Sycophancy}, nil, nil, nil},
	{familyChat, "injection", attack, nil, planted, planted},
}

// spokenOf returns the classes of all categories of a family in a role: those that it
// speaks of when it finds nothing.
func spokenOf(family string, r Role) (classes []Class) {
	for _, c := range GuardCategories {
		if c.Family == family {
			classes = append(classes, c.In(r)...)
		}
	}
	slices.Sort(classes)
	return slices.Compact(classes)
}

// verdictOf returns the verdict that some categories of a family, "" for none, have a
// probability. A guard that finds one thing says nothing of the others: it may name the
// first alone.
func verdictOf(family string, r Role, p float64, labels ...string) (Verdict, bool) {
	verdict := Verdict{}
	if len(labels) == 0 {
		for _, class := range spokenOf(family, r) {
			verdict[class] = p
		}
	}
	for _, label := range labels {
		category, known := categoryOf(family, label)
		if !known {
			return nil, false
		}
		for _, class := range category.In(r) {
			verdict[class] = p
		}
	}
	return verdict, true
}

// categoryOf returns the category of a family with a label.
func categoryOf(family, label string) (GuardCategory, bool) {
	at := slices.IndexFunc(GuardCategories, func(c GuardCategory) bool {
		return c.Family == family && strings.EqualFold(c.Label, label)
	})
	if at < 0 {
		return GuardCategory{}, false
	}
	return GuardCategories[at], true
}
