package wire

import (
	"strings"

	"github.com/tidwall/gjson"
)

// The schemas of Anthropic's Messages API as the newest official SDK types it, beta
// features included (https://platform.claude.com/docs/en/api/messages). Content is a
// list of blocks, and the type of a block says which members it has. Requests, answers
// and stream frames share the blocks, because clients send back what they were given.

// anthropicRequest reads the body of a call. A system prompt stands outside the
// messages there, but it is the first message of the conversation, wherever in the body
// it stands.
func anthropicRequest(w *walk, root gjson.Result) {
	w.first(root, "system", message(System, anthropicText))
	if w.err == nil {
		anthropicBody(w, root)
	}
}

var anthropicBody = object(members{
	"system":        opaque, // read before
	"messages":      as(Other, list(anthropicMessage)),
	"tools":         as(Definition, list(anthropicTool)),
	"mcp_servers":   as(Definition, list(anthropicServer)),
	"tool_choice":   as(Definition, anthropicToolChoice),
	"output_config": as(Definition, anthropicOutput),
	"output_format": as(Definition, anthropicFormat),
	"compaction":    as(Definition, object(members{"type": word("summarize"), "instructions": text(Text)})),
	"context_management": as(Definition, object(members{"edits": list(object(members{
		"type":              word("clear_tool_uses_20250919", "clear_thinking_20251015", "compact_20260112"),
		"instructions":      text(Text),
		"clear_tool_inputs": gathered(Name), "exclude_tools": gathered(Name),
		"keep":    anyOf{text: scalar, object: anthropicAmount}.read,
		"trigger": anthropicAmount, "clear_at_least": anthropicAmount, "pause_after_compaction": scalar,
	}))})),
	"stop_sequences": as(Other, list(text(Text))),
	"container":      anyOf{text: scalar, object: anthropicContainer}.read,
	"thinking":       anthropicThinking,
	"fallbacks": anyOf{text: word("default"), list: list(object(members{
		"model": scalar, "max_tokens": scalar, "speed": scalar, "thinking": anthropicThinking,
		"output_config": as(Definition, anthropicOutput),
	}))}.read,
	"metadata":       object(members{"user_id": scalar, "session_id": scalar}),
	"thread":         object(members{"type": word("create", "continue"), "previous_message_id": scalar}),
	"diagnostics":    object(members{"previous_message_id": scalar}),
	"billing_policy": object(members{"type": scalar, "bill_to": scalar}),
	"cache_control":  anthropicCache,

	"model": scalar, "max_tokens": scalar, "stream": scalar, "temperature": scalar, "top_p": scalar, "top_k": scalar,
	"service_tier": scalar, "speed": scalar, "inference_geo": scalar, "user_profile_id": scalar, "workspace_id": scalar,
	"fallback_credit_token": opaque, // a credential

	// On Bedrock and Vertex, where the headers of the API are members.
	"anthropic_version": scalar, "anthropic_beta": list(scalar),
})

var (
	anthropicCache     = object(members{"type": word("ephemeral"), "ttl": scalar})
	anthropicAmount    = object(members{"type": scalar, "value": scalar})
	anthropicContainer = object(members{
		"id": scalar, "expires_at": scalar, "skills": list(object(members{"skill_id": scalar, "type": scalar, "version": scalar})),
	})
	anthropicThinking = object(members{
		"type": word("enabled", "disabled", "adaptive", "between_tools"), "budget_tokens": scalar, "display": scalar,
		"block_binding": object(members{"prefix_mismatch_behavior": scalar}),
	})
	anthropicFormat = object(members{"type": word("json_schema"), "schema": gathered(Schema)})
	anthropicOutput = object(members{
		"effort": effort, "format": anthropicFormat,
		"task_budget": object(members{"type": scalar, "total": scalar, "remaining": scalar}),
	})
	anthropicToolChoice = object(members{
		"type": word("auto", "any", "tool", "none"), "name": text(Name), "disable_parallel_tool_use": scalar,
	})
	anthropicServer = object(members{
		"name": text(Name), "type": word("url"), "url": scalar,
		"authorization_token": opaque, // a credential
		"tool_configuration":  object(members{"allowed_tools": gathered(Name), "enabled": scalar}),
	})
)

