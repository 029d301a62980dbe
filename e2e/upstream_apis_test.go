package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// An api is how a vendor's server writes answers, in the form that it documents.
type api struct {
	whole      func(model string, a answer) string
	stream     func(model string, a answer) []string // frames, each with the line that ends it
	streamType string
	idle       string                                  // what the server sends to keep a connection alive
	broken     string                                  // the frame of an error in the middle of a stream
	failure    func(status int, message string) string // the body of an error
	fault      func(body string) string                // why the server would not take a request, or ""
}

// spoken tells which API a request is for, the model, and whether to stream.
func spoken(r *http.Request, body string) (speaks api, model string, streamed bool) {
	var asked struct {
		Model  string `json:"model"`
		Stream *bool  `json:"stream"`
	}
	_ = json.Unmarshal([]byte(body), &asked)
	streamed = asked.Stream != nil && *asked.Stream
	p := r.URL.Path
	switch {
	case strings.HasSuffix(p, "/chat/completions"):
		return chatAPI, asked.Model, streamed
	case strings.HasSuffix(p, "/v1/completions"):
		return completionsAPI, asked.Model, streamed
	case strings.HasSuffix(p, "/responses"):
		return responsesAPI, asked.Model, streamed
	case strings.HasSuffix(p, "/messages"):
		return anthropicAPI, asked.Model, streamed
	case strings.HasSuffix(p, "/api/chat"):
		return ollamaChatAPI, asked.Model, asked.Stream == nil || streamed
	case strings.HasSuffix(p, "/api/generate"):
		return ollamaGenerateAPI, asked.Model, asked.Stream == nil || streamed
	}
	if strings.Contains(p, "/model/") {
		return spokenToBedrock(p)
	}
	_, rest, _ := strings.Cut(p, "/models/")
	model, method, _ := strings.Cut(rest, ":")
	if method == "streamGenerateContent" && r.URL.Query().Get("alt") != "sse" {
		return geminiArrayAPI, model, true
	}
	return geminiAPI, model, method == "streamGenerateContent"
}

func takesAll(string) string { return "" }

// sse is one event of a stream, without a name if that is empty.
func sse(name, data string) string {
	if name != "" {
		return "event: " + name + "\ndata: " + data + "\n\n"
	}
	return "data: " + data + "\n\n"
}

func openaiFailure(status int, message string) string {
	kind := "invalid_request_error"
	if status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	return fmt.Sprintf(`{"error":{"message":%s,"type":%q,"param":null,"code":null}}`, quote(message), kind)
}

// --- OpenAI Chat Completions

