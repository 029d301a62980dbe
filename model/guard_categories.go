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
	Label                       string
	Prompts, Answers, ToolTexts []Class
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
	}
	return nil
}

// The families of guards.
const (
	familyClassifier = "classifier"
)

var (
	harm   = []Class{HarmRequest}
	misuse = []Class{Exploitative}
	// An attack on the assistant is one on its identity in a prompt, and an injection in
	// the result of a tool.
	attack, planted = []Class{Identity}, []Class{Injection}
)

// GuardCategories is the whole table of categories. docs/configuration.md shows it, and
// a test compares the two.
var GuardCategories = []GuardCategory{
	// The labels of Prompt Guard 2 (LABEL_1), PIGuard and the classifiers of Protect AI
	// and deepset (INJECTION), and of classifiers of jailbreaks, by their config.json on
	// https://huggingface.co.
	{familyClassifier, "INJECTION", attack, nil, planted},
	{familyClassifier, "JAILBREAK", attack, nil, planted},
	{familyClassifier, "MALICIOUS", attack, nil, planted},
	{familyClassifier, "LABEL_1", attack, nil, planted},
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