// anthropicTool is a tool that the client runs, one that the provider runs, or a set of
// tools. What a server of tools says of them is their only definition.
var (
	anthropicTool = object(anthropicToolMembers(members{
		"tools": list(object(anthropicToolMembers(nil))),
	}))
	anthropicToolTypes = word(
		"custom", "advisor_20260301", "bash_20241022", "bash_20250124", "browser_toolset_20260801",
		"code_execution_20250522", "code_execution_20250825", "code_execution_20260120", "code_execution_20260521",
		"computer_20241022", "computer_20250124", "computer_20251124", "computer_toolset_20260801",
		"mcp_toolset", "memory_20250818",
		"text_editor_20241022", "text_editor_20250124", "text_editor_20250429", "text_editor_20250728",
		"tool_search_tool_bm25", "tool_search_tool_bm25_20251119", "tool_search_tool_regex", "tool_search_tool_regex_20251119",
		"web_fetch_20250910", "web_fetch_20260209", "web_fetch_20260309", "web_fetch_20260318",
		"web_search_20250305", "web_search_20260209", "web_search_20260318",
	)
)

func anthropicToolMembers(more members) members {
	known := members{
		"type": anthropicToolTypes, "name": text(Name), "description": text(Text), "mcp_server_name": text(Name),
		"input_schema": gathered(Schema), "input_examples": gathered(Schema), "configs": gathered(Name),
		"allowed_domains": gathered(Name), "blocked_domains": gathered(Name), "url_sources": gathered(Name),
		"user_location": gathered(Text), "citations": anthropicCitations, "cache_control": anthropicCache, "caching": anthropicCache,
		"default_config":  object(members{"defer_loading": scalar, "enabled": scalar}),
		"allowed_callers": list(scalar),

		"model": scalar, "max_tokens": scalar, "max_uses": scalar, "max_content_tokens": scalar, "max_characters": scalar,
		"strict": scalar, "defer_loading": scalar, "eager_input_streaming": scalar, "use_cache": scalar, "response_inclusion": scalar,
		"display_width_px": scalar, "display_height_px": scalar, "display_number": scalar, "enable_zoom": scalar,
	}
	for name, read := range more {
		known[name] = read
	}
	return known
}

// anthropicMessage reads one message with the role it names.
func anthropicMessage(w *walk, v gjson.Result) { w.inTurn(v, anthropicMessageMembers) }

var anthropicMessageMembers = object(members{
	"role":    word("user", "assistant", "system"),
	"content": orEmptied(textBlocks, anthropicContent),
	// Of a system message in the midst of others.
	"clear_at": scalar, "output_config": object(members{"effort": scalar}),
})

// anthropicContent is a string or a list of blocks.
var anthropicContent = anyOf{text: text(Text), list: list(anthropicBlocks(anthropicBlock))}.read

// anthropicText is the system prompt, in which only text may stand.
var anthropicText = anyOf{text: text(Text), list: list(anthropicBlocks(map[string]schema{"text": anthropicTextBlock(Text)}))}.read

// anthropicBlocks reads a block by its type. A block of an unknown type is unknown as
// a whole: nobody knows which of its members the model reads.
func anthropicBlocks(types map[string]schema) schema {
	return func(w *walk, v gjson.Result) {
		n := len(w.parts)
		byType(types)(w, v)
		if len(w.parts) == n+1 && w.parts[n].Kind == Unknown && w.parts[n].Start == v.Index {
			w.parts[n].replacement = textBlock
		}
	}
}

// byType reads an object by the schema of its type.
func byType(types map[string]schema) schema {
	return func(w *walk, v gjson.Result) {
		if read, ok := types[v.Get("type").Str]; ok && v.IsObject() {
			read(w, v)
			return
		}
		if v.IsObject() {
			v.ForEach(func(key, _ gjson.Result) bool {
				if key.Str != "type" && strings.EqualFold(key.Str, "type") {
					w.err = invalid("a member name differs from a known one by case only")
				}
				return w.err == nil
			})
		}
		w.other(v)
	}
}

// typed is an object whose type was read before.
func typed(known members) schema {
	known["type"] = opaque
	return object(known)
}