var chatAPI = api{
	whole: func(model string, a answer) string {
		message, finish := `"content":`+quote(a.text), "stop"
		if a.reasoning != "" {
			message += `,"reasoning_content":` + quote(a.reasoning)
		}
		if a.call {
			var asked []string
			for _, c := range a.calls() {
				asked = append(asked, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`, c.id("call"), c.name, quote(c.arguments)))
			}
			message, finish = `"content":null,"tool_calls":[`+strings.Join(asked, ",")+`]`, "tool_calls"
		}
		return fmt.Sprintf(`{"id":"chatcmpl-%s","object":"chat.completion","created":1763700000,"model":%s,"choices":[{"index":0,"message":{"role":"assistant",%s,"refusal":null,"annotations":[]},"logprobs":null,"finish_reason":%q}],"usage":%s,"service_tier":"default","system_fingerprint":"fp_e2e"}`,
			a.id, quote(model), message, finish, chatUsage)
	},
	stream: func(model string, a answer) []string {
		chunk := func(choices, usage string) string {
			return sse("", fmt.Sprintf(`{"id":"chatcmpl-%s","object":"chat.completion.chunk","created":1763700000,"model":%s,"service_tier":"default","system_fingerprint":"fp_e2e","choices":[%s],"usage":%s,"obfuscation":"x7Kp"}`, a.id, quote(model), choices, usage))
		}
		delta := func(delta, finish string) string {
			return chunk(fmt.Sprintf(`{"index":0,"delta":{%s},"logprobs":null,"finish_reason":%s}`, delta, finish), "null")
		}
		out := []string{delta(`"role":"assistant","content":"","refusal":null`, "null")}
		if a.reasoning != "" {
			for _, w := range inWords(a.reasoning) {
				out = append(out, delta(`"reasoning_content":`+quote(w), "null"))
			}
		}
		if a.call {
			for i, c := range a.calls() {
				first, second := c.halves()
				out = append(out,
					delta(fmt.Sprintf(`"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]`, i, c.id("call"), c.name), "null"),
					delta(fmt.Sprintf(`"tool_calls":[{"index":%d,"function":{"arguments":%s}}]`, i, quote(first)), "null"),
					delta(fmt.Sprintf(`"tool_calls":[{"index":%d,"function":{"arguments":%s}}]`, i, quote(second)), "null"))
			}
			out = append(out, delta("", `"tool_calls"`))
		} else {
			for _, w := range inWords(a.text) {
				out = append(out, delta(`"content":`+quote(w), "null"))
			}
			out = append(out, delta("", `"stop"`))
		}
		return append(out, chunk("", chatUsage), "data: [DONE]\n\n")
	},
	streamType: "text/event-stream; charset=utf-8",
	idle:       ": keep-alive\n\n",
	broken:     sse("", `{"error":{"message":"The server had an error while processing your request.","type":"server_error","param":null,"code":null}}`),
	failure:    openaiFailure,
	fault:      takesAll,
}

const chatUsage = `{"prompt_tokens":12,"completion_tokens":9,"total_tokens":21,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`

// --- OpenAI completions

func completionsBody(model string, a answer, text, finish string) string {
	return fmt.Sprintf(`{"id":"cmpl-%s","object":"text_completion","created":1763700000,"model":%s,"choices":[{"text":%s,"index":0,"logprobs":null,"finish_reason":%s}],"usage":{"prompt_tokens":12,"completion_tokens":9,"total_tokens":21}}`,
		a.id, quote(model), quote(text), finish)
}

var completionsAPI = api{
	whole: func(model string, a answer) string { return completionsBody(model, a, a.text, `"stop"`) },
	stream: func(model string, a answer) []string {
		var out []string
		for _, w := range inWords(a.text) {
			out = append(out, sse("", completionsBody(model, a, w, "null")))
		}
		return append(out, sse("", completionsBody(model, a, "", `"stop"`)), "data: [DONE]\n\n")
	},
	streamType: "text/event-stream; charset=utf-8",
	idle:       ": keep-alive\n\n",
	broken:     chatAPI.broken,
	failure:    openaiFailure,
	fault:      takesAll,
}

// --- OpenAI Responses

// ownIDs begin the ids of the upstream's answers. It does not know others.
const ownIDs = "e2e"

// reference is where a request names something that the server keeps: a response, or
// one item of it.
var reference = regexp.MustCompile(`"previous_response_id":"resp_([^"]*)"|"type":"item_reference","id":"[a-z]*_([^"]*)"`)

// responseObject is a Response with the items of its output.
func responseObject(model string, a answer, status, output, usage string) string {
	return fmt.Sprintf(`{"id":"resp_%s","object":"response","created_at":1763700000,"status":%q,"background":false,"completed_at":null,"error":null,"incomplete_details":null,"instructions":null,"max_output_tokens":null,"max_tool_calls":null,"model":%s,"output":[%s],"parallel_tool_calls":true,"previous_response_id":null,"prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},"safety_identifier":null,"service_tier":"default","store":true,"temperature":1.0,"text":{"format":{"type":"text"},"verbosity":"medium"},"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1.0,"truncation":"disabled","usage":%s,"user":null,"metadata":{}}`,
		a.id, status, quote(model), output, usage)
}

const responsesUsage = `{"input_tokens":12,"input_tokens_details":{"cached_tokens":0},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":21}`

