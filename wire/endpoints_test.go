package wire_test

import (
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/wire"
)

// headers are those of a request, by their names as Go writes them.
type headers map[string]string

func (h headers) Get(name string) string { return h[name] }

func TestFindEndpoint(t *testing.T) {
	const post, get = "POST", "GET"
	anthropic := headers{"Anthropic-Version": "2023-06-01"}
	for _, test := range []struct {
		method, path string
		header       headers
		name         string
		treatment    wire.Treatment
	}{
		{post, "/v1/embeddings", nil, "openai_embeddings", wire.Read},
		{post, "/V1/Embeddings/", nil, "openai_embeddings", wire.Read},
		{post, "/base/v1/embeddings", nil, "openai_embeddings", wire.Read},
		{post, "/openai/deployments/ada/embeddings", nil, "openai_embeddings", wire.Read},
		{post, "/openai/v1/embeddings", nil, "openai_embeddings", wire.Read},
		{post, "/v1beta/openai/embeddings", nil, "openai_embeddings", wire.Read},
		{post, "/embeddings", nil, "openai_embeddings", wire.Read}, // Azure AI, GitHub Models
		{post, "/models/embeddings", nil, "openai_embeddings", wire.Read},
		{post, "/base/models/embeddings", nil, "openai_embeddings", wire.Read},
		{post, "/inference/embeddings", nil, "openai_embeddings", wire.Read},
		{post, "/orgs/o/inference/embeddings", nil, "openai_embeddings", wire.Read},
		{post, "/some/embeddings", nil, "", ""},
		{post, "/v1/moderations", nil, "openai_moderations", wire.Watched},
		{post, "/v1/responses/input_tokens", nil, "openai_input_tokens", wire.Watched},
		{post, "/v1/responses/compact", nil, "openai_compact", wire.Read},
		{post, "/tokenize", nil, "openai_tokenize", wire.Watched},
		{post, "/some/tokenize", nil, "", ""},
		{post, "/v1/files", nil, "openai_files", wire.Read},
		{get, "/v1/files/file-1/content", nil, "openai_file_content", wire.Passes},
		{post, "/v1/uploads/u1/parts", nil, "openai_uploads", wire.Unread},
		{post, "/v1/batches", nil, "openai_batches", wire.Read},
		{post, "/v1/images/generations", nil, "openai_images", wire.Read},
		{post, "/v1/images/edits", nil, "openai_image_edits", wire.Unread},
		{post, "/openai/deployments/d/images/generations", nil, "openai_images", wire.Read},
		{post, "/v1/audio/speech", nil, "openai_speech", wire.Read},
		{post, "/v1/audio/transcriptions", nil, "openai_transcriptions", wire.Unread},
		{post, "/openai/deployments/w/audio/translations", nil, "openai_transcriptions", wire.Unread},
		{post, "/v1/assistants", nil, "openai_assistants", wire.Read},
		{post, "/openai/assistants/a1", nil, "openai_assistants", wire.Read},
		{post, "/v1/threads/t/runs/r/submit_tool_outputs", nil, "openai_threads", wire.Read},
		{post, "/v1/vector_stores/v/search", nil, "openai_vector_stores", wire.Read},
		{post, "/v1/fine_tuning/jobs", nil, "openai_fine_tuning", wire.Read},
		{post, "/v1/conversations/c/items", nil, "openai_conversations", wire.Read},
		{post, "/v1/evals", nil, "openai_evals", wire.Read},
		{get, "/v1/realtime", nil, "openai_realtime", wire.Unread},
		{get, "/v1/models", nil, "openai_models", wire.Passes},
		{get, "/v1/models/gpt-x", nil, "openai_models", wire.Passes},
		{get, "/v1/models", anthropic, "anthropic_models", wire.Passes},
		{get, "/v1/chat/completions/chatcmpl-1", nil, "openai_chat_stored", wire.Governed},
		{post, "/v1/chat/completions/chatcmpl-1", nil, "openai_chat_stored", wire.Governed},
		{"DELETE", "/v1/chat/completions/chatcmpl-1", nil, "", ""},
		{post, "/v1/chat/completions/input_tokens", nil, "openai_input_tokens", wire.Watched},
		{post, "/chat/completions/input_tokens/", nil, "openai_input_tokens", wire.Read},
		{post, "/v1/chat/completions/x/chat/completions/input_tokens", nil, "openai_input_tokens", wire.Read},
		{get, "/v1/chat/completions/input_tokens", nil, "openai_chat_stored", wire.Governed},
		{post, "/v1/chat/completions/batch", nil, "openai_chat_batch", wire.Read},
		{post, "/v1/chat/completions/render", nil, "openai_render", wire.Read},
		{post, "/v1/completions/render", nil, "openai_render", wire.Read},
		{get, "/v1/chat/completions/chatcmpl-1/messages", nil, "openai_stored_items", wire.Read},
		{get, "/v1/chat/completions", nil, "", ""},
		{post, "/v1/messages/count_tokens", anthropic, "anthropic_count_tokens", wire.Watched},
		{post, "/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict", nil, "anthropic_count_tokens", wire.Watched},
		{post, "/v1/messages/batches", anthropic, "anthropic_batches", wire.Read},
		{get, "/v1/messages/batches/b/results", anthropic, "anthropic_batch_results", wire.Passes},
		{post, "/v1/files", anthropic, "anthropic_files", wire.Read},
		{get, "/v1/files/file-1/content", anthropic, "anthropic_file_content", wire.Passes},
		{get, "/v1beta/files/f:download", nil, "gemini_file_content", wire.Passes},
		{post, "/v1beta/models/gemini-x:countTokens", nil, "gemini_count_tokens", wire.Watched},
		{post, "/v1beta/models/gemini-x:embedContent", nil, "gemini_embeddings", wire.Read},
		{post, "/v1beta/models/gemini-x:batchEmbedContents", nil, "gemini_embeddings", wire.Read},
		{post, "/v1beta/models/gemini-x:batchGenerateContent", nil, "gemini_batches", wire.Read},
		{post, "/v1/projects/p/locations/l/publishers/google/models/imagen:predict", nil, "gemini_predict", wire.Read},
		{post, "/v1beta/cachedContents", nil, "gemini_caches", wire.Read},
		{post, "/v1beta/interactions", nil, "gemini_interactions", wire.Read},
		{post, "/upload/v1beta/files", nil, "gemini_uploads", wire.Unread},
		{get, "/v1beta/files/f", nil, "gemini_files", wire.Read},
		{get, "/v1beta/models/gemini-x", nil, "gemini_models", wire.Passes},
		{post, "/v1beta/models/gemini-x:newVerb", nil, "", ""},
		{post, "/v1/models/gemini-x:newVerb", nil, "", ""},
		{post, "/api/embed", nil, "ollama_embeddings", wire.Read},
		{post, "/api/embeddings", nil, "ollama_embeddings", wire.Read},
		{post, "/api/show", nil, "ollama_models", wire.Passes},
		{post, "/api/create", nil, "ollama_create", wire.Read},
		{get, "/api/tags", nil, "ollama_models", wire.Passes},
		{post, "/model/amazon.nova:0/invoke-with-response-stream", nil, "bedrock_invoke", wire.Read},
		{post, "/model/arn:aws:bedrock:us-east-1:1:inference-profile/us.x/invoke", nil, "bedrock_invoke", wire.Read},
		{post, "/model/anthropic.claude-3:0/count-tokens", nil, "bedrock_count_tokens", wire.Watched},
		{post, "/model/arn:aws:bedrock:us-east-1:1:inference-profile/us.x/count-tokens", nil, "bedrock_count_tokens", wire.Read},
		{post, "/v1/embeddings;a", nil, "openai_embeddings", wire.Read},
		{post, "/v1/moderations;a", nil, "openai_moderations", wire.Read},
		{get, "/v1;a/chat/completions/chatcmpl-1;b", nil, "openai_chat_stored", wire.Governed},
		{get, "/v1/files/..;/responses/resp_1", nil, "openai_responses_stored", wire.Governed},
		{post, "/v1beta/models/x:countTokens;a", nil, "gemini_count_tokens", wire.Read},
		{post, "/", nil, "", ""},
		{post, "", nil, "", ""},
		{post, "/v1", nil, "", ""},
	} {
		e, _ := wire.FindEndpoint(test.method, &url.URL{Path: test.path}, test.header)
		if e.Name != test.name || e.Treatment != test.treatment {
			t.Errorf("%s %s is %q, %q", test.method, test.path, e.Name, e.Treatment)
		}
	}
}

