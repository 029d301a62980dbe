package wire

import (
	"maps"
	"strings"

	"github.com/tidwall/gjson"
)

// The schemas of OpenAI's Responses API as its official SDK types it, with what Azure
// and compatible servers are known to add
// (https://platform.openai.com/docs/api-reference/responses).

// responsesRequest reads the body of POST /v1/responses. Its instructions and the prompt that
// stands in their place are not in the input, but come before it.
func responsesRequest(w *walk, root gjson.Result) {
	w.first(root, "instructions", message(System, text(Text)))
	w.first(root, "prompt", as(Other, responsesTemplate))
	if w.err == nil {
		responsesMembers(w, root)
	}
}

var responsesMembers = object(members{
	"instructions": opaque, "prompt": opaque, // read before
	"input":       anyOf{text: message(User, text(Text)), list: list(responsesInputItem)}.read,
	"tools":       as(Definition, list(responsesTool)),
	"tool_choice": as(Definition, chatToolChoice),
	"text":        as(Definition, responsesText),
	"reasoning": object(members{
		"effort": effort, "summary": scalar, "generate_summary": scalar, "context": scalar, "mode": scalar,
	}),

	"model": scalar, "stream": scalar, "background": scalar, "store": scalar, "user": scalar, "truncation": scalar,
	"previous_response_id": scalar, "max_output_tokens": scalar, "max_tool_calls": scalar, "parallel_tool_calls": scalar,
	"temperature": scalar, "top_p": scalar, "top_logprobs": scalar, "service_tier": scalar, "safety_identifier": scalar,
	"prompt_cache_key": scalar, "prompt_cache_retention": scalar,

	"context_management": as(Definition, responsesContext(Text)),

	"access_programs": opaque, "conversation": opaque, "image": opaque, "include": opaque,
	"client_metadata": opaque, // of coding agents, about themselves
	"metadata":        opaque, "moderation": opaque, "prompt_cache_options": opaque, "stream_options": opaque,
})

// responsesContext says what becomes of a context that grows too long. The API has no
// instructions for that, but Anthropic's has, and a server that takes them shows them to a model.
func responsesContext(kind Kind) schema {
	return list(object(members{"type": scalar, "compact_threshold": scalar, "instructions": text(kind)}))
}

// responsesTemplate is a prompt that the provider keeps. Only the variables that are
// put into it are in the body; they are the user's.
var responsesTemplate = object(members{
	"id":        media(Stored),
	"version":   scalar,
	"variables": message(User, each(anyOf{text: text(Text), object: responsesPart(Text)}.read)),
})

// responsesText says which form the answer's text has.
var responsesText = object(members{
	"verbosity": scalar,
	"format": object(members{
		"type": scalar, "name": text(Name), "description": text(Text), "schema": gathered(Schema), "strict": scalar,
	}),
})

// A responsesItem is how one type of item is read: of the input, where the output of
// earlier answers comes back, of an answer and of a stream.
type responsesItem struct {
	role    Role // of the message that the item is in a request; none or Definition is no message
	members schema
}

// item makes a responsesItem from the members that its type has beside the common ones.
func item(role Role, own members) responsesItem {
	known := members{
		"id": scalar, "type": scalar, "status": scalar, "created_by": scalar, "call_id": scalar,
		"caller": opaque, "namespace": text(Name),
		"internal_chat_message_metadata_passthrough": responsesPassthrough,
	}
	maps.Copy(known, own)
	return responsesItem{role, object(known)}
}

