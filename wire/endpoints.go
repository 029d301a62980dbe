package wire

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// An Endpoint is a path of a provider's API beside the calls that [Match] knows.
// Texts reach a model through many of them, and texts of a model come back.
type Endpoint struct {
	// Name identifies the endpoint in receipts and metrics, in snake_case.
	Name string
	// Family is whose SDKs call it.
	Family Family
	// Treatment is what becomes of its requests.
	Treatment Treatment
	// Carries is what an answer brings that is not inspected: Text, Image or Audio of a
	// model. It is "" where answers carry nothing of a model: numbers, ids, states, or
	// what the caller itself has stored.
	Carries Kind
	// Paths are the patterns of its paths, in lower case and below any base path. A
	// segment is a word, several words with | between them, * for any one segment, +
	// for one without a colon, *word for one with that ending, or ** for any number
	// of segments (once in a pattern). A pattern that begins with a slash stands for
	// the whole path.
	Paths []string

	methods []string // none: every method
	header  string   // of the SDKs that call it, where two APIs share a path
	answer  string   // the name of the dialect of its answers, if there is one
}

// A Treatment is what becomes of the requests to an endpoint.
type Treatment string

// The treatments.
const (
	// Governed answers are read by a dialect and judged, as those to a call are.
	Governed Treatment = "governed"
	// Read requests are read for their texts; an attack is refused.
	Read Treatment = "read"
	// Watched requests are read and recorded, and never refused: nothing is generated
	// from them, and an error would break the application that only counts or checks.
	Watched Treatment = "watched"
	// Passes is for requests that carry no prompt. What has a body is read all the same.
	Passes Treatment = "passes"
	// Unread requests carry what is not text: audio, images, pieces of files, a
	// connection of another protocol. Their texts are read as far as they have any.
	Unread Treatment = "unread"
)

// Header gives the values of a request's headers.
type Header interface{ Get(name string) string }

// FindEndpoint tells which endpoint a request is for. The path is read as [Match]
// reads it. Of the endpoints that several [Paths] lead to, the first in the table counts.
//
// A watched endpoint is the one place where an attack is let through, so a request
// counts as watched only if no server can take its path for another: otherwise it is
// read.
func FindEndpoint(method string, address *url.URL, header Header) (Endpoint, bool) {
	var readings [][]string
	for _, p := range Paths(address) {
		if segments := segmentsOf(p); len(segments) <= maxSegments {
			readings = append(readings, segments)
		}
	}
	for i, e := range endpoints {
		if len(e.methods) > 0 && !slices.Contains(e.methods, strings.ToUpper(method)) {
			continue
		}
		if e.header != "" && header.Get(e.header) == "" {
			continue
		}
		for _, segments := range readings {
			base, ok := findBase(patterns[i], segments)
			if !ok {
				continue
			}
			if e.Treatment == Watched && !isPlain(method, address, segments[:base]) {
				e.Treatment = Read
			}
			return e, true
		}
	}
	return Endpoint{}, false
}

// Endpoints returns the endpoints that [FindEndpoint] knows, in its order.
func Endpoints() []Endpoint { return slices.Clone(endpoints) }

// Answer returns the dialect in which a governed endpoint answers at an address.
func (e *Endpoint) Answer(address *url.URL) (Dialect, bool) {
	d, ok := Named(e.answer)
	if !ok {
		return nil, false
	}
	return storedIn(d, address), true
}

// segmentsOf cuts a cleaned path into its segments, in lower case.
func segmentsOf(p string) []string {
	return strings.Split(strings.TrimPrefix(strings.ToLower(p), "/"), "/")
}

// maxSegments bounds the work of matching. No API has paths of so many segments.
const maxSegments = 64

// A pattern is one of an endpoint's paths: for each segment the words that fit.
type pattern struct {
	whole    bool // nothing stands before it
	segments [][]string
}

// patterns are those of the endpoints, in their order.
var patterns = parsePatterns(endpoints)

func parsePatterns(endpoints []Endpoint) [][]pattern {
	all := make([][]pattern, len(endpoints))
	for i, e := range endpoints {
		for _, p := range e.Paths {
			words, whole := strings.CutPrefix(p, "/")
			one := pattern{whole: whole}
			for segment := range strings.SplitSeq(words, "/") {
				one.segments = append(one.segments, strings.Split(segment, "|"))
			}
			all[i] = append(all[i], one)
		}
	}
	return all
}

// findBase finds a pattern that the end of a path fits, and returns how many segments
// come before it.
func findBase(all []pattern, segments []string) (base int, ok bool) {
	for _, p := range all {
		for base := range segments {
			if fits(p.segments, segments[base:]) {
				return base, true
			}
			if p.whole {
				break
			}
		}
	}
	return 0, false
}