// An attack passes on a watched endpoint, so no path counts as watched that a server
// could take for another.
func TestWatchedPathsHaveOneReading(t *testing.T) {
	for _, target := range []string{
		"/v1/x/../moderations", "/v1/./moderations", "//v1/moderations", "/v1//moderations", "/v1/moderations/",
		"/v1/chat/completions/v1/moderations", "/v1/chat/completions/x/v1/moderations", "/v1%2fmoderations", "/v1/%6doderations",
		"/v1/chat/completions%2f..%2f..%2fmoderations", "/v1/chat/completions;/v1/moderations", `/x\y/v1/moderations`,
		"/v1/chat/completions%3F/v1/moderations", "/v1/chat/completions%00/v1/moderations", "/%E2%80%AE/v1/moderations",
		"/v1/models/x:count%54okens", "/v1/models%2Fx%3AcountTokens", "/v1/x%3A/../models/x:countTokens",
		"/v1/chat/completions/publishers/anthropic/models/count-tokens:rawPredict",
	} {
		address, err := url.Parse("http://site.test" + target)
		if err != nil {
			t.Fatal(err)
		}
		e, ok := wire.FindEndpoint("POST", address, headers{})
		if ok && e.Treatment != wire.Read {
			t.Errorf("%s is %s", target, e.Treatment)
		}
	}
	for _, method := range []string{"GET", "PUT", "post", "QUERY"} {
		if e, _ := wire.FindEndpoint(method, &url.URL{Path: "/v1/moderations"}, headers{}); e.Treatment != wire.Read {
			t.Errorf("%s is %s", method, e.Treatment)
		}
	}
}

