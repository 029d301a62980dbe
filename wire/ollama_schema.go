package wire

import (
	"strings"

	"github.com/tidwall/gjson"
)

// The schemas of Ollama's API as its server and its official SDKs type it
// (https://docs.ollama.com/api; api/types.go of ollama/ollama).

// ollamaChatRequest is the body of POST /api/chat.
var ollamaChatRequest = object(ollamaRequest(members{
	"messages":    as(Other, list(ollamaMessage)),
	"tools":       as(Definition, list(ollamaTool)),
	"tool_choice": as(Definition, chatToolChoice), // which the server does not know, and the AI SDK's provider sends
}))

// ollamaGenerateRequest is the body of POST /api/generate. The template says how the
// prompt is laid out for the model, and context is an earlier conversation in numbers.
var ollamaGenerateRequest = object(ollamaRequest(members{
	"prompt":   as(User, text(Text)),
	"suffix":   as(User, text(Text)),
	"images":   as(User, ollamaImages),
	"system":   as(System, text(Text)),
	"template": as(Definition, text(Text)),
	"context":  ollamaTokens,
	"raw":      scalar,
	"width":    scalar, "height": scalar, "steps": scalar,
}))

// ollamaRequest is what both calls have.
func ollamaRequest(of members) members {
	for name, read := range (members{
		"model": scalar, "stream": scalar, "keep_alive": scalar, "think": effort, "truncate": scalar, "shift": scalar,
		"logprobs": scalar, "top_logprobs": scalar, "_debug_render_only": scalar,
		"format":  as(Definition, anyOf{text: word("json", ""), object: gathered(Schema)}.read),
		"options": object(ollamaOptions),
	}) {
		of[name] = read
	}
	return of
}

// ollamaOptions are the parameters of a model. Those of older servers are among them.
var ollamaOptions = members{
	"stop": as(Other, stopSequences),

	"num_keep": scalar, "seed": scalar, "num_predict": scalar, "top_k": scalar, "top_p": scalar, "min_p": scalar,
	"tfs_z": scalar, "typical_p": scalar, "repeat_last_n": scalar, "temperature": scalar, "repeat_penalty": scalar,
	"presence_penalty": scalar, "frequency_penalty": scalar, "mirostat": scalar, "mirostat_tau": scalar,
	"mirostat_eta": scalar, "penalize_newline": scalar,
	"numa": scalar, "num_ctx": scalar, "num_batch": scalar, "num_gpu": scalar, "main_gpu": scalar, "low_vram": scalar,
	"f16_kv": scalar, "logits_all": scalar, "vocab_only": scalar, "use_mmap": scalar, "use_mlock": scalar,
	"embedding_only": scalar, "num_thread": scalar,
}

// ollamaMessage reads one message with the role it names. The server reads roles
// without regard to case (Message.UnmarshalJSON in its api/types.go).
func ollamaMessage(w *walk, v gjson.Result) {
	if !v.IsObject() {
		w.err = invalid("a message is not an object")
		return
	}
	w.inMessage(ollamaRole(v.Get("role").Str), v, ollamaMessageMembers)
}

func ollamaRole(name string) Role {
	switch role := Role(strings.ToLower(name)); role {
	case System, User, Assistant, Tool:
		return role
	default: // nobody knows how it is read
		return Other
	}
}

func ollamaRoleName(w *walk, v gjson.Result) {
	if v.Type != gjson.String || ollamaRole(v.Str) == Other {
		w.other(v)
	}
}

// ollamaMessageMembers is a message of any role, of a request, an answer or a stream:
// clients send back what they were given.
var ollamaMessageMembers = object(members{
	"role":         ollamaRoleName,
	"content":      text(Text),
	"thinking":     text(Reasoning),
	"images":       ollamaImages,
	"tool_calls":   calling(list(ollamaToolCall)),
	"tool_name":    text(Name),
	"name":         text(Name),
	"tool_call_id": scalar,
})

// ollamaImages are images in base64.
var ollamaImages = attached(emptied, list(anyOf{text: media(Image)}.read))

// ollamaToolCall has its arguments as an object; some clients send their JSON.
var ollamaToolCall = calling(object(members{
	"id": scalar, "type": word("function"),
	"function": object(members{
		"index": scalar, "name": text(Name),
		"arguments": anyOf{text: text(Arguments), list: gathered(Arguments), object: gathered(Arguments)}.read,
	}),
}))

var ollamaTool = object(members{
	"type": word("function"), "items": gathered(Schema),
	"function": object(members{
		"name": text(Name), "description": text(Text), "parameters": gathered(Schema), "type": scalar,
		"strict": scalar, // which LangChain sends to every server
	}),
})

// ollamaTokens reads the numbers of a tokenizer.
func ollamaTokens(w *walk, v gjson.Result) {
	switch {
	case isTokens(v):
		w.add(Tokens, "", v)
	case !v.IsArray() || v.Get("#").Int() > 0:
		w.other(v)
	}
}

// ollamaChatAnswer and ollamaGenerateAnswer are the body of an answer as well as a
// line of a stream.
var (
	ollamaChatAnswer     = inChoice(object(ollamaAnswer(members{"message": ollamaMessageMembers})))
	ollamaGenerateAnswer = inChoice(object(ollamaAnswer(members{
		"response": text(Text), "thinking": text(Reasoning), "tool_calls": calling(list(ollamaToolCall)),
		"context": ollamaTokens, "image": media(Image), "completed": scalar, "total": scalar,
	})))
)

// ollamaAnswer is what all answers have. With _debug_render_only the server gives the
// request back as the model would have got it, and asks no model.
func ollamaAnswer(of members) members {
	for name, read := range (members{
		"model": scalar, "remote_model": scalar, "remote_host": scalar, "created_at": unreadScalar,
		"done": scalar, "done_reason": scalar, "error": gathered(Annotation), "logprobs": media(Logprobs),
		"total_duration": scalar, "load_duration": scalar, "prompt_eval_count": scalar, "prompt_eval_duration": scalar,
		"eval_count": scalar, "eval_duration": scalar,
		"_debug_info": gathered(Annotation),
	}) {
		of[name] = read
	}
	return of
}