// The blocks of content. Citations quote what other blocks hold.
var (
	anthropicCitations = anyOf{list: gathered(Annotation), object: object(members{"enabled": scalar})}.read

	anthropicImage = attached(textBlock, typed(members{
		"source": byType(map[string]schema{
			"base64": typed(members{"data": media(Image), "media_type": setting}),
			"url":    typed(members{"url": media(Image)}),
			"file":   typed(members{"file_id": media(Image)}),
		}),
		"cache_control": anthropicCache, "transformations": object(members{"oversized_image": scalar}),
	}))

	anthropicDocument = typed(members{
		"source": attached(plainSource, byType(map[string]schema{
			"text":   typed(members{"data": text(Document), "media_type": setting}),
			"base64": typed(members{"data": media(File), "media_type": setting}),
			"url":    typed(members{"url": media(File)}),
			"file":   typed(members{"file_id": media(File)}),
			"content": typed(members{"content": anyOf{text: text(Document), list: list(anthropicBlocks(map[string]schema{
				"text": anthropicTextBlock(Document), "image": anthropicImage,
			}))}.read}),
		})),
		"title": text(Document), "context": text(Document), "citations": anthropicCitations, "cache_control": anthropicCache,
	})

	anthropicSearchResult = typed(members{
		"title": text(Document), "source": text(Document), "citations": anthropicCitations, "cache_control": anthropicCache,
		"content": list(anthropicBlocks(map[string]schema{"text": anthropicTextBlock(Document)})),
	})

	anthropicReference = typed(members{
		"tool_name": text(Name), "name": text(Name), "server_name": text(Name), "cache_control": anthropicCache,
	})

	anthropicBrowser = typed(members{
		"tabs": list(object(members{"tab_id": scalar, "title": text(Text), "url": text(Text), "active": scalar})),
		"state_changes": list(object(members{
			"type": scalar, "tab_id": scalar, "download_id": scalar, "size_bytes": scalar,
			"url": text(Text), "path": text(Text), "error": text(Text),
		})),
		"cache_control": anthropicCache,
	})
)

func anthropicTextBlock(kind Kind) schema {
	return typed(members{"text": text(kind), "citations": anthropicCitations, "cache_control": anthropicCache})
}

// anthropicBlock are the blocks of a message, by type.
var anthropicBlock = map[string]schema{
	"text":          anthropicTextBlock(Text),
	"image":         anthropicImage,
	"document":      anthropicDocument,
	"search_result": anthropicSearchResult,

	"thinking":          signed(typed(members{"thinking": text(Reasoning), "signature": opaque})),
	"redacted_thinking": typed(members{"data": media(Reasoning)}),
	"compaction": signed(typed(members{
		"content": text(Document), "encrypted_content": media(Document), "signature": opaque, "cache_control": anthropicCache,
		"tool_changes": list(byType(map[string]schema{"tool_addition": anthropicToolChange, "tool_removal": anthropicToolChange})),
	})),

	// A call that the client runs has the name of a tool that the caller defined, or of
	// a member of one of the provider's sets. The provider's own tools have fixed names.
	"tool_use":        calling(anthropicToolUse),
	"mcp_tool_use":    typed(anthropicCall(members{"name": text(Name), "server_name": text(Name)})),
	"server_tool_use": typed(anthropicCall(members{"name": word(anthropicServerTools...)})),

	"tool_result":                            anthropicResult,
	"mcp_tool_result":                        anthropicResult,
	"web_search_tool_result":                 anthropicResult,
	"web_fetch_tool_result":                  anthropicResult,
	"code_execution_tool_result":             anthropicResult,
	"bash_code_execution_tool_result":        anthropicResult,
	"text_editor_code_execution_tool_result": anthropicResult,
	"tool_search_tool_result":                anthropicResult,
	"advisor_tool_result":                    anthropicResult,

	"mcp_tool_listing": toolResult(typed(members{"mcp_server_name": text(Name), "tools": gathered(Schema)})),
	"tool_addition":    anthropicToolChange,
	"tool_removal":     anthropicToolChange,
	"container_upload": attached(textBlock, typed(members{"file_id": media(File), "cache_control": anthropicCache})),
	"fallback": typed(members{
		"from": object(members{"model": scalar}), "to": object(members{"model": scalar}),
		"trigger": object(members{"type": scalar, "category": scalar}),
	}),
}

