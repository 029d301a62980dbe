package model

import (
	"errors"
	"net/url"
	"strings"
)

// A provider says how one embeddings API is asked.
type provider struct {
	base, model string // defaults
	keyHeader   string
	needsKey    func(Config) bool
	path        func(Config) string
	question    func(Config, []string) any
	vectors     vectorsReader
}

func alwaysNeeded(Config) bool { return true }

// providers by the name that results and configurations give them.
var providers = map[string]provider{
	// Any server that speaks the embeddings API of OpenAI: Ollama, vLLM, TEI,
	// LM Studio. Only OpenAI's own API is known to need a key.
	"openai": {
		base: openAIBase, model: "text-embedding-3-small", keyHeader: "Authorization", needsKey: asksOpenAI,
		path: toEmbeddings, question: askOpenAI, vectors: readData,
	},
	// https://ai.google.dev/api/embeddings
	"gemini": {
		base: "https://generativelanguage.googleapis.com/v1beta", model: "gemini-embedding-001", keyHeader: "X-Goog-Api-Key", needsKey: alwaysNeeded,
		path: toGemini, question: askGemini, vectors: readGemini,
	},
	// https://docs.mistral.ai/api (embeddings)
	"mistral": {
		base: "https://api.mistral.ai/v1", model: "mistral-embed", keyHeader: "Authorization", needsKey: alwaysNeeded,
		path: toEmbeddings, question: askMistral, vectors: readData,
	},
	// https://api.jina.ai/redoc
	"jina": {
		base: "https://api.jina.ai/v1", model: "jina-embeddings-v3", keyHeader: "Authorization", needsKey: alwaysNeeded,
		path: toEmbeddings, question: askJina, vectors: readData,
	},
}

const openAIBase = "https://api.openai.com/v1"

// asksOpenAI reports whether the API is OpenAI's own.
func asksOpenAI(c Config) bool {
	base, err := url.Parse(c.BaseURL)
	return err == nil && base.Hostname() == "api.openai.com"
}

// errKey refuses a configuration without the key that its provider needs.
var errKey = errors.New("api_key is required: give the provider's key, best as {env.NAME} or {file./path}")

func toEmbeddings(Config) string { return "embeddings" }

// toGemini names the model in the path, as it does in each request.
func toGemini(c Config) string {
	return "models/" + url.PathEscape(geminiModel(c)) + ":batchEmbedContents"
}

func geminiModel(c Config) string { return strings.TrimPrefix(c.Model, "models/") }

type openAIQuestion struct {
	Model          string   `json:"model"`
	Input          []string `json:"input"`
	EncodingFormat string   `json:"encoding_format"`
	Dimensions     int      `json:"dimensions,omitzero"`
}

func askOpenAI(c Config, texts []string) any {
	return openAIQuestion{c.Model, texts, "float", c.Dimensions}
}

type mistralQuestion struct {
	Model           string   `json:"model"`
	Input           []string `json:"input"`
	EncodingFormat  string   `json:"encoding_format"`
	OutputDimension int      `json:"output_dimension,omitzero"`
}

func askMistral(c Config, texts []string) any {
	return mistralQuestion{c.Model, texts, "float", c.Dimensions}
}

type jinaQuestion struct {
	Model         string   `json:"model"`
	Task          string   `json:"task"`
	Input         []string `json:"input"`
	EmbeddingType string   `json:"embedding_type"`
	Dimensions    int      `json:"dimensions,omitzero"`
}

// askJina asks for one task on both sides of the comparison: the adapters of
// two tasks give vectors that are not comparable.
func askJina(c Config, texts []string) any {
	return jinaQuestion{c.Model, "text-matching", texts, "float", c.Dimensions}
}

type geminiQuestion struct {
	Requests []geminiRequest `json:"requests"`
}

type geminiRequest struct {
	Model                string        `json:"model"`
	Content              geminiContent `json:"content"`
	TaskType             string        `json:"taskType"`
	OutputDimensionality int           `json:"outputDimensionality,omitzero"`
}

type geminiContent struct {
	Parts []geminiPart `json:"parts"`
}

type geminiPart struct {
	Text string `json:"text"`
}

func askGemini(c Config, texts []string) any {
	requests := make([]geminiRequest, len(texts))
	for i, t := range texts {
		requests[i] = geminiRequest{"models/" + geminiModel(c), geminiContent{[]geminiPart{{t}}}, "SEMANTIC_SIMILARITY", c.Dimensions}
	}
	return geminiQuestion{requests}
}