// responsesItems are the items by their type.
var responsesItems = map[string]responsesItem{
	"reasoning": item(Assistant, members{
		"summary": list(responsesPart(Reasoning)), "content": list(responsesPart(Reasoning)),
		"encrypted_content": media(Reasoning),
	}),

	// Calls that the client runs, and their results.
	"function_call":           item(Assistant, members{"name": text(Name), "arguments": responsesArguments, "async": scalar, "parsed_arguments": responsesParsed}),
	"function_call_output":    item(Tool, members{"name": text(Name), "output": responsesResult}),
	"custom_tool_call":        item(Assistant, members{"name": text(Name), "input": responsesArguments, "async": scalar}),
	"custom_tool_call_output": item(Tool, members{"output": responsesResult}),
	"computer_call": item(Assistant, members{
		"action": responsesClick, "actions": list(responsesClick), "pending_safety_checks": list(responsesSafetyCheck),
	}),
	"computer_call_output": item(Tool, members{
		"output": responsesPart(ToolResult), "acknowledged_safety_checks": list(responsesSafetyCheck),
	}),
	"shell_call": item(Assistant, members{
		"action": object(members{
			"commands": list(text(Arguments)), "max_output_length": scalar, "timeout_ms": scalar,
		}),
		"environment": as(Definition, besideCalls(object(members{
			"type": scalar, "container_id": scalar, "file_ids": opaque, "memory_limit": scalar, "network_policy": opaque,
			"skills": gathered(Schema),
		}))),
	}),
	"shell_call_output": item(Tool, members{"output": list(responsesShellOutput), "max_output_length": scalar}),
	"local_shell_call": item(Assistant, members{"action": object(members{
		"type": word("exec"), "command": list(text(Arguments)), "env": gathered(Arguments), "timeout_ms": scalar,
		"user": scalar, "working_directory": text(Arguments),
	})}),
	"local_shell_call_output": item(Tool, members{"output": text(ToolResult)}),
	"apply_patch_call": item(Assistant, members{"operation": object(members{
		"type": word("create_file", "update_file", "delete_file"), "path": text(Arguments), "diff": text(Arguments),
	})}),
	"apply_patch_call_output": item(Tool, members{"output": text(ToolResult)}),
	"tool_search_call":        item(Assistant, members{"arguments": responsesArguments, "execution": scalar}),
	"tool_search_output":      item(Tool, members{"tools": as(Definition, gathered(Schema)), "execution": scalar}),
	"mcp_approval_request": item(Assistant, members{
		"name": text(Name), "arguments": responsesArguments, "server_label": text(Name),
	}),
	"mcp_approval_response": item(Tool, members{"approval_request_id": scalar, "approve": scalar, "reason": text(ToolResult)}),

	// Calls that the provider has run.
	"mcp_call": item(Assistant, members{
		"name": text(Name), "arguments": responsesArguments, "server_label": text(Name), "approval_request_id": scalar,
		"output": as(Tool, text(ToolResult)), "error": as(Tool, gathered(ToolResult)),
	}),
	"mcp_list_tools": item(Assistant, members{
		"server_label": text(Name), "tools": as(Definition, gathered(Schema)), "error": as(Tool, gathered(ToolResult)),
	}),
	"web_search_call": item(Assistant, members{"action": object(members{
		"type": word("search", "open_page", "find_in_page", "find"), "query": text(Arguments), "queries": list(text(Arguments)),
		"url": text(Arguments), "pattern": text(Arguments), "sources": as(Tool, gathered(Annotation)),
	}), "results": as(Tool, gathered(ToolResult))}),
	"file_search_call": item(Assistant, members{
		"queries": list(text(Arguments)),
		"results": as(Tool, list(object(members{
			"text": text(ToolResult), "filename": text(Name), "attributes": gathered(Annotation), "file_id": scalar, "score": scalar,
		}))),
	}),
	"code_interpreter_call": item(Assistant, members{
		"code": text(Arguments), "container_id": scalar,
		"outputs": as(Tool, list(attached(logsOutput, object(members{
			"type": word("logs", "image"), "logs": text(ToolResult), "url": media(Image),
		})))),
	}),
	"image_generation_call": item(Assistant, members{
		"result": media(Image), "revised_prompt": text(Arguments), "error": as(Tool, gathered(ToolResult)),
		"action": scalar, "background": scalar, "output_format": scalar, "quality": scalar, "size": scalar, "svg_usage": opaque,
	}),
	"program":        item(Assistant, members{"code": text(Arguments), "fingerprint": scalar}),
	"program_output": item(Tool, members{"result": text(ToolResult)}),

	// What the provider keeps, and what says nothing.
	"item_reference":       {Assistant, responsesReference},
	"compaction":           item(Assistant, members{"encrypted_content": media(Stored)}),
	"compaction_trigger":   item("", nil),
	"configuration_update": item(Definition, members{"reasoning": opaque, "text": responsesText}),
	"additional_tools":     item(Definition, members{"role": scalar, "tools": list(responsesTool)}),
}

// responsesMessage is an item of type message, whoever speaks in it.
var responsesMessage = object(members{
	"id": scalar, "type": scalar, "status": scalar, "created_by": scalar, "phase": scalar,
	"role":    word("system", "developer", "user", "assistant"),
	"content": anyOf{text: text(Text), list: list(responsesPart(Text))}.read,
	"internal_chat_message_metadata_passthrough": responsesPassthrough,
})

// responsesPassthrough is what coding agents note at each item: when it was made, and of which
// kinds the parts of its content are (host_skills.instructions).
var responsesPassthrough = object(members{
	"turn_id": scalar, "create_time": scalar, "content_item_kinds": list(scalar),
})

// responsesInputItem reads one item of a request, in the message that it is.
func responsesInputItem(w *walk, v gjson.Result) {
	if !v.IsObject() {
		w.err = invalid("an item of input is not an object")
		return
	}
	known, read := responsesItemOf(v)
	switch {
	case !known:
		w.inMessage(Other, v, replacedBy(messageItem, unknown))
	case read.role == "":
		read.members(w, v)
	case read.role == Definition:
		as(Definition, read.members)(w, v)
	case v.Get("type").Str == "reasoning":
		w.inMessage(read.role, v, responsesReasoning)
	case v.Get("type").Str == "image_generation_call":
		w.inMessage(read.role, v, attached(messageItem, read.members))
	default:
		w.inMessage(read.role, v, read.members)
	}
}