// signed reads a block whose text has a signature beside it. In a request the whole
// block is the part then: the API accepts one that is missing, but none that was
// changed.
func signed(read schema) schema {
	return func(w *walk, v gjson.Result) {
		n := len(w.parts)
		read(w, v)
		if w.role == "" || len(w.parts) != n+1 || w.parts[n].Text == "" || v.Get("signature").Str == "" {
			return
		}
		p := &w.parts[n]
		p.Path, p.Start, p.Bytes, p.replacement = string(w.path), v.Index, len(v.Raw), textBlock
	}
}

// toolResult reads what a tool returned. In a request it is said by the tool, whoever
// sends it; in an answer it is no text of the model's own.
func toolResult(read schema) schema {
	return func(w *walk, v gjson.Result) {
		if w.role != "" {
			as(Tool, read)(w, v)
			return
		}
		n := len(w.parts)
		read(w, v)
		for i := range w.parts[n:] {
			if p := &w.parts[n+i]; p.Text != "" || p.Kind == Document {
				p.Kind = ToolResult
			}
		}
	}
}

// anthropicToolChange defines or names a tool in the midst of messages. Definitions
// are the application's and no part of the conversation.
func anthropicToolChange(w *walk, v gjson.Result) {
	if w.role == "" {
		toolResult(anthropicChangedTool)(w, v)
		return
	}
	message := w.message
	w.message = 0
	as(Definition, anthropicChangedTool)(w, v)
	w.message = message
}

var anthropicChangedTool = typed(members{
	"tool": byType(map[string]schema{
		"tool_reference": anthropicReference, "mcp_tool_reference": anthropicReference, "mcp_toolset_reference": anthropicReference,
		"tool_definition": typed(members{"definition": anthropicTool}),
	}),
	"cache_control": anthropicCache,
})

func anthropicCall(names members) members {
	names["id"], names["input"] = scalar, gathered(Arguments)
	names["cache_control"], names["caller"] = anthropicCache, object(members{"type": scalar, "tool_id": scalar})
	return names
}

var (
	anthropicClientCall  = typed(anthropicCall(members{"name": text(Name), "toolset_name": opaque}))
	anthropicToolsetCall = typed(anthropicCall(members{"name": word(anthropicToolsetTools...), "toolset_name": word("browser", "computer")}))
)

func anthropicToolUse(w *walk, v gjson.Result) {
	if v.Get("toolset_name").Type != gjson.Null {
		anthropicToolsetCall(w, v)
		return
	}
	anthropicClientCall(w, v)
}

var anthropicServerTools = []string{
	"advisor", "web_search", "web_fetch", "code_execution", "bash_code_execution", "text_editor_code_execution",
	"tool_search_tool_regex", "tool_search_tool_bm25",
}

// anthropicToolsetTools are the members of the sets browser and computer.
var anthropicToolsetTools = []string{
	"navigate", "list_tabs", "new_tab", "switch_tab", "close_tab", "read_page", "get_page_text", "read_console", "read_network",
	"find", "form_input", "file_upload", "scroll_to", "screenshot", "zoom", "left_click", "right_click", "middle_click",
	"double_click", "triple_click", "hover", "left_click_drag", "left_mouse_down", "left_mouse_up", "mouse_move", "scroll",
	"type", "key", "hold_key", "wait", "javascript_exec", "cursor_position",
}

// anthropicResult is a block with what a tool returned: a string, blocks, or an object
// for each kind of tool.
var anthropicResult = toolResult(typed(members{
	"content": anyOf{
		text:   text(Text),
		list:   list(anthropicBlocks(anthropicReturned)),
		object: byType(anthropicReturned),
	}.read,
	"tool_use_id": scalar, "is_error": scalar, "toolset_name": scalar, "cache_control": anthropicCache,
	"caller": object(members{"type": scalar, "tool_id": scalar}),
}))

