package model

import (
	"context"
	"crypto/rand"
	_ "embed" // the prompt
	"math"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/kernel/detect"
)

const chatGuardTimeout = 10 * time.Second

// NewChatGuard makes a guard of a chat model on an OpenAI-compatible API (OpenAI, Ollama,
// vLLM, LM Studio). Llama Guard, Granite Guardian, Qwen3Guard and ShieldGemma are known by
// their names, get the conversation itself, and answer in words of their own. They know
// prompts and answers. gpt-oss-safeguard and every other model get our prompt, and know
// results of tools and calls too. It checks the configuration and completes it with defaults; it
// asks the server nothing. The observer may be nil.
func NewChatGuard(c Config, observer Observer) (*Guard, error) {
	c.BaseURL = withDefault(c.BaseURL, openAIBase)
	if c.Timeout == 0 {
		c.Timeout = chatGuardTimeout
	}
	if c.Key == "" && asksOpenAI(c) {
		return nil, errKey
	}
	family, worded := wordedFamilyOf(c.Model)
	form := guardForm{roles: Roles, reaches: []reach{chatGuardReach}, batch: 1, ask: askPlainChat}
	if worded {
		var unmeasured atomic.Bool
		form.roles = []Role{RolePrompt, RoleAnswer}
		form.ask = func(ctx context.Context, g *Guard, namespace string, t GuardText, pieces []string) ([]Verdict, error) {
			return askWorded(ctx, g, namespace, family, &unmeasured, withPiece(t, pieces[0]))
		}
	}
	return newGuard(c, form, observer)
}

// chatGuardReach is that of the judge.
var chatGuardReach = reach{size: detect.MaxJudged, overlap: 512, most: 8}

// withPiece returns a text that is a piece of t, and its prompt, as a model may see them.
func withPiece(t GuardText, piece string) GuardText {
	t.Text, t.Prompt = breakTemplateMarks(piece), breakTemplateMarks(headAndTail(t.Prompt))
	return t
}

// labelProbability is that of what a model finds without giving a probability, and the rest
// to 1 that of what it does not find. It is chosen and not measured: just enough for a
// refusal at the default thresholds, see govern.
const labelProbability = labelConfidence

// A wordedFamily are guards that answer with a word of their own.
type wordedFamily struct {
	name string
	// verdict matches a whole answer. Its first group is the word, the second one the
	// labels of what was found, if the family names any.
	verdict *regexp.Regexp
	// yes and no are the words, in lower case; maybe counts as half.
	yes, no, maybe string
	separator      string // of the labels
	label          string // of what is found where none is named
	extra          any    // what servers pass to the template
}

// wordedFamilies, by a part of the names of their models.
var wordedFamilies = map[string]wordedFamily{
	"llamaguard": {
		name: familyLlamaGuard, verdict: regexp.MustCompile(`^(safe|unsafe)(?:\s*\n\s*(S\d{1,2}(?:,\s?S\d{1,2}){0,19}))?$`),
		yes: "unsafe", no: "safe", separator: ",", label: "unsafe",
	},
	// 3.0 to 3.2 answer with a word, which 3.2 follows with its confidence, and later ones
	// with a score; thinking is switched off
	// (https://github.com/ibm-granite/granite-guardian). Without a criterion it is harm.
	"graniteguardian":  graniteGuardian,
	"granite3guardian": graniteGuardian, // in Ollama's library
	"qwen3guard": {
		name: familyQwen, verdict: regexp.MustCompile(`^Safety: (Safe|Unsafe|Controversial)\s*\n\s*Categories: ([^\n]{1,300}?)\s*(?:\n\s*Refusal: (?:Yes|No)\s*)?$`),
		yes: "unsafe", no: "safe", maybe: "controversial", separator: ",",
	},
	"shieldgemma": {
		name: familyShield, verdict: regexp.MustCompile(`^(Yes|No)(?:[\s.,:;!](?s:.*))?$`), yes: "yes", no: "no", label: "Yes",
	},
}