// colons writes colons without an escape.
var colons = strings.NewReplacer("%3A", ":", "%3a", ":")

// Whatever a path looks like, finding its endpoint takes no time worth mentioning, and
// what is watched has one spelling.
func FuzzFindEndpoint(f *testing.F) {
	for _, p := range []string{
		"/v1/moderations", "/v1/x/../moderations", "/model/a:0/count-tokens", "/v1beta/models/x:countTokens", "/v1/chat/completions/v1/moderations",
		strings.Repeat("/model", 50) + "/converse", strings.Repeat("/v1/files", 500), "%", "//", "",
	} {
		f.Add("POST", p)
	}
	f.Fuzz(func(t *testing.T, method, target string) {
		address, err := url.Parse("http://site.test/" + strings.TrimPrefix(target, "/"))
		if err != nil {
			return
		}
		e, ok := wire.FindEndpoint(method, address, headers{})
		if ok != (e.Name != "") {
			t.Errorf("%q: %t, %q", target, ok, e.Name)
		}
		if e.Treatment == wire.Watched && (method != "POST" || colons.Replace(address.EscapedPath()) != address.Path || path.Clean(address.Path) != address.Path || strings.ContainsAny(address.Path, `;\?#%`)) {
			t.Errorf("%s %q is watched", method, target)
		}
	})
}

func TestEndpointsOfLongPaths(t *testing.T) {
	long := strings.Repeat("/model", 60) + "/invoke"
	if e, _ := wire.FindEndpoint("POST", &url.URL{Path: long}, headers{}); e.Name != "bedrock_invoke" {
		t.Errorf("60 segments: %q", e.Name)
	}
	if e, ok := wire.FindEndpoint("POST", &url.URL{Path: strings.Repeat("/model", 100_000) + "/invoke"}, headers{}); ok {
		t.Errorf("too many segments: %q", e.Name)
	}
}