var anthropicReturned = map[string]schema{
	"text":           anthropicTextBlock(Text),
	"image":          anthropicImage,
	"document":       anthropicDocument,
	"search_result":  anthropicSearchResult,
	"tool_reference": anthropicReference,
	"browser_state":  anthropicBrowser,

	// What a page says is encrypted; only the title and the address are readable.
	"web_search_result": typed(members{
		"title": text(Text), "url": text(Text), "encrypted_content": media(Document), "page_age": scalar,
	}),
	"web_fetch_result": typed(members{
		"url": text(Text), "retrieved_at": scalar,
		"content": byType(map[string]schema{"document": anthropicDocument}),
	}),

	"code_execution_result":           anthropicExecution,
	"bash_code_execution_result":      anthropicExecution,
	"encrypted_code_execution_result": anthropicExecution,

	"text_editor_code_execution_view_result": typed(members{
		"content": text(Text), "file_type": scalar, "num_lines": scalar, "start_line": scalar, "total_lines": scalar,
	}),
	"text_editor_code_execution_create_result": typed(members{"is_file_update": scalar}),
	"text_editor_code_execution_str_replace_result": typed(members{
		"lines": list(text(Text)), "new_lines": scalar, "new_start": scalar, "old_lines": scalar, "old_start": scalar,
	}),
	"tool_search_tool_search_result": typed(members{
		"tool_references": list(byType(map[string]schema{"tool_reference": anthropicReference})),
	}),
	"advisor_result":          typed(members{"text": text(Text), "stop_reason": scalar}),
	"advisor_redacted_result": typed(members{"encrypted_content": media(Document), "stop_reason": scalar}),

	"web_search_tool_result_error":                 anthropicFailure,
	"web_fetch_tool_result_error":                  anthropicFailure,
	"code_execution_tool_result_error":             anthropicFailure,
	"bash_code_execution_tool_result_error":        anthropicFailure,
	"text_editor_code_execution_tool_result_error": anthropicFailure,
	"tool_search_tool_result_error":                anthropicFailure,
	"advisor_tool_result_error":                    anthropicFailure,
}

var (
	anthropicFailure   = typed(members{"error_code": scalar, "error_message": text(Text)})
	anthropicExecution = typed(members{
		"stdout": text(Text), "stderr": text(Text), "encrypted_stdout": media(Document), "return_code": scalar,
		"content": attached(emptied, list(byType(map[string]schema{
			"code_execution_output":      typed(members{"file_id": media(File)}),
			"bash_code_execution_output": typed(members{"file_id": media(File)}),
		}))),
	})
)

// anthropicAnswer is a whole answer, and with empty content the beginning of a stream.
var anthropicAnswer = object(members{
	"content":      anthropicContent,
	"stop_details": anthropicStopDetails,
	"container":    anyOf{text: scalar, object: anthropicContainer}.read,

	"id": scalar, "type": word("message"), "role": word("assistant"), "model": scalar, "stop_reason": scalar, "stop_sequence": scalar,
	"usage": opaque, "context_management": opaque, "diagnostics": opaque, "input_transformations": opaque,
})

// anthropicStopDetails says why the model declined. Some clients show the explanation.
var anthropicStopDetails = object(members{
	"type": scalar, "category": scalar, "explanation": text(RefusalText), "recommended_model": scalar,
	"fallback_credit_token": opaque, "fallback_has_prefill_claim": scalar,
})

// anthropicEvent is the data of one frame of a stream, by type.
var anthropicEvent = byType(map[string]schema{
	"message_start":       typed(members{"message": anthropicAnswer}),
	"content_block_start": typed(members{"index": scalar, "content_block": anthropicBlocks(anthropicBlock)}),
	"content_block_delta": typed(members{"index": scalar, "delta": byType(map[string]schema{
		"text_delta":       typed(members{"text": text(Text)}),
		"thinking_delta":   typed(members{"thinking": text(Reasoning), "estimated_tokens": scalar}),
		"signature_delta":  typed(members{"signature": scalar}),
		"input_json_delta": typed(members{"partial_json": text(Arguments)}),
		"citations_delta":  typed(members{"citation": gathered(Annotation)}),
		"compaction_delta": typed(members{"content": text(Document), "encrypted_content": media(Document)}),
	})}),
	"content_block_stop": typed(members{"index": scalar}),
	"message_delta": typed(members{
		"delta": object(members{
			"stop_reason": scalar, "stop_sequence": scalar, "stop_details": anthropicStopDetails,
			"container": anyOf{text: scalar, object: anthropicContainer}.read,
		}),
		"usage": opaque, "context_management": opaque, "input_transformations": opaque,
	}),
	"message_stop": typed(members{"amazon-bedrock-invocationMetrics": opaque}), // Bedrock's counts of tokens
	"ping":         typed(members{}),
	"error":        typed(members{"error": gathered(Annotation), "request_id": scalar}),
})