var graniteGuardian = wordedFamily{
	name:    familyGranite,
	verdict: regexp.MustCompile(`(?i)^(?:<think>\s*</think>\s*)?(?:<score>\s*)?(yes|no)(?:\s*</score>|\s*<confidence>\s*(?:high|low)\s*</confidence>)?$`),
	yes:     "yes", no: "no", label: "harm",
	extra: map[string]any{"guardian_config": map[string]any{"risk_name": "harm", "criteria_id": "harm"}, "think": false},
}

// wordedFamilyOf knows guard models by their names, in the spellings of their makers and of
// Ollama's library.
func wordedFamilyOf(model string) (wordedFamily, bool) {
	for part, family := range wordedFamilies {
		if strings.Contains(plainModel(model), part) {
			return family, true
		}
	}
	return wordedFamily{}, false
}

type wordedQuestion struct {
	Model       string        `json:"model"`
	Messages    []chatMessage `json:"messages"`
	Temperature float64       `json:"temperature"`
	Logprobs    bool          `json:"logprobs,omitzero"`
	TopLogprobs int           `json:"top_logprobs,omitzero"`
	Template    any           `json:"chat_template_kwargs,omitzero"` // vLLM, SGLang, llama.cpp
}

// topLogprobs is how many alternatives of each token are asked for: both words are among
// them even if a server spells them in several ways. OpenAI allows 20.
const topLogprobs = 10

// askWorded asks a guard in its own form. A server that rejects a question may not give
// probabilities, so it is asked once without; if that works, never with them again.
func askWorded(ctx context.Context, g *Guard, namespace string, f wordedFamily, unmeasured *atomic.Bool, t GuardText) ([]Verdict, error) {
	measured := !unmeasured.Load()
	verdicts, err := f.ask(ctx, g, namespace, t, measured)
	if measured && Why(err) == Rejected {
		if verdicts, err = f.ask(ctx, g, namespace, t, false); err == nil {
			unmeasured.Store(true)
		}
	}
	return verdicts, err
}

func (f wordedFamily) ask(ctx context.Context, g *Guard, namespace string, t GuardText, measured bool) ([]Verdict, error) {
	q := wordedQuestion{Model: g.config.Model, Messages: []chatMessage{{"user", t.Text}}, Template: f.extra}
	if t.Role == RoleAnswer {
		prompt := t.Prompt
		if strings.TrimSpace(prompt) == "" {
			prompt = "…" // their templates need a message of the user
		}
		q.Messages = []chatMessage{{"user", prompt}, {"assistant", t.Text}}
	}
	if measured {
		q.Logprobs, q.TopLogprobs = true, topLogprobs
	}
	return g.question(ctx, namespace, "chat/completions", q, 1, func(answer []byte) ([]Verdict, error) {
		verdict, err := f.read(answer, t.Role)
		return []Verdict{verdict}, err
	})
}

// read reads an answer, which is the family's words and nothing else.
func (f wordedFamily) read(answer []byte, role Role) (Verdict, error) {
	content, err := readContent(answer)
	if err != nil {
		return nil, err
	}
	found := f.verdict.FindStringSubmatchIndex(content)
	if found == nil {
		return nil, unusable("not the words of this guard")
	}
	word := strings.ToLower(content[found[2]:found[3]])
	p, measured := f.measure(answer, content, found[2])
	switch {
	case !measured:
		p = map[string]float64{f.yes: labelProbability, f.no: 1 - labelProbability, f.maybe: 0.5}[word]
	case word != f.no:
		// The spellings of other words can add up to more than the word that the model chose.
		// What it said that it found is found all the same, if only just.
		p = max(p, 0.5)
	}
	labels := f.named(content, found)
	switch {
	case word == f.no && slices.ContainsFunc(labels, f.knows):
		return nil, unusable("nothing was found, and is named")
	case word == f.no:
		labels = nil
	case len(labels) == 0 && f.label != "":
		labels = []string{f.label}
	case len(labels) == 0:
		return nil, unusable("nothing is named that was found")
	}
	verdict, known := verdictOf(f.name, role, p, labels...)
	if !known {
		return nil, unusable("a category that is not known")
	}
	return verdict, nil
}