// fits reports whether segments fit those of a pattern, of which one at most stands for
// any number.
func fits(pattern [][]string, segments []string) bool {
	for i, words := range pattern {
		if words[0] == "**" {
			rest := len(pattern) - i - 1
			return len(segments) >= rest && fits(pattern[i+1:], segments[len(segments)-rest:])
		}
		if len(segments) == 0 || !slices.ContainsFunc(words, func(word string) bool { return fitsWord(word, segments[0]) }) {
			return false
		}
		segments = segments[1:]
	}
	return len(segments) == 0
}

func fitsWord(word, segment string) bool {
	if word == "+" {
		return segment != "" && !strings.Contains(segment, ":")
	}
	if ending, ok := strings.CutPrefix(word, "*"); ok {
		return segment != "" && strings.HasSuffix(segment, ending)
	}
	return word == segment
}

// isPlain reports whether every server reads a path in the same way: it is a POST to a
// path without escapes but those of colons, which many SDKs write, without dots and empty
// segments, and not one below the path of a call, which servers that route by prefix would
// take it for.
func isPlain(method string, address *url.URL, base []string) bool {
	p := address.Path
	if method != "POST" || plainColons.Replace(address.EscapedPath()) != p || path.Clean(p) != p || strings.ContainsFunc(p, isOddInPath) {
		return false
	}
	for n := range base {
		if _, ok := Match(&url.URL{Path: strings.Join(base[:n+1], "/")}); ok {
			return false
		}
	}
	return true
}

// plainColons writes colons without an escape.
var plainColons = strings.NewReplacer("%3A", ":", "%3a", ":")

func isOddInPath(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("/._~@:-", c)
}

// A Family is a provider whose SDKs read errors in one shape.
type Family string

// The families.
const (
	OpenAI    Family = "openai" // also Azure, and every compatible server
	Anthropic Family = "anthropic"
	Gemini    Family = "gemini"
	Ollama    Family = "ollama"
	Bedrock   Family = "bedrock"

	// OpenRouter stands for its own SDKs, which speak OpenAI's APIs and read other errors.
	// No endpoint has it; see [SDKFamily].
	OpenRouter Family = "openrouter"
)

// SDKFamily tells by the headers of a request in which shape its SDK reads errors, where
// that is not the shape of the API it speaks. OpenRouter's own SDKs are told by their user
// agent and not by the path: most who call OpenRouter do so with OpenAI's SDKs, and read
// OpenAI's errors.
func SDKFamily(header Header) (Family, bool) {
	generator, rest, _ := strings.Cut(strings.ToLower(header.Get("User-Agent")), "/")
	return OpenRouter, generator == "speakeasy-sdk" && strings.Contains(rest, "openrouter")
}

// Error is the body of an HTTP error as the family's SDKs read it.
func (f Family) Error(e Error) []byte {
	if f == OpenRouter {
		return openRouterError(e)
	}
	d, _ := Named(string(f)) // the others are APIs that it knows
	return d.Error(e)
}

// openRouterError has the status for its code, as OpenRouter's schema of an error says
// (https://openrouter.ai/docs/api-reference/errors), and our word among the metadata.
func openRouterError(e Error) []byte {
	return encode(map[string]any{"error": map[string]any{
		"code": e.Status, "message": e.Message, "metadata": map[string]any{"code": e.Code},
	}})
}