// responsesItemOf finds how an item is read. One without a type is a message if it has
// a role, and otherwise refers to an item that the provider keeps.
func responsesItemOf(v gjson.Result) (known bool, item responsesItem) {
	kind, role := v.Get("type"), v.Get("role")
	switch {
	case kind.Type == gjson.Null && !role.Exists() && v.Get("id").Exists():
		return true, responsesItems["item_reference"]
	case kind.Type == gjson.Null, kind.Type == gjson.String && kind.Str == "message":
		return true, responsesItem{responsesRole(role.Str), responsesMessage}
	}
	item, known = responsesItems[kind.Str]
	return known, item
}

// responsesReference refers to an item that the provider keeps. Clients refer to what
// the assistant said, and to our refusals too, of which the provider knows nothing.
func responsesReference(w *walk, v gjson.Result) {
	if !strings.HasPrefix(v.Get("id").Str, responsesOwnItem) {
		object(members{"type": scalar, "id": media(Stored)})(w, v)
		return
	}
	w.add(Stored, "", v)
	if n := len(w.parts); w.err == nil {
		w.parts[n-1].Ours, w.parts[n-1].replacement = true, messageItem
	}
}

func responsesRole(name string) Role {
	switch name {
	case "system", "developer":
		return System
	case "user":
		return User
	case "assistant":
		return Assistant
	}
	return Other
}

// responsesReasoning reads an item of reasoning in the history. What the model reads
// may be encrypted, or kept under the item's id, beside the text. So the item is one
// part, and goes as a whole if its text must go.
func responsesReasoning(w *walk, v gjson.Result) {
	first, said := len(w.parts), ""
	responsesItems["reasoning"].members(w, v)
	for _, p := range w.parts[first:] {
		if p.Kind == Unknown {
			return
		}
		said += p.Text
	}
	if said != "" && w.err == nil {
		w.parts = w.parts[:first]
		replacedBy(messageItem, func(w *walk, v gjson.Result) { w.add(Reasoning, said, v) })(w, v)
	}
}

// replacedBy reads a value as one part, in whose place Redact writes a form of its own.
func replacedBy(form replacement, read schema) schema {
	return func(w *walk, v gjson.Result) {
		n := len(w.parts)
		if read(w, v); len(w.parts) > n {
			w.parts[n].replacement = form
		}
	}
}

// responsesOutputItem reads one item of an answer.
func responsesOutputItem(w *walk, v gjson.Result) {
	known, read := responsesItemOf(v)
	switch {
	case !known || !v.IsObject():
		w.other(v)
	case w.hosted.runByClient(v):
		calling(read.members)(w, v)
	default:
		read.members(w, v)
	}
}

// responsesPart reads a part of a message, of reasoning or of a tool's result, whose
// text is of a kind.
func responsesPart(kind Kind) schema {
	parts := make(map[string]schema)
	for _, name := range []string{"input_text", "output_text", "text", "summary_text", "reasoning_text"} {
		parts[name] = object(members{
			"type": scalar, "text": text(kind), "annotations": gathered(Annotation), "logprobs": responsesLogprobs,
			"prompt_cache_breakpoint": opaque, "parsed": responsesParsed,
		})
	}
	parts["refusal"] = object(members{"type": scalar, "refusal": text(RefusalText), "parsed": responsesParsed})
	image := object(members{
		"type": scalar, "detail": scalar, "image_url": media(Image), "file_id": media(Image), "prompt_cache_breakpoint": opaque,
	})
	parts["input_image"], parts["computer_screenshot"] = image, attached(blankScreenshot, image)
	parts["input_file"] = object(members{
		"type": scalar, "detail": scalar, "file_data": media(File), "file_id": media(File), "file_url": media(File),
		"filename": text(Name), "prompt_cache_breakpoint": opaque,
	})
	parts["input_audio"] = object(members{"type": scalar, "input_audio": media(Audio)})
	parts["output_audio"] = object(members{"type": scalar, "data": media(Audio), "transcript": text(kind)})
	return func(w *walk, v gjson.Result) {
		read, known := parts[v.Get("type").Str]
		switch {
		case known && v.IsObject() && w.role == Assistant:
			attached(outputText, read)(w, v)
		case known && v.IsObject():
			attached(inputText, read)(w, v)
		case w.role == Assistant:
			replacedBy(outputText, (*walk).other)(w, v)
		default:
			replacedBy(inputText, (*walk).other)(w, v)
		}
	}
}