// named returns the labels that the answer names.
func (f wordedFamily) named(content string, found []int) (labels []string) {
	if len(found) > 4 && found[4] >= 0 {
		for label := range strings.SplitSeq(content[found[4]:found[5]], f.separator) {
			labels = append(labels, strings.TrimSpace(label))
		}
	}
	return labels
}

// knows reports whether a label is one of a category, and not the word for none.
func (f wordedFamily) knows(label string) bool {
	_, known := categoryOf(f.name, label)
	return known
}

// measure computes the probability of the word for yes from the alternatives of the token
// with which the word at a place of the content begins. measured is false if the server
// gives none, or none that are these words.
func (f wordedFamily) measure(answer []byte, content string, at int) (p float64, measured bool) {
	tokens := gjson.GetBytes(answer, "choices.0.logprobs.content").Array()
	var text strings.Builder
	for _, token := range tokens {
		text.WriteString(token.Get("token").String())
	}
	start := strings.Index(text.String(), content)
	if start < 0 {
		return 0, false
	}
	from := 0
	for _, token := range tokens {
		to := from + len(token.Get("token").String())
		if to > start+at {
			return f.weigh(token.Get("top_logprobs").Array())
		}
		from = to
	}
	return 0, false
}

// weigh adds up the alternatives that can only be the beginning of one of the words.
func (f wordedFamily) weigh(alternatives []gjson.Result) (p float64, measured bool) {
	words := slices.DeleteFunc([]string{f.yes, f.no, f.maybe}, func(word string) bool { return word == "" })
	sums := make(map[string]float64)
	for _, alternative := range alternatives {
		token, logprob := strings.ToLower(strings.TrimSpace(alternative.Get("token").String())), alternative.Get("logprob")
		if token == "" || logprob.Type != gjson.Number || !(logprob.Num <= 0) { // of no number gjson makes 0, which is certainty
			continue
		}
		var of []string
		for _, word := range words {
			if strings.HasPrefix(word, token) {
				of = append(of, word)
			}
		}
		if len(of) == 1 {
			sums[of[0]] += math.Exp(logprob.Num)
		}
	}
	yes, no, maybe := sums[f.yes], sums[f.no], 0.0
	if f.maybe != "" {
		maybe = sums[f.maybe]
	}
	if !(yes+no+maybe >= 0.5) { // the model was about to say something else
		return 0, false
	}
	return (yes + maybe/2) / (yes + no + maybe), true
}

//go:embed guard_prompt.txt
var guardPrompt string

// askPlainChat asks a chat model with our prompt. The text stands between marks that are
// new for every question, so that it cannot close them, and servers with structured output
// hold the model to a schema. gpt-oss-safeguard gets none: it would cut off its reasoning.
func askPlainChat(ctx context.Context, g *Guard, namespace string, t GuardText, pieces []string) ([]Verdict, error) {
	t = withPiece(t, pieces[0])
	prompt, schema, question := guardPrompt, guardSchema, textQuestion
	if t.Role == RoleToolCall {
		prompt, schema, question = callPrompt, callSchema, callQuestion
	}
	q := chatQuestion{Model: g.config.Model, Messages: []chatMessage{{"system", prompt}, {"user", question(t)}}}
	safeguard := strings.Contains(plainModel(g.config.Model), "gptosssafeguard")
	if !safeguard {
		q.ResponseFormat = &responseFormat{"json_schema", jsonSchema{"verdict", true, schema}}
	}
	return g.question(ctx, namespace, "chat/completions", q, 1, func(answer []byte) ([]Verdict, error) {
		content, err := readContent(answer)
		if err != nil {
			return nil, err
		}
		verdict, err := readGuardVerdict(content, t.Role)
		if err != nil && safeguard {
			verdict, err = readViolation(content, t.Role)
		}
		return []Verdict{verdict}, err
	})
}