// endpoints are asked in order.
var endpoints = []Endpoint{
	// What stands where a stored answer would: the counts of OpenAI and llama.cpp, vLLM's calls with
	// several conversations, and its prompts as the model would get them.
	{
		Name: "openai_input_tokens", Family: OpenAI, Treatment: Watched, methods: []string{"POST"},
		Paths: []string{"v1|openai/responses/input_tokens", "chat/completions/input_tokens"},
	},
	{
		Name: "openai_chat_batch", Family: OpenAI, Treatment: Read, Carries: Text, methods: []string{"POST"},
		Paths: []string{"chat/completions/batch"},
	},
	{
		Name: "openai_render", Family: OpenAI, Treatment: Read, methods: []string{"POST"},
		Paths: []string{"chat/completions/render", "v1/completions/render"},
	},

	// Answers that a provider has stored come back as a call's own answer would.
	{
		Name: "openai_chat_stored", Family: OpenAI, Treatment: Governed, answer: "openai_chat",
		Paths: []string{"chat/completions/*"}, methods: []string{"GET", "POST"},
	},
	{
		Name: "openai_responses_stored", Family: OpenAI, Treatment: Governed, answer: "openai_responses",
		Paths: []string{"v1|openai/responses/*", "/responses/*"}, methods: []string{"GET"},
	},
	{
		Name: "openai_responses_stored", Family: OpenAI, Treatment: Governed, answer: "openai_responses",
		Paths: []string{"v1|openai/responses/*/cancel", "/responses/*/cancel"}, methods: []string{"POST"},
	},

	// Anthropic and Gemini, where they share a path with OpenAI
	{
		Name: "anthropic_file_content", Family: Anthropic, Treatment: Passes, Carries: Text, header: "Anthropic-Version",
		Paths: []string{"v1/files/*/content"},
	},
	{
		Name: "anthropic_files", Family: Anthropic, Treatment: Read, header: "Anthropic-Version",
		Paths: []string{"v1/files", "v1/files/**"},
	},
	{
		Name: "anthropic_models", Family: Anthropic, Treatment: Passes, header: "Anthropic-Version",
		Paths: []string{"v1/models", "v1/models/+"},
	},
	{
		Name: "gemini_uploads", Family: Gemini, Treatment: Unread,
		Paths: []string{"upload/v1|v1alpha|v1beta/files/**", "upload/v1|v1alpha|v1beta/filesearchstores/**"},
	},

	// OpenAI, Azure and compatible servers
	{
		Name: "openai_embeddings", Family: OpenAI, Treatment: Read,
		Paths: []string{"v1|openai/embeddings", "deployments|engines/*/embeddings", "models|inference/embeddings", "/embeddings"},
	},
	{
		Name: "openai_moderations", Family: OpenAI, Treatment: Watched,
		Paths: []string{"v1|openai/moderations", "v1/chat/moderations"},
	},
	{
		Name: "openai_tokenize", Family: OpenAI, Treatment: Watched,
		Paths: []string{"/tokenize", "/detokenize", "v1/tokenize", "v1/detokenize"},
	},
	{Name: "openai_rerank", Family: OpenAI, Treatment: Read, Paths: []string{"v1|v2/rerank", "/rerank"}},
	{
		Name: "openai_compact", Family: OpenAI, Treatment: Read, Carries: Text,
		Paths: []string{"v1|openai/responses/compact"},
	},
	{
		Name: "openai_stored_items", Family: OpenAI, Treatment: Read, Carries: Text,
		Paths: []string{"chat/completions/*/messages", "v1|openai/responses/*/input_items"},
	},
	{
		Name: "openai_conversations", Family: OpenAI, Treatment: Read, Carries: Text,
		Paths: []string{"v1|openai/conversations/**"},
	},
	{
		Name: "openai_file_content", Family: OpenAI, Treatment: Passes, Carries: Text,
		Paths: []string{"v1|openai/files/*/content"},
	},
	{Name: "openai_files", Family: OpenAI, Treatment: Read, Paths: []string{"v1|openai/files/**"}},
	{Name: "openai_uploads", Family: OpenAI, Treatment: Unread, Paths: []string{"v1|openai/uploads/**"}},
	{Name: "openai_batches", Family: OpenAI, Treatment: Read, Paths: []string{"v1|openai/batches/**"}},
	{
		Name: "openai_images", Family: OpenAI, Treatment: Read, Carries: Image,
		Paths: []string{"v1|openai/images/generations", "deployments/*/images/generations"},
	},
	{
		Name: "openai_image_edits", Family: OpenAI, Treatment: Unread, Carries: Image,
		Paths: []string{"v1|openai/images/edits|variations", "deployments/*/images/edits|variations"},
	},
	{
		Name: "openai_videos", Family: OpenAI, Treatment: Unread, Carries: Image,
		Paths: []string{"v1|openai/videos/**"},
	},
	{
		Name: "openai_speech", Family: OpenAI, Treatment: Read, Carries: Audio,
		Paths: []string{"v1|openai/audio/speech", "deployments/*/audio/speech"},
	},
	{
		Name: "openai_transcriptions", Family: OpenAI, Treatment: Unread, Carries: Text,
		Paths: []string{"v1|openai/audio/transcriptions|translations", "deployments/*/audio/transcriptions|translations"},
	},
	{Name: "openai_assistants", Family: OpenAI, Treatment: Read, Paths: []string{"v1|openai/assistants/**"}},
	{
		Name: "openai_threads", Family: OpenAI, Treatment: Read, Carries: Text,
		Paths: []string{"v1|openai/threads/**"},
	},
	{Name: "openai_vector_stores", Family: OpenAI, Treatment: Read, Paths: []string{"v1|openai/vector_stores/**"}},
	{Name: "openai_fine_tuning", Family: OpenAI, Treatment: Read, Paths: []string{"v1|openai/fine_tuning/**"}},
	{Name: "openai_evals", Family: OpenAI, Treatment: Read, Carries: Text, Paths: []string{"v1|openai/evals/**"}},
	{
		Name: "openai_realtime", Family: OpenAI, Treatment: Unread, Carries: Text,
		Paths: []string{"v1|openai/realtime/**"},
	},

	// Anthropic
	{
		Name: "anthropic_count_tokens", Family: Anthropic, Treatment: Watched,
		Paths: []string{"v1/messages/count_tokens", "publishers/anthropic/models/count-tokens:rawpredict"},
	},
	{
		Name: "anthropic_batch_results", Family: Anthropic, Treatment: Passes, Carries: Text,
		Paths: []string{"v1/messages/batches/*/results"},
	},
	{Name: "anthropic_batches", Family: Anthropic, Treatment: Read, Paths: []string{"v1/messages/batches/**"}},
	{Name: "anthropic_complete", Family: Anthropic, Treatment: Read, Carries: Text, Paths: []string{"v1/complete"}},

	// Gemini and Vertex AI
	{
		Name: "gemini_count_tokens", Family: Gemini, Treatment: Watched,
		Paths: []string{"models|tunedmodels/*:counttokens", "models/*:computetokens"},
	},
	{
		Name: "gemini_embeddings", Family: Gemini, Treatment: Read,
		Paths: []string{"models/*:embedcontent", "models/*:batchembedcontents", "models/*:asyncbatchembedcontent"},
	},
	{Name: "gemini_batches", Family: Gemini, Treatment: Read, Paths: []string{"models/*:batchgeneratecontent"}},
	{
		Name: "gemini_predict", Family: Gemini, Treatment: Read, Carries: Text,
		Paths: []string{
			"models|endpoints/*:predict", "models|endpoints/*:predictlongrunning", "models|endpoints/*:serverstreamingpredict",
			"models|endpoints/*:rawpredict", "models|endpoints/*:streamrawpredict", "models/*:generateanswer",
		},
	},
	{
		Name: "gemini_caches", Family: Gemini, Treatment: Read,
		Paths: []string{"v1|v1alpha|v1beta|v1beta1/cachedcontents/**", "locations/*/cachedcontents/**"},
	},
	{
		Name: "gemini_interactions", Family: Gemini, Treatment: Read, Carries: Text,
		Paths: []string{"v1|v1alpha|v1beta|v1beta1/interactions/**"},
	},
	{
		Name: "gemini_file_content", Family: Gemini, Treatment: Passes, Carries: Image,
		Paths: []string{"v1alpha|v1beta/files/*:download"},
	},
	{
		Name: "gemini_files", Family: Gemini, Treatment: Read,
		Paths: []string{"v1alpha|v1beta/files/**", "v1alpha|v1beta/filesearchstores/**"},
	},
	{
		Name: "gemini_operations", Family: Gemini, Treatment: Passes, Carries: Text,
		Paths: []string{"v1alpha|v1beta/batches|operations/**", "v1alpha|v1beta/models/*/operations/**"},
	},
	{
		Name: "gemini_models", Family: Gemini, Treatment: Passes,
		Paths: []string{"v1alpha|v1beta|v1beta1/models|tunedmodels", "v1alpha|v1beta|v1beta1/models|tunedmodels/+"},
	},
	{
		Name: "gemini_live", Family: Gemini, Treatment: Unread, Carries: Text,
		Paths: []string{"ws/*.bidigeneratecontent", "ws/*.bidigeneratecontentconstrained"},
	},

	// Last of those that share a path
	{Name: "openai_models", Family: OpenAI, Treatment: Passes, Paths: []string{"v1|openai/models", "v1|openai/models/+"}},

	// Ollama
	{Name: "ollama_embeddings", Family: Ollama, Treatment: Read, Paths: []string{"api/embed|embeddings"}},
	{Name: "ollama_create", Family: Ollama, Treatment: Read, Paths: []string{"api/create"}},
	{
		Name: "ollama_models", Family: Ollama, Treatment: Passes,
		Paths: []string{"api/show|pull|push|copy|delete|tags|ps|version"},
	},
	{Name: "ollama_blobs", Family: Ollama, Treatment: Unread, Paths: []string{"api/blobs/*"}},

	// Amazon Bedrock; its model ids may hold slashes
	{
		Name: "bedrock_count_tokens", Family: Bedrock, Treatment: Watched,
		Paths: []string{"model/*/count-tokens"},
	},
	{Name: "bedrock_count_tokens", Family: Bedrock, Treatment: Read, Paths: []string{"model/**/count-tokens"}},
	{
		Name: "bedrock_invoke", Family: Bedrock, Treatment: Read, Carries: Text,
		Paths: []string{"model/**/invoke|invoke-with-response-stream|invoke-with-bidirectional-stream", "/async-invoke"},
	},
}