// responseItems are the items of an answer, each as it begins and as it ends.
func responseItems(a answer) (begun, done []string) {
	if a.reasoning != "" {
		begun = append(begun, `{"id":"rs_`+a.id+`","type":"reasoning","status":"in_progress","summary":[]}`)
		done = append(done, `{"id":"rs_`+a.id+`","type":"reasoning","status":"completed","summary":[{"type":"summary_text","text":`+quote(a.reasoning)+`}]}`)
	}
	if a.call {
		for i, c := range a.calls() {
			item := fmt.Sprintf(`{"id":"fc_%s%d","type":"function_call","status":%%q,"arguments":%%s,"call_id":%q,"name":%q}`, a.id, i, c.id("call"), c.name)
			begun, done = append(begun, fmt.Sprintf(item, "in_progress", `""`)), append(done, fmt.Sprintf(item, "completed", quote(c.arguments)))
		}
		return begun, done
	}
	item := `{"id":"msg_` + a.id + `","type":"message","status":%q,"content":[%s],"role":"assistant"}`
	return append(begun, fmt.Sprintf(item, "in_progress", "")),
		append(done, fmt.Sprintf(item, "completed", outputText(a.text)))
}

func outputText(text string) string {
	return `{"type":"output_text","annotations":[],"logprobs":[],"text":` + quote(text) + `}`
}

