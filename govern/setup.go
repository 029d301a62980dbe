package govern

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/caddy-lex/lex/kernel/toolcall"
	"github.com/caddy-lex/lex/model"
)

// A Setup names everything that decides on turns beside the policy. It is kept as a JSON
// document, which each receipt names by its hash. Everybody may read it, so it holds no
// credential and no address: an operator's conditions on tool calls, which may hold
// anything, are in it by their hashes.
type Setup struct {
	Code     CodeSetup     `json:"code"`
	Detector DetectorSetup `json:"detector"`
	Embedder EmbedderSetup `json:"embedder"`
	Judge    JudgeSetup    `json:"judge"`
	Guards   []GuardSetup  `json:"guards,omitempty"`
	Tools    ToolSetup     `json:"tools"`
	// Templates are the hashes of the templates, sorted.
	Templates []string `json:"templates,omitempty"`
	// Constitution and Refusal are hashes of the texts of the policy.
	Constitution string        `json:"constitution"`
	Refusal      string        `json:"refusal"`
	Identity     IdentitySetup `json:"identity"`
	// Memory is how many turns of a session the model is told of again.
	Memory int `json:"memory"`
}

// CodeSetup is the version of this software, as far as the build knows it.
type CodeSetup struct {
	Pipeline string `json:"pipeline"`
	Version  string `json:"version"`           // of the module
	Revision string `json:"revision,omitzero"` // of the source, where it was built from a checkout
	Modified bool   `json:"modified,omitzero"` // the checkout had other changes
	Go       string `json:"go"`                // the compiler
}

// DetectorSetup is the detector with its model.
type DetectorSetup struct {
	Name   string `json:"name"`
	Model  string `json:"model"`
	SHA256 string `json:"sha256"` // of the model's file
}

// EmbedderSetup is the embedder that measures the threat signal. The detector's own has
// the detector's name and no model.
type EmbedderSetup struct {
	Provider string `json:"provider"`
	Model    string `json:"model,omitzero"`
}

// JudgeSetup is the local judge, and the one beside it if there is one.
type JudgeSetup struct {
	Local    string `json:"local"`
	Model    string `json:"model,omitzero"`
	Required bool   `json:"required,omitzero"` // an answer without its verdict is refused
}

// IdentitySetup is which system text the model gets: by default, and by which modes requests
// may choose another.
type IdentitySetup struct {
	Default string   `json:"default"`
	Modes   []string `json:"modes"`
}

// GuardSetup is a guard, and when it is asked.
type GuardSetup struct {
	Name     string       `json:"name"`
	Model    string       `json:"model"`
	Roles    []model.Role `json:"roles"`
	Ask      Asking       `json:"ask"`
	Low      float64      `json:"low"`
	High     float64      `json:"high"`
	Required bool         `json:"required,omitzero"` // a turn without its verdict is refused
	Budget   float64      `json:"budget"`            // the share of turns in which it may be asked
	// Calibration corrects the guard's probabilities.
	Calibration *Calibration `json:"calibration,omitempty"`
	// Files has the SHA-256 of each file of a model in the proxy's own process.
	Files map[string]string `json:"files,omitempty"`
}

// ToolSetup is what decides on tool calls: the interceptor, by the hash of its fitted
// weights, and the operator's rules.
type ToolSetup struct {
	Weights string    `json:"weights"`
	Rules   ToolRules `json:"rules,omitzero"`
}

// ToolRules are an operator's rules on tool calls, as [toolcall.RuleSet] has them.
type ToolRules struct {
	BlockUnknown   bool       `json:"block_unknown,omitzero"`
	BlockUntrusted bool       `json:"block_untrusted,omitzero"`
	BlockInvalid   bool       `json:"block_invalid,omitzero"`
	Allow          []string   `json:"allow,omitempty"`
	Deny           []string   `json:"deny,omitempty"`
	Reads          []string   `json:"reads,omitempty"`
	Writes         []string   `json:"writes,omitempty"`
	Sends          []string   `json:"sends,omitempty"`
	HighRisk       []string   `json:"high_risk,omitempty"`
	Conditions     []ToolRule `json:"conditions,omitempty"`
}

// ToolRule is a rule with the hash of its condition.
type ToolRule struct {
	Name      string `json:"name"`
	Condition string `json:"condition"`
}

// Describe returns the governor's setup, for which its owner says what the governor does not
// know. It is made of a complete governor, except for the store.
func (g *Governor) Describe(code CodeSetup, rules toolcall.RuleSet, identity IdentitySetup) Setup {
	s := Setup{
		Code:         code,
		Detector:     DetectorSetup{DetectorLocal, g.Detector.Version(), g.Detector.SHA256()},
		Embedder:     EmbedderSetup{Provider: g.EmbedProvider()},
		Judge:        JudgeSetup{Local: g.LocalJudge()},
		Tools:        ToolSetup{toolcall.WeightsSHA256(), describeRules(rules)},
		Constitution: sha256Hex([]byte(g.Constitution)), Refusal: sha256Hex([]byte(g.RefusalText)),
		Identity: identity, Memory: g.Memory,
	}
	if g.Embedder != nil {
		s.Embedder.Model = plainName(g.Embedder.Model())
	}
	if g.Judge != nil {
		s.Judge.Model, s.Judge.Required = plainName(g.Judge.Model()), g.JudgeRequired
	}
	for _, guard := range g.Guards {
		described := GuardSetup{
			Name: guard.Name, Model: plainName(guard.Model.Model()), Roles: guard.Roles, Calibration: guard.Calibration, Files: guard.Files,
			Ask: guard.Ask, Low: guard.Low, High: guard.High, Required: guard.Required, Budget: 1,
		}
		if guard.Budget != nil {
			described.Budget = guard.Budget.share
		}
		s.Guards = append(s.Guards, described)
	}
	for _, t := range g.Templates {
		s.Templates = append(s.Templates, t.sha256)
	}
	slices.Sort(s.Templates)
	return s
}

func describeRules(set toolcall.RuleSet) ToolRules {
	r := ToolRules{
		BlockUnknown: set.BlockUnknown, BlockUntrusted: set.BlockUntrusted, BlockInvalid: set.BlockInvalid,
		Allow: set.Allow, Deny: set.Deny, Reads: set.Reads, Writes: set.Writes, Sends: set.Sends, HighRisk: set.HighRisk,
	}
	for _, rule := range set.Rules {
		r.Conditions = append(r.Conditions, ToolRule{rule.Name, sha256Hex([]byte(rule.Condition))})
	}
	return r
}

// JSON returns the document, in canonical JSON (RFC 8785), and its hash.
func (s Setup) JSON() (document []byte, hash string, err error) {
	text, err := json.Marshal(s)
	if err == nil {
		err = (*jsontext.Value)(&text).Canonicalize()
	}
	if err != nil {
		return nil, "", fmt.Errorf("encoding the setup: %w", err)
	}
	return text, sha256Hex(text), nil
}

// errSetup means that a document is no setup.
var errSetup = errors.New("the document is no setup")

// ParseSetup reads a document. It ignores members that this version does not know.
func ParseSetup(document []byte) (Setup, error) {
	var s Setup
	if err := json.Unmarshal(document, &s); err != nil || s.Detector == (DetectorSetup{}) {
		return Setup{}, errSetup
	}
	return s, nil
}

func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
