package wire

import (
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// The schemas of Amazon Bedrock's Converse API as the newest AWS SDK for Go types it
// (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html). Content is a
// list of blocks. A block is a union: an object with one member, whose name says what it is.
// Requests, answers and the events of streams share the blocks, because clients send back what
// they were given.

// converseRequest reads the body of a call. Its system prompt is the first message of the
// conversation, wherever it stands, and what fills in a stored prompt comes next.
func converseRequest(w *walk, root gjson.Result) {
	w.first(root, "system", message(System, list(converseSystemBlock)))
	w.first(root, "promptVariables", message(User, each(object(members{"text": text(Text)}))))
	if w.err == nil {
		converseBody(w, root)
	}
}

var converseBody = object(members{
	"system": opaque, "promptVariables": opaque, // read before
	"messages":   as(Other, list(converseMessage)),
	"toolConfig": as(Definition, object(members{"tools": list(converseTool), "toolChoice": converseToolChoice})),
	"inferenceConfig": object(members{
		"maxTokens": scalar, "temperature": scalar, "topP": scalar, "stopSequences": as(Other, list(text(Text))),
	}),
	"outputConfig": as(Definition, object(members{
		"effort": effort,
		"textFormat": object(members{"type": scalar, "structure": object(members{"jsonSchema": object(members{
			"schema": text(Schema), "name": text(Name), "description": text(Text),
		})})}),
	})),

	// What only one model has: its own tools, how it thinks, any other text.
	"additionalModelRequestFields":      as(Definition, gathered(Schema)),
	"additionalModelResponseFieldPaths": list(scalar),

	"guardrailConfig":   object(members{"guardrailIdentifier": scalar, "guardrailVersion": scalar, "trace": scalar, "streamProcessingMode": scalar}),
	"performanceConfig": object(members{"latency": scalar}),
	"serviceTier":       object(members{"type": scalar}),
	"requestMetadata":   opaque, // for the logs of the account
})

var (
	converseSystemBlock = object(members{"text": text(Text), "cachePoint": converseCache, "guardContent": converseGuarded})
	converseCache       = object(members{"type": scalar, "ttl": scalar})
	converseTool        = object(members{
		"toolSpec": object(members{
			"name": text(Name), "description": text(Text), "strict": scalar,
			"inputSchema": object(members{"json": gathered(Schema)}),
		}),
		"systemTool": object(members{"name": text(Name)}),
		"cachePoint": converseCache,
	})
	converseToolChoice = object(members{
		"auto": object(members{}), "any": object(members{}), "tool": object(members{"name": text(Name)}),
	})
)

// converseMessage reads one message with the role it names.
func converseMessage(w *walk, v gjson.Result) { w.inTurn(v, converseSaid) }

// converseSaid is a message of a request or of an answer.
var converseSaid = object(members{"role": word("user", "assistant", "system"), "content": orEmptied(textParts, list(converseBlock))})

// converseBlock reads one block of content. Signed reasoning is one part as a whole: the API
// accepts a block that is missing, but none that was changed.
func converseBlock(w *walk, v gjson.Result) {
	before := len(w.parts)
	converseBlockMembers(w, v)
	signed := v.Get("reasoningContent.reasoningText.signature").Str != ""
	if w.role != "" && signed && len(w.parts) == before+1 && w.parts[before].Text != "" {
		p := &w.parts[before]
		p.Path, p.Start, p.Bytes, p.replacement = string(w.path), v.Index, len(v.Raw), textPart
	}
}

var converseBlockMembers = attached(textPart, object(members{
	"text":  text(Text),
	"image": converseImage, "document": converseDocument, "video": converseMedia(File), "audio": converseMedia(Audio),
	"searchResult": converseSearchResult,
	"guardContent": converseGuarded,
	"cachePoint":   converseCache,

	// With the type server_tool_use the provider runs it, but older SDKs do not know the type
	// and show their programs a call like every other.
	"toolUse": calling(object(members{
		"toolUseId": scalar, "name": text(Name), "input": gathered(Arguments), "type": besideCalls(scalar),
	})),
	"toolResult": asTool(object(members{
		"toolUseId": scalar, "status": scalar, "type": scalar, "content": list(converseResult),
	})),
	"toolAddition": converseToolChange, "toolRemoval": converseToolChange,

	"reasoningContent": object(members{
		"reasoningText":   object(members{"text": text(Reasoning), "signature": opaque}),
		"redactedContent": media(Reasoning),
	}),
	"citationsContent": object(members{
		"content": list(object(members{"text": text(Text)})), "citations": gathered(Annotation),
	}),
}))

// converseResult reads one block of what a tool returned.
func converseResult(w *walk, v gjson.Result) {
	attached(textPart, object(members{
		"text": converseReturned, "json": converseReturned,
		"image": converseImage, "document": converseDocument, "video": converseMedia(File), "searchResult": converseSearchResult,
	}))(w, v)
}

// converseReturned is what a tool returned, as a text or in any form. In an answer it is no text
// of the model's own.
func converseReturned(w *walk, v gjson.Result) {
	kind := Text
	if w.role == "" {
		kind = ToolResult
	}
	anyOf{text: text(kind), list: gathered(kind), object: replacedBy(noted, gathered(kind))}.read(w, v)
}

var (
	converseError  = object(members{"message": gathered(Annotation)})
	converseStored = object(members{"uri": setting, "bucketOwner": scalar})
	converseImage  = converseMedia(Image)

	converseSearchResult = object(members{
		"source": text(Document), "title": text(Document), "citations": converseCitations,
		"content": list(object(members{"text": text(Document)})),
	})
	converseCitations = object(members{"enabled": scalar})
	converseGuarded   = object(members{
		"text":  object(members{"text": text(Text), "qualifiers": list(scalar)}),
		"image": converseImage,
	})
	converseToolChange = as(Definition, object(members{
		"tool": object(members{"type": scalar, "name": text(Name), "serverName": text(Name)}),
	}))
)

// converseMedia is an image, a sound or a video: its bytes, or where it is stored.
func converseMedia(kind Kind) schema {
	return object(members{
		"format": setting, "error": converseError,
		"source": object(members{"bytes": media(kind), "s3Location": converseIn(kind)}),
	})
}

// converseIn is a file in a store that only the provider reads.
func converseIn(kind Kind) schema {
	return func(w *walk, v gjson.Result) {
		converseStored(w, v)
		if uri := v.Get("uri"); w.err == nil {
			w.in("uri", uri, media(kind))
		}
	}
}

// converseDocument is a document. The bytes of one in a textual format are read.
func converseDocument(w *walk, v gjson.Result) {
	object(members{
		"format": setting, "name": text(Name), "context": text(Document), "citations": converseCitations,
		"source": object(members{
			"bytes": converseFile(v.Get("format").Str), "s3Location": converseIn(File), "text": text(Document),
			"content": list(object(members{"text": text(Document)})),
		}),
	})(w, v)
}

// converseFile reads the bytes of a document in a format.
func converseFile(format string) schema {
	return func(w *walk, v gjson.Result) {
		switch format {
		case "csv", "html", "txt", "md":
			if plain, err := decodeBase64(v.Str); err == nil && len(plain) > 0 && utf8.Valid(plain) {
				w.add(Document, string(plain), v)
				w.parts[len(w.parts)-1].replacement = base64Text
				return
			}
		}
		media(File)(w, v)
	}
}

// converseAnswer is a whole answer.
var converseAnswer = object(members{
	"output":     object(members{"message": inChoice(converseSaid)}),
	"stopReason": scalar, "usage": opaque, "metrics": opaque,
	"additionalModelResponseFields": gathered(Annotation),
	"trace":                         converseTrace,
	"performanceConfig":             opaque, "serviceTier": opaque,
})

// converseTrace has, beside what Bedrock's own guardrails found, the model's answer before them.
var converseTrace = object(members{"guardrail": gathered(Annotation), "promptRouter": opaque})

// converseFailure is the body of an error.
var converseFailure = object(members{
	"message": gathered(Annotation), "Message": gathered(Annotation), "__type": scalar, "code": scalar,
	"originalMessage": gathered(Annotation), "originalStatusCode": scalar, "resourceName": scalar,
})

// converseEvents are the events of a stream, by their names.
var converseEvents = map[string]schema{
	"messageStart": converseEvent(members{"role": word("assistant")}),
	"contentBlockStart": converseEvent(members{
		"contentBlockIndex": setting,
		"start": object(members{
			"toolUse":    calling(object(members{"toolUseId": setting, "name": text(Name), "type": besideCalls(setting)})),
			"toolResult": object(members{"toolUseId": setting, "type": setting, "status": setting}),
			"image":      object(members{"format": setting}),
		}),
	}),
	"contentBlockDelta": converseEvent(members{
		"contentBlockIndex": setting,
		"delta": object(members{
			"text":       text(Text),
			"toolUse":    calling(object(members{"input": text(Arguments)})),
			"toolResult": list(object(members{"text": text(ToolResult), "json": gathered(ToolResult)})),
			"reasoningContent": object(members{
				"text": text(Reasoning), "redactedContent": media(Reasoning), "signature": opaque,
			}),
			"citation": gathered(Annotation),
			"image":    object(members{"source": object(members{"bytes": media(Image), "s3Location": converseIn(Image)}), "error": converseError}),
		}),
	}),
	"contentBlockStop": converseEvent(members{"contentBlockIndex": setting}),
	"messageStop":      converseEvent(members{"stopReason": setting, "additionalModelResponseFields": gathered(Annotation)}),
	"metadata": converseEvent(members{
		"usage": opaque, "metrics": opaque, "trace": converseTrace, "performanceConfig": opaque, "serviceTier": opaque,
	}),
}

// converseEvent is an object that may be padded.
func converseEvent(known members) schema {
	known[padding] = func(w *walk, v gjson.Result) {
		if !isPadding(v) {
			w.other(v)
		}
	}
	return object(known)
}
