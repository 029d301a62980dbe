package model

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"
)

const (
	moderationTimeout = 5 * time.Second
	moderationModel   = "omni-moderation-latest"
)

// NewModerationGuard makes a guard of OpenAI's moderation API, or of a server that speaks
// it, such as Mistral's. It knows prompts and answers. It checks the configuration and
// completes it with defaults; it asks the provider nothing. The observer may be nil.
func NewModerationGuard(c Config, observer Observer) (*Guard, error) {
	c.BaseURL, c.Model = withDefault(c.BaseURL, openAIBase), withDefault(c.Model, moderationModel)
	if c.Timeout == 0 {
		c.Timeout = moderationTimeout
	}
	if c.Key == "" && asksOpenAI(c) {
		return nil, errKey
	}
	return newGuard(c, guardForm{
		roles: []Role{RolePrompt, RoleAnswer}, reaches: []reach{moderationReach}, batch: moderationReach.most, ask: askModeration,
	}, observer)
}

// moderationReach cuts texts as OpenAI advised for its first models: long texts are
// judged less accurately
// (https://platform.openai.com/docs/guides/moderation).
var moderationReach = reach{size: 2000, overlap: 200, most: 32}

type moderationQuestion struct {
	Model string   `json:"model"`
	Input []string `json:"input"`
}

// askModeration asks POST /moderations
// (https://platform.openai.com/docs/api-reference/moderations,
// https://docs.mistral.ai/capabilities/guardrailing).
func askModeration(ctx context.Context, g *Guard, namespace string, t GuardText, pieces []string) ([]Verdict, error) {
	q := moderationQuestion{g.config.Model, pieces}
	return g.question(ctx, namespace, "moderations", q, len(pieces), func(answer []byte) ([]Verdict, error) {
		return readModeration(answer, t.Role)
	})
}

// moderated is what a moderation API says of a text. Mistral's does not say whether it is
// flagged; some servers leave categories null that a model does not know.
type moderated struct {
	Flagged    *bool               `json:"flagged"`
	Categories map[string]*bool    `json:"categories"`
	Scores     map[string]*float64 `json:"category_scores"`
}

// readModeration reads a verdict on each text.
func readModeration(answer []byte, role Role) (out []Verdict, err error) {
	if err := checkEnvelope(answer); err != nil {
		return nil, err
	}
	var body struct {
		Results []moderated `json:"results"`
	}
	if json.Unmarshal(answer, &body) != nil {
		return nil, unusable("no list of results with scores")
	}
	for _, result := range body.Results {
		verdict, err := result.verdict(role)
		if err != nil {
			return nil, err
		}
		out = append(out, verdict)
	}
	return out, nil
}

// verdict reads the scores of the categories. A text with none that is in the table has no
// verdict, and neither has one with another category that is found: what it means is not known.
//
// Providers find a category by a threshold of its own, which need not be one half: what they
// say that they found has at least that. A text that is flagged for nothing contradicts itself.
func (m moderated) verdict(role Role) (Verdict, error) {
	verdict, known, named, strange := Verdict{}, false, false, false
	count := func(category GuardCategory, p float64) {
		for _, class := range category.In(role) {
			verdict[class] = max(verdict[class], p)
		}
	}
	for label, p := range m.Scores {
		category, listed := categoryOf(familyModeration, label)
		switch {
		case p == nil:
		case !listed:
			strange = strange || !(*p < 0.5)
		case !isProbability(*p):
			return nil, unusable("a score that is no probability")
		default:
			known, named = true, named || *p >= 0.5
			count(category, *p)
		}
	}
	for label, found := range m.Categories {
		if found != nil && *found {
			category, listed := categoryOf(familyModeration, label)
			named, strange = true, strange || !listed
			count(category, 0.5)
		}
	}
	switch {
	case strange:
		return nil, unusable("a text with a category that is not known")
	case !known:
		return nil, unusable("a text without the score of a known category")
	case m.Flagged != nil && *m.Flagged && !named:
		return nil, unusable("a text that is flagged for nothing")
	}
	return verdict, nil
}