var responsesAPI = api{
	whole: func(model string, a answer) string {
		_, done := responseItems(a)
		return responseObject(model, a, "completed", strings.Join(done, ","), responsesUsage)
	},
	stream: func(model string, a answer) []string {
		var out []string
		event := func(name, rest string) {
			out = append(out, sse(name, fmt.Sprintf(`{"type":%q,"sequence_number":%d,%s}`, name, len(out), rest)))
		}
		begun, done := responseItems(a)
		event("response.created", `"response":`+responseObject(model, a, "in_progress", "", "null"))
		event("response.in_progress", `"response":`+responseObject(model, a, "in_progress", "", "null"))
		for i := range begun {
			event("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, i, begun[i]))
			switch {
			case a.reasoning != "" && i == 0:
				at := fmt.Sprintf(`"item_id":"rs_%s","output_index":%d,"summary_index":0`, a.id, i)
				event("response.reasoning_summary_part.added", at+`,"part":{"type":"summary_text","text":""}`)
				for _, w := range inWords(a.reasoning) {
					event("response.reasoning_summary_text.delta", at+`,"delta":`+quote(w)+`,"obfuscation":"Qd"`)
				}
				event("response.reasoning_summary_text.done", at+`,"text":`+quote(a.reasoning))
				event("response.reasoning_summary_part.done", at+`,"part":{"type":"summary_text","text":`+quote(a.reasoning)+`}`)
			case a.call:
				c := a.calls()[i]
				first, second := c.halves()
				at := fmt.Sprintf(`"item_id":"fc_%s%d","output_index":%d`, a.id, i, i)
				event("response.function_call_arguments.delta", at+`,"delta":`+quote(first)+`,"obfuscation":"Qd"`)
				event("response.function_call_arguments.delta", at+`,"delta":`+quote(second)+`,"obfuscation":"Qd"`)
				event("response.function_call_arguments.done", at+`,"arguments":`+quote(c.arguments))
			default:
				at := fmt.Sprintf(`"item_id":"msg_%s","output_index":%d,"content_index":0`, a.id, i)
				event("response.content_part.added", at+`,"part":`+outputText(""))
				for _, w := range inWords(a.text) {
					event("response.output_text.delta", at+`,"delta":`+quote(w)+`,"logprobs":[],"obfuscation":"Qd"`)
				}
				event("response.output_text.done", at+`,"text":`+quote(a.text)+`,"logprobs":[]`)
				event("response.content_part.done", at+`,"part":`+outputText(a.text))
			}
			event("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, i, done[i]))
		}
		event("response.completed", `"response":`+responseObject(model, a, "completed", strings.Join(done, ","), responsesUsage))
		return out
	},
	streamType: "text/event-stream; charset=utf-8",
	idle:       ": keep-alive\n\n",
	broken:     sse("error", `{"type":"error","code":"server_error","message":"The server had an error while processing your request.","param":null,"sequence_number":99}`),
	failure:    openaiFailure,
	fault: func(body string) string {
		for _, m := range reference.FindAllStringSubmatch(body, -1) {
			if !strings.HasPrefix(m[1]+m[2], ownIDs) {
				return "Item with id '" + m[1] + m[2] + "' not found."
			}
		}
		return ""
	},
}

// --- Anthropic Messages

const anthropicUsage = `"usage":{"input_tokens":12,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"output_tokens":%d,"service_tier":"standard"}`

func anthropicMessage(model string, a answer, content, stop string, output int) string {
	return fmt.Sprintf(`{"id":"msg_%s","type":"message","role":"assistant","model":%s,"content":[%s],"stop_reason":%s,"stop_sequence":null,"stop_details":null,"container":null,`+anthropicUsage+`}`,
		a.id, quote(model), content, stop, output)
}

var anthropicAPI = api{
	whole: func(model string, a answer) string {
		var blocks []string
		stop := `"end_turn"`
		if a.reasoning != "" {
			blocks = append(blocks, `{"type":"thinking","thinking":`+quote(a.reasoning)+`,"signature":"EqQBc2ln"}`)
		}
		if a.call {
			for _, c := range a.calls() {
				blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s,"caller":{"type":"direct"}}`, c.id("toolu"), c.name, c.arguments))
			}
			stop = `"tool_use"`
		} else {
			blocks = append(blocks, `{"type":"text","text":`+quote(a.text)+`}`)
		}
		return anthropicMessage(model, a, strings.Join(blocks, ","), stop, 9)
	},
	stream: func(model string, a answer) []string {
		var out []string
		event := func(name, rest string) {
			out = append(out, sse(name, `{"type":"`+name+`"`+rest+`}`))
		}
		index := 0
		block := func(begin string, deltas ...string) {
			event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, index, begin))
			if index == 0 {
				event("ping", "")
			}
			for _, d := range deltas {
				event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":%s`, index, d))
			}
			event("content_block_stop", fmt.Sprintf(`,"index":%d`, index))
			index++
		}
		event("message_start", `,"message":`+anthropicMessage(model, a, "", "null", 1))
		if a.reasoning != "" {
			var deltas []string
			for _, w := range inWords(a.reasoning) {
				deltas = append(deltas, `{"type":"thinking_delta","thinking":`+quote(w)+`}`)
			}
			block(`{"type":"thinking","thinking":"","signature":""}`, append(deltas, `{"type":"signature_delta","signature":"EqQBc2ln"}`)...)
		}
		stop := "end_turn"
		if a.call {
			stop = "tool_use"
			for _, c := range a.calls() {
				first, second := c.halves()
				block(fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{},"caller":{"type":"direct"}}`, c.id("toolu"), c.name),
					`{"type":"input_json_delta","partial_json":""}`, `{"type":"input_json_delta","partial_json":`+quote(first)+`}`, `{"type":"input_json_delta","partial_json":`+quote(second)+`}`)
			}
		} else {
			var deltas []string
			for _, w := range inWords(a.text) {
				deltas = append(deltas, `{"type":"text_delta","text":`+quote(w)+`}`)
			}
			block(`{"type":"text","text":""}`, deltas...)
		}
		event("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%q,"stop_sequence":null,"stop_details":null,"container":null},"usage":{"input_tokens":12,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":9}`, stop))
		event("message_stop", "")
		return out
	},
	streamType: "text/event-stream; charset=utf-8",
	idle:       sse("ping", `{"type":"ping"}`),
	broken:     sse("error", `{"type":"error","error":{"details":null,"type":"overloaded_error","message":"Overloaded"},"request_id":"req_e2e"}`),
	failure: func(status int, message string) string {
		kind := "invalid_request_error"
		if status >= http.StatusInternalServerError {
			kind = "api_error"
		}
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%s},"request_id":"req_e2e"}`, kind, quote(message))
	},
	fault: func(body string) string {
		if blank.MatchString(body) {
			return "messages: text content blocks must be non-empty"
		}
		return ""
	},
}

// --- Gemini

func geminiChunk(model string, a answer, parts, finish string) string {
	if finish != "" {
		finish = `"finishReason":"` + finish + `",`
	}
	return fmt.Sprintf(`{"candidates":[{"content":{"parts":[%s],"role":"model"},%s"index":0}],"usageMetadata":{"promptTokenCount":12,"candidatesTokenCount":9,"totalTokenCount":21,"promptTokensDetails":[{"modality":"TEXT","tokenCount":12}]},"modelVersion":%s,"responseId":%q}`,
		parts, finish, quote(model), a.id)
}

// geminiCalls are the parts with the calls of an answer, of which the first is signed.
func geminiCalls(a answer) string {
	var parts []string
	signature := `,"thoughtSignature":"EqQBc2ln"`
	for _, c := range a.calls() {
		parts = append(parts, fmt.Sprintf(`{"functionCall":{"id":%q,"name":%q,"args":%s}%s}`, c.id("call"), c.name, c.arguments, signature))
		signature = ""
	}
	return strings.Join(parts, ",")
}

func geminiChunks(model string, a answer) []string {
	var out []string
	if a.reasoning != "" {
		out = append(out, geminiChunk(model, a, `{"text":`+quote(a.reasoning)+`,"thought":true}`, ""))
	}
	if a.call {
		return append(out, geminiChunk(model, a, geminiCalls(a), "STOP"))
	}
	said := inWords(a.text)
	for i, w := range said {
		finish := ""
		if i == len(said)-1 {
			finish = "STOP"
		}
		out = append(out, geminiChunk(model, a, `{"text":`+quote(w)+`}`, finish))
	}
	return out
}

func geminiWhole(model string, a answer) string {
	if a.call {
		return geminiChunk(model, a, geminiCalls(a), "STOP")
	}
	parts := `{"text":` + quote(a.text) + `}`
	if a.reasoning != "" {
		parts = `{"text":` + quote(a.reasoning) + `,"thought":true},` + parts
	}
	return geminiChunk(model, a, parts, "STOP")
}

func geminiFailure(status int, message string) string {
	word := "INVALID_ARGUMENT"
	if status >= http.StatusInternalServerError {
		word = "UNAVAILABLE"
	}
	return fmt.Sprintf(`{"error":{"code":%d,"message":%s,"status":%q}}`, status, quote(message), word)
}

func geminiFault(body string) string {
	if strings.Contains(body, `"parts":[]`) || strings.Contains(body, `"text":""`) {
		return "contents.parts must not be empty"
	}
	return ""
}

var geminiAPI = api{
	whole: geminiWhole,
	stream: func(model string, a answer) []string {
		var out []string
		for _, c := range geminiChunks(model, a) {
			out = append(out, sse("", c))
		}
		return out
	},
	streamType: "text/event-stream",
	broken:     sse("", geminiFailure(http.StatusServiceUnavailable, "The model is overloaded.")),
	failure:    geminiFailure,
	fault:      geminiFault,
}

// geminiArrayAPI streams without alt=sse: one JSON array, element by element.
var geminiArrayAPI = api{
	whole: geminiWhole,
	stream: func(model string, a answer) []string {
		out := geminiChunks(model, a)
		for i := range out {
			if i > 0 {
				out[i] = ",\r\n" + out[i]
			}
		}
		out[0] = "[" + out[0]
		return append(out, "\n]\n")
	},
	streamType: "application/json; charset=UTF-8",
	failure:    geminiFailure,
	fault:      geminiFault,
}

// --- Ollama

const ollamaEnd = `,"done":true,"done_reason":"stop","total_duration":5043500667,"load_duration":5025959,"prompt_eval_count":26,"prompt_eval_duration":325953000,"eval_count":9,"eval_duration":4709213000`

func ollamaLine(model, said, end string) string {
	return fmt.Sprintf(`{"model":%s,"created_at":"2026-01-05T12:00:00.000000Z",%s%s}`, quote(model), said, end) + "\n"
}

func ollamaMessage(rest string) string { return `"message":{"role":"assistant",` + rest + `}` }

func ollamaCalls(a answer) string {
	var asked []string
	for i, c := range a.calls() {
		asked = append(asked, fmt.Sprintf(`{"id":%q,"function":{"index":%d,"name":%q,"arguments":%s}}`, c.id("call"), i, c.name, c.arguments))
	}
	return `"content":"","tool_calls":[` + strings.Join(asked, ",") + `]`
}

func ollamaFailure(_ int, message string) string { return `{"error":` + quote(message) + `}` }

var ollamaChatAPI = api{
	whole: func(model string, a answer) string {
		switch {
		case a.call:
			return ollamaLine(model, ollamaMessage(ollamaCalls(a)), ollamaEnd)
		case a.reasoning != "":
			return ollamaLine(model, ollamaMessage(`"content":`+quote(a.text)+`,"thinking":`+quote(a.reasoning)), ollamaEnd)
		}
		return ollamaLine(model, ollamaMessage(`"content":`+quote(a.text)), ollamaEnd)
	},
	stream: func(model string, a answer) []string {
		var out []string
		if a.reasoning != "" {
			for _, w := range inWords(a.reasoning) {
				out = append(out, ollamaLine(model, ollamaMessage(`"content":"","thinking":`+quote(w)), `,"done":false`))
			}
		}
		if a.call {
			out = append(out, ollamaLine(model, ollamaMessage(ollamaCalls(a)), `,"done":false`))
		} else {
			for _, w := range inWords(a.text) {
				out = append(out, ollamaLine(model, ollamaMessage(`"content":`+quote(w)), `,"done":false`))
			}
		}
		return append(out, ollamaLine(model, ollamaMessage(`"content":""`), ollamaEnd))
	},
	streamType: "application/x-ndjson",
	broken:     `{"error":"an error was encountered while running the model"}` + "\n",
	failure:    ollamaFailure,
	fault:      takesAll,
}

var ollamaGenerateAPI = api{
	whole: func(model string, a answer) string {
		return ollamaLine(model, `"response":`+quote(a.text), ollamaEnd+`,"context":[1,2,3]`)
	},
	stream: func(model string, a answer) []string {
		var out []string
		for _, w := range inWords(a.text) {
			out = append(out, ollamaLine(model, `"response":`+quote(w), `,"done":false`))
		}
		return append(out, ollamaLine(model, `"response":""`, ollamaEnd+`,"context":[1,2,3]`))
	},
	streamType: "application/x-ndjson",
	broken:     `{"error":"an error was encountered while running the model"}` + "\n",
	failure:    ollamaFailure,
	fault:      takesAll,
}

// --- What carries prompts and makes no text

// endpoint answers what embeds texts or counts their tokens.
func endpoint(path, body string) (answer string, ok bool) {
	const vector = `[0.5,-0.25]`
	switch {
	case strings.HasSuffix(path, "/v1/embeddings"):
		embedding := vector
		if strings.Contains(body, `"encoding_format":"base64"`) {
			embedding = `"AAAAPwAAgL4="`
		}
		return `{"object":"list","data":[{"object":"embedding","index":0,"embedding":` + embedding + `}],"model":"text-embedding-e2e","usage":{"prompt_tokens":12,"total_tokens":12}}`, true
	case strings.HasSuffix(path, ":batchEmbedContents"):
		return `{"embeddings":[{"values":` + vector + `}]}`, true
	case strings.HasSuffix(path, "/api/embed"):
		return `{"model":"llama-e2e","embeddings":[` + vector + `],"total_duration":14143917,"load_duration":1019500,"prompt_eval_count":8}`, true
	case strings.HasSuffix(path, "/v1/messages/count_tokens"):
		return `{"input_tokens":12}`, true
	case strings.HasSuffix(path, ":countTokens"):
		return `{"totalTokens":12,"promptTokensDetails":[{"modality":"TEXT","tokenCount":12}]}`, true
	}
	return "", false
}