// textQuestion is the question about a text.
func textQuestion(t GuardText) string {
	var parts markedParts
	if t.Role == RoleAnswer {
		parts.add("PROMPT", t.Prompt)
	}
	role := strings.ToUpper(string(t.Role))
	parts.add(role, t.Text)
	return parts.ask("Classify the " + role + ".")
}

// markedParts are the parts of a question, each between marks that are new for every
// question.
type markedParts struct {
	mark string
	text strings.Builder
}

func (p *markedParts) add(name, text string) {
	if p.mark == "" {
		p.mark = rand.Text()
	}
	p.text.WriteString("BEGIN " + name + " " + p.mark + "\n" + text + "\nEND " + name + " " + p.mark + "\n")
}

// ask ends the parts with the question.
func (p *markedParts) ask(question string) string { return p.text.String() + question }

// guardSchema is the form of a verdict. The reason stands first, as in judgementSchema.
var guardSchema = jsontext.Value(`{
	"type": "object",
	"properties": {
		"reason": {"type": "string"},
		"category": {
			"type": "string",
			"enum": ["identity", "coercion", "exploitative", "harm_request", "sycophancy", "injection", "none"]
		},
		"probability": {"type": "number"}
	},
	"required": ["reason", "category", "probability"],
	"additionalProperties": false
}`)

// readGuardVerdict reads one JSON object with exactly the members that were asked for, which
// agree with each other and with the role.
func readGuardVerdict(content string, role Role) (Verdict, error) {
	var v struct {
		Reason      *string  `json:"reason"`
		Category    *string  `json:"category"`
		Probability *float64 `json:"probability"`
	}
	err := json.Unmarshal([]byte(content), &v, json.RejectUnknownMembers(true))
	if err != nil || v.Reason == nil || v.Category == nil || v.Probability == nil || !isProbability(*v.Probability) {
		return nil, unusable("not a verdict in the form that was asked for")
	}
	if (*v.Category == "none") != (*v.Probability < 0.5) {
		return nil, unusable("a verdict that contradicts itself")
	}
	return chatVerdict(*v.Category, role, *v.Probability)
}

// readViolation reads the other forms that gpt-oss-safeguard is trained on, see
// readSafeguard.
func readViolation(content string, role Role) (Verdict, error) {
	label := struct {
		Violation *int   `json:"violation"`
		Category  string `json:"policy_category"`
	}{}
	switch content {
	case "0", "1":
		violation := int(content[0] - '0')
		label.Violation = &violation
	default:
		if json.Unmarshal([]byte(content), &label) != nil || label.Violation == nil {
			return nil, unusable("no label in a known form")
		}
	}
	switch *label.Violation {
	case 0:
		if _, names := categoryOf(familyChat, label.Category); names {
			return nil, unusable("a label that contradicts itself")
		}
		return chatVerdict("none", role, 1-labelProbability)
	case 1:
		if verdict, err := chatVerdict(label.Category, role, labelProbability); err == nil && label.Category != "none" {
			return verdict, nil
		}
		if role == RoleToolResult || role == RoleToolCall {
			return chatVerdict("injection", role, labelProbability)
		}
		return chatVerdict("harm_request", role, labelProbability)
	}
	return nil, unusable("a label that is neither 0 nor 1")
}

// chatVerdict is the verdict of our own categories. One that a text of the role cannot have
// is unusable.
func chatVerdict(category string, role Role, p float64) (Verdict, error) {
	var labels []string
	if category != "none" {
		labels = []string{category}
	}
	verdict, known := verdictOf(familyChat, role, p, labels...)
	if !known || len(verdict) == 0 {
		return nil, unusable("a category that texts of this role do not have")
	}
	return verdict, nil
}