// responsesParsed is what an SDK has made of a text or of arguments. It comes back in requests,
// where no model reads it; the API itself has no such member in its answers.
func responsesParsed(w *walk, v gjson.Result) {
	if !w.toModel {
		w.other(v)
	}
}

// responsesLogprobs reads a list that most answers carry empty.
func responsesLogprobs(w *walk, v gjson.Result) {
	if v.Raw != "[]" {
		media(Logprobs)(w, v)
	}
}

var responsesArguments = anyOf{text: text(Arguments), list: gathered(Arguments), object: gathered(Arguments)}.read

var responsesResult = anyOf{text: text(ToolResult), list: list(responsesPart(ToolResult))}.read

var responsesShellOutput = object(members{
	"stdout": text(ToolResult), "stderr": text(ToolResult), "created_by": scalar,
	"outcome": object(members{"type": word("exit", "timeout"), "exit_code": scalar}),
})

// responsesClick is one action of a model that uses a computer.
var responsesClick = object(members{
	"type": scalar, "text": text(Arguments), "keys": list(text(Arguments)), "button": scalar, "x": scalar, "y": scalar,
	"scroll_x": scalar, "scroll_y": scalar, "path": opaque,
})

var responsesSafetyCheck = object(members{"id": scalar, "code": scalar, "message": text(Annotation)})

// responsesTool defines one tool. What each type has beside texts are settings.
// Credentials for a tool's server are no part: nothing of them may be read.
var responsesTool = func() schema {
	known := maps.Clone(responsesToolMembers)
	known["tools"] = list(object(responsesToolMembers)) // of a namespace
	return object(known)
}()

var responsesToolMembers = members{
	"type": scalar, "name": text(Name), "description": text(Text), "parameters": gathered(Schema),
	"output_schema": gathered(Schema), "strict": scalar, "async": scalar, "defer_loading": scalar, "allowed_callers": opaque,
	"format": object(members{"type": scalar, "syntax": scalar, "definition": text(Schema)}), // custom

	"server_label": text(Name), "server_description": text(Text), "server_url": scalar, "connector_id": scalar, // mcp
	"tunnel_id": scalar, "allowed_tools": gathered(Name), "require_approval": opaque, "authorization": opaque, "headers": opaque,

	"environment": object(members{ // shell
		"type": scalar, "container_id": scalar, "file_ids": opaque, "memory_limit": scalar, "network_policy": opaque,
		"skills": list(object(members{
			"type": scalar, "skill_id": media(Stored), "version": scalar, "name": text(Name), "description": text(Text),
			"path": scalar, "source": media(File),
		})),
	}),
	"container": opaque,                                                                                   // code_interpreter
	"filters":   opaque, "max_num_results": scalar, "ranking_options": opaque, "vector_store_ids": opaque, // file_search
	"execution":     scalar, // tool_search
	"user_location": gathered(Text), "search_context_size": scalar, "search_content_types": opaque, "external_web_access": scalar,
	"display_height": scalar, "display_width": scalar, // computer
	"action": scalar, "background": scalar, "complexity": scalar, "frame_count": scalar, "frame_duration_ms": scalar, // image_generation
	"input_fidelity": scalar, "input_image_mask": media(Image), "model": scalar, "moderation": scalar, "output_compression": scalar,
	"output_format": scalar, "partial_images": scalar, "quality": scalar, "size": scalar, "svg": opaque,
}

// responsesAnswer is the object of an answer, as its body and in the first and last
// frames of a stream. Settings come back in it as they were sent.
var responsesAnswer = object(members{
	"output":      list(responsesOutputItem),
	"output_text": text(Text), // of SDKs and some servers; clients show it instead of output
	"error":       gathered(Annotation),

	"instructions": gathered(Document), "prompt": gathered(Document), "tools": gathered(Schema),
	"context_management": responsesContext(Document),

	"id": scalar, "object": scalar, "created_at": scalar, "completed_at": scalar, "model": scalar, "status": scalar,
	"background": scalar, "store": scalar, "user": scalar, "truncation": scalar, "previous_response_id": scalar,
	"max_output_tokens": scalar, "max_tool_calls": scalar, "parallel_tool_calls": scalar, "temperature": scalar, "top_p": scalar,
	"frequency_penalty": scalar, "presence_penalty": scalar, "top_logprobs": scalar, "service_tier": scalar,
	"safety_identifier": scalar, "prompt_cache_key": scalar, "prompt_cache_retention": scalar,

	"access_programs": opaque, "billing": opaque, "content_filters": opaque, "conversation": opaque, "image": opaque,
	"incomplete_details": opaque, "input_transformations": opaque, "metadata": opaque, "moderation": opaque,
	"prompt_cache_diagnostics": opaque, "prompt_cache_options": opaque, "reasoning": opaque, "text": opaque,
	"tool_choice": opaque, "tool_usage": opaque, "usage": opaque,
})
