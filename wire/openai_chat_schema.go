package wire

import "github.com/tidwall/gjson"

// The schemas of OpenAI's chat completions API as its official SDK types it,
// with what Azure and compatible servers are known to add
// (https://platform.openai.com/docs/api-reference/chat).

// chatRequest is the body of POST /v1/chat/completions.
var chatRequest = object(members{
	"messages":        as(Other, list(chatMessage)),
	"tools":           as(Definition, list(chatTool)),
	"functions":       as(Definition, list(chatFunction)),
	"response_format": as(Definition, chatFormat),
	"tool_choice":     as(Definition, chatToolChoice),
	"function_call":   as(Definition, chatToolChoice),
	"prediction":      as(Other, object(members{"type": word("content"), "content": chatContent})),
	"stop":            as(Other, stopSequences),
	"web_search_options": as(Other, object(members{
		"search_context_size": scalar, "user_location": gathered(Text),
	})),

	"model": scalar, "stream": scalar, "n": scalar, "seed": scalar, "user": scalar, "store": scalar,
	"temperature": scalar, "top_p": scalar, "frequency_penalty": scalar, "presence_penalty": scalar,
	"logprobs": scalar, "top_logprobs": scalar, "max_tokens": scalar, "max_completion_tokens": scalar,
	"parallel_tool_calls": scalar, "reasoning_effort": effort, "verbosity": effort, "service_tier": scalar,
	"safety_identifier": scalar, "prompt_cache_key": scalar, "prompt_cache_retention": scalar,

	"audio": opaque, "logit_bias": opaque, "metadata": opaque, "modalities": opaque, "moderation": opaque,
	"prompt_cache_options": opaque, "stream_options": opaque,
})

// effort is how much a model is to think or say. Templates show it.
var effort = as(Definition, scalar)

// chatMessage reads one message with the role it names.
func chatMessage(w *walk, v gjson.Result) {
	if !v.IsObject() {
		w.err = invalid("a message is not an object")
		return
	}
	w.inMessage(chatRole(v.Get("role").Str), v, chatMessageMembers)
}

// chatRole maps a message's role. Nobody knows how an unknown one is read.
func chatRole(name string) Role {
	switch name {
	case "system", "developer":
		return System
	case "user":
		return User
	case "assistant":
		return Assistant
	case "tool", "function":
		return Tool
	}
	return Other
}

// chatMessageMembers is a message of any role, of a request, an answer or a
// stream: clients send back what they were given.
var chatMessageMembers = object(members{
	"role":              word("system", "developer", "user", "assistant", "tool", "function"),
	"content":           chatContent,
	"refusal":           text(RefusalText),
	"reasoning_content": text(Reasoning),
	"reasoning":         text(Reasoning),
	"name":              text(Name),
	"tool_calls":        calling(list(chatToolCall)),
	"function_call":     calling(chatCalled("arguments")),
	"audio": object(members{
		"id": scalar, "expires_at": scalar, "data": media(Audio), "transcript": text(Text),
	}),
	"annotations":  gathered(Annotation),
	"tool_call_id": scalar,
	"prefix":       scalar, // Mistral's, of every message of the assistant
	"parsed":       chatParsed(Annotation),
})

// chatParsed is what an SDK has made of a text or of arguments, or null. It comes back in
// requests; the API itself has no such member in its answers.
func chatParsed(kind Kind) schema {
	return func(w *walk, v gjson.Result) {
		if w.toModel {
			gathered(kind)(w, v)
		} else {
			w.other(v)
		}
	}
}

// chatContent is a string or an array of parts.
var chatContent = anyOf{text: text(Text), list: list(anyOf{text: text(Text), object: chatPart}.read)}.read

var chatPart = attached(textBlock, object(members{
	"type":                    word("text", "refusal", "image_url", "input_audio", "file"),
	"text":                    text(Text),
	"refusal":                 text(RefusalText),
	"image_url":               media(Image),
	"input_audio":             media(Audio),
	"file":                    media(File),
	"prompt_cache_breakpoint": opaque,

	// The OpenAI Agents SDK resends an answer with these of its message in its text.
	"role":        word("assistant"),
	"annotations": gathered(Annotation),
}))

var chatToolCall = object(members{
	"index": scalar, "id": scalar, "type": word("function", "custom"),
	"function": chatCalled("arguments"),
	"custom":   chatCalled("input"),
})

// chatCalled is what is called: a name and its input under the given name.
// Arguments are a string that should be JSON; some servers send the object.
func chatCalled(input string) schema {
	arguments := anyOf{text: text(Arguments), list: gathered(Arguments), object: gathered(Arguments)}
	return object(members{"name": text(Name), input: arguments.read, "parsed_arguments": chatParsed(Arguments)})
}

var chatTool = object(members{
	"type":     word("function", "custom"),
	"function": chatFunction,
	"custom": object(members{
		"name": text(Name), "description": text(Text),
		"format": object(members{
			"type": word("text", "grammar"),
			"grammar": object(members{
				"syntax": scalar, "definition": text(Schema),
			}),
		}),
	}),
})

var chatFunction = object(members{
	"name": text(Name), "description": text(Text), "parameters": gathered(Schema), "strict": scalar,
})

var chatFormat = object(members{
	"type": scalar,
	"json_schema": object(members{
		"name": text(Name), "description": text(Text), "schema": gathered(Schema), "strict": scalar,
	}),
	"schema": gathered(Schema), // of a json_object, on other servers
})

// chatToolChoice is a mode or names the tools that may be called.
var chatToolChoice = anyOf{text: scalar, object: gathered(Name)}.read

var stopSequences = anyOf{text: text(Text), list: list(text(Text))}.read

// chatResponse is the body of an answer that is not streamed; chatChunk the
// data of one frame.
var (
	chatResponse = object(chatAnswer(members{
		"index": scalar, "finish_reason": scalar, "logprobs": media(Logprobs), "message": chatMessageMembers,
		"content_filter_results": opaque, "content_filter_result": opaque,
	}))
	chatChunk = object(chatAnswer(members{
		"index": scalar, "finish_reason": scalar, "logprobs": media(Logprobs), "delta": chatMessageMembers,
		"content_filter_results": opaque, "content_filter_offsets": opaque,
	}))
)

// chatAnswer is what an answer and a chunk have in common around a choice.
// Members with filter in their name are Azure's.
func chatAnswer(choice members) members {
	return members{
		"choices": list(inChoice(object(choice))),
		"id":      scalar, "object": scalar, "created": unreadScalar, "model": scalar,
		"service_tier": scalar, "system_fingerprint": scalar, "obfuscation": unreadScalar,
		"error": gathered(Annotation), "usage": unreadObject, "metadata": opaque, "moderation": opaque, "prompt_filter_results": opaque,
	}
}