func BenchmarkFindEndpoint(b *testing.B) {
	for name, p := range map[string]string{"first": "/v1/embeddings", "none": "/some/where/else", "long": strings.Repeat("/model", 60) + "/x"} {
		b.Run(name, func(b *testing.B) {
			address := &url.URL{Path: p}
			for b.Loop() {
				wire.FindEndpoint("POST", address, headers{})
			}
		})
	}
}

// A call of a model is never taken for an endpoint beside the calls, and every pattern
// is one that a path can fit.
func TestEndpointsAreNoCalls(t *testing.T) {
	for _, target := range []string{
		"/v1/chat/completions", "/v1/completions", "/openai/deployments/d/chat/completions", "/openai/deployments/d/completions",
		"/v1beta/models/x:generateContent", "/v1beta/models/x:streamGenerateContent", "/v1/messages", "/v1/responses", "/api/chat", "/api/generate", "/mcp",
	} {
		for _, method := range []string{"GET", "POST"} {
			if e, ok := wire.FindEndpoint(method, &url.URL{Path: target}, headers{}); ok {
				t.Errorf("%s is %s", target, e.Name)
			}
		}
	}
	plain := strings.NewReplacer("**", "x", "*", "x", "+", "x")
	for _, e := range wire.Endpoints() {
		for _, pattern := range e.Paths {
			for _, words := range strings.Split(pattern, "/") {
				if strings.ToLower(words) != words {
					t.Errorf("%s: %s is not in lower case", e.Name, pattern)
				}
			}
			segments := strings.Split(plain.Replace(pattern), "/")
			for i, s := range segments {
				segments[i], _, _ = strings.Cut(s, "|")
			}
			address := &url.URL{Path: "/" + strings.TrimPrefix(strings.Join(segments, "/"), "/")}
			if _, ok := e.Answer(address); ok != (e.Treatment == wire.Governed) {
				t.Errorf("%s is %s, and a dialect for its answers: %v", e.Name, e.Treatment, ok)
			}
			found := false
			for _, method := range []string{"GET", "POST"} {
				got, _ := wire.FindEndpoint(method, address, headers{"Anthropic-Version": "1"})
				openai, _ := wire.FindEndpoint(method, address, headers{})
				found = found || got.Name == e.Name || openai.Name == e.Name
			}
			if _, isCall := wire.Match(address); !found || isCall {
				t.Errorf("%s: nothing fits %s, or a dialect has it", e.Name, pattern)
			}
		}
	}
}

// Each family's error has the members that its SDKs read.
func TestFamilyErrors(t *testing.T) {
	for _, test := range []struct {
		family wire.Family
		status int
		want   map[string]string
	}{
		{wire.OpenAI, 403, map[string]string{"error.type": "permission_error", "error.code": "a_code", "error.message": "No."}},
		{wire.Anthropic, 403, map[string]string{"type": "error", "error.type": "permission_error", "error.message": "No."}},
		{wire.Anthropic, 413, map[string]string{"error.type": "request_too_large"}},
		{wire.Anthropic, 429, map[string]string{"error.type": "rate_limit_error"}},
		{wire.Anthropic, 503, map[string]string{"type": "error"}},
		{wire.Gemini, 403, map[string]string{"error.code": "403", "error.status": "PERMISSION_DENIED", "error.message": "No."}},
		{wire.Gemini, 400, map[string]string{"error.status": "INVALID_ARGUMENT"}},
		{wire.Gemini, 429, map[string]string{"error.status": "RESOURCE_EXHAUSTED"}},
		{wire.Gemini, 503, map[string]string{"error.status": "UNAVAILABLE"}},
		{wire.Ollama, 403, map[string]string{"error": "No."}},
		{wire.OpenRouter, 403, map[string]string{"error.code": "403", "error.message": "No.", "error.metadata.code": "a_code"}},
		{wire.Bedrock, 403, map[string]string{"__type": "AccessDeniedException", "message": "No."}},
		{wire.Bedrock, 429, map[string]string{"__type": "ThrottlingException"}},
		{wire.Bedrock, 503, map[string]string{"__type": "ServiceUnavailableException"}},
		{wire.Bedrock, 400, map[string]string{"__type": "ValidationException"}},
	} {
		body := string(test.family.Error(wire.Error{Status: test.status, Code: "a_code", Message: "No."}))
		for member, want := range test.want {
			if got := gjson.Get(body, member).String(); !gjson.Valid(body) || got != want {
				t.Errorf("%s %d: %s is %q, want %q", test.family, test.status, member, got, want)
			}
		}
	}
}

// OpenRouter's own SDKs are told by what they say of themselves. Others that call OpenRouter
// read OpenAI's errors.
func TestOpenRouterIsTold(t *testing.T) {
	for agent, want := range map[string]bool{
		"speakeasy-sdk/typescript 1.3.19 2.914.0 1.0.0 @openrouter/sdk":                   true,
		"speakeasy-sdk/python 0.1.2 2.768.0 1.0.0 openrouter":                             true,
		"speakeasy-sdk/go 0.2.0 2.803.2 1.0.0 github.com/OpenRouterTeam/go-sdk":           true,
		"speakeasy-sdk/typescript 2.6.1 2.882.0 1.0.0 @mistralai/mistralai":               false,
		"ai/7.0.173 ai-sdk/openrouter/2.10.0 ai-sdk/provider-utils/4.0.0 runtime/node.js": false, // reads both
		"OpenAI/JS 7.57.0": false,
		"openrouter":       false,
		"":                 false,
	} {
		family, told := wire.SDKFamily(headers{"User-Agent": agent})
		if told != want || told && family != wire.OpenRouter {
			t.Errorf("%q: %q, %t", agent, family, told)
		}
	}
}

// A call for a stored answer says which one it asks for, and whether for all of it.
func TestStoredAnswersAreNamed(t *testing.T) {
	for address, want := range map[string]wire.Request{
		"/v1/responses/resp_1":                              {Fetches: "resp_1"},
		"/v1/responses;a/resp_1;b=c":                        {Fetches: "resp_1"},
		"/base/openai/responses/resp_1/":                    {Fetches: "resp_1"},
		"/v1/Responses/Resp_A?include[]=reasoning":          {Fetches: "Resp_A"},
		"/v1/responses/resp_1/cancel":                       {Fetches: "resp_1"},
		"/v1/responses/cancel":                              {Fetches: "cancel"},
		"/v1/responses/responses":                           {Fetches: "responses"},
		"/v1/responses/resp%5F1?stream=true":                {Fetches: "resp_1", Stream: true},
		"/v1/responses/resp_1?starting_after=4&stream=true": {Fetches: "resp_1", Stream: true, FetchesRest: true},
		"/v1/chat/completions/chatcmpl_1":                   {Fetches: "chatcmpl_1"},
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		method := "GET"
		if strings.HasSuffix(address, "/cancel") && want.Fetches != "cancel" {
			method = "POST"
		}
		e, ok := wire.FindEndpoint(method, u, headers{})
		d, governed := e.Answer(u)
		if !ok || !governed {
			t.Errorf("%s: not governed", address)
			continue
		}
		got, err := d.Request(nil)
		if err != nil || got.Fetches != want.Fetches || got.Stream != want.Stream || got.FetchesRest != want.FetchesRest {
			t.Errorf("%s: %v %+v", address, err, got)
		}
	}
}

// What is written beside a stored answer is read, and what nobody knows is said to be unread.
func TestWhatIsWrittenToAStoredAnswerIsRead(t *testing.T) {
	u, err := url.Parse("/v1/chat/completions/chatcmpl_1")
	if err != nil {
		t.Fatal(err)
	}
	e, _ := wire.FindEndpoint("POST", u, headers{})
	d, governed := e.Answer(u)
	if !governed {
		t.Fatal("not governed")
	}
	r, err := d.Request([]byte(`{"metadata":{"topic":"says topic"},"other":"says other"}`))
	if err != nil || len(r.Parts) != 2 || r.Parts[0].Kind != wire.Text || r.Parts[0].Text != "topic\nsays topic" || r.Parts[1].Kind != wire.Unknown {
		t.Errorf("%v %+v", err, r)
	}
	if _, err := d.Request([]byte(`{"metadata":`)); err == nil {
		t.Error("a body that is cut is read")
	}
}
