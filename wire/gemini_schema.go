package wire

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// The schemas of Google's generateContent API as its official SDKs type it, for the
// Gemini API (https://ai.google.dev/api/generate-content) and for Vertex AI. The API
// is protocol buffers in JSON: names have twins, and where a list is expected one
// element may stand alone, as in the examples of Google's own documentation.

// geminiRequest is the body of a call without the system instruction, which is read
// before it.
var geminiRequest = twins(members{
	"contents":          as(Other, oneOrMore(geminiMessage)),
	"systemInstruction": opaque,
	"tools":             as(Definition, oneOrMore(geminiTool)),
	"toolConfig":        as(Definition, geminiToolConfig),
	"generationConfig":  as(Other, geminiConfig),

	// Context that the provider keeps. Nobody can read it here.
	"cachedContent": as(Other, media(Document)),

	"model": scalar, "serviceTier": scalar, "store": scalar, "continuationToken": scalar,
	"labels": opaque, "safetySettings": opaque, "modelArmorConfig": opaque, "outputConfig": opaque,
})

// geminiSystem is the system instruction. Some clients send a bare text or part.
var geminiSystem = anyOf{
	text: text(Text), list: list(geminiSystemPart), object: twins(members{
		"role": scalar, "parts": oneOrMore(geminiSystemPart), "text": text(Text),
	}),
}.read

var geminiSystemPart = anyOf{text: text(Text), object: geminiPart}.read

// geminiMessage reads one content of a conversation with the role it names.
func geminiMessage(w *walk, v gjson.Result) {
	if !v.IsObject() {
		w.err = invalid("an element of contents is not an object")
		return
	}
	w.inMessage(geminiRole(v.Get("role")), v, geminiContent)
}

// geminiRole maps a content's role; without one it is the user's. Nobody knows how
// an unknown one is read.
func geminiRole(v gjson.Result) Role {
	switch {
	case !v.Exists(), v.Type == gjson.Null, v.Raw == `""`, v.Str == "user":
		return User
	case v.Str == "model":
		return Assistant
	case v.Str == "function", v.Str == "tool":
		return Tool
	}
	return Other
}

// geminiContent is a content of a request or an answer: clients send back what they
// were given.
var geminiContent = twins(members{
	"role":  word("user", "model", "function", "tool", ""),
	"parts": oneOrMore(geminiPart),
})

// geminiPart reads one part. Its thought member tells whether its text is reasoning;
// for the SDKs only true does. Signed reasoning is one part as a whole.
func geminiPart(w *walk, v gjson.Result) {
	before := len(w.parts)
	if v.Get("thought").Type != gjson.True {
		geminiSaid(w, v)
		return
	}
	geminiThought(w, v)
	if len(w.parts) == before+1 && w.parts[before].Kind == Reasoning && member(v, "thoughtSignature").Exists() {
		p := &w.parts[before]
		p.Path, p.Start, p.Bytes, p.replacement = string(w.path), v.Index, len(v.Raw), textPart
	}
}

var (
	geminiSaid    = geminiPartOf(Text)
	geminiThought = geminiPartOf(Reasoning)
)

// geminiPartOf is a part whose text is of a kind.
func geminiPartOf(kind Kind) schema {
	return attached(textPart, twins(members{
		"text":       text(kind),
		"inlineData": geminiBlob,
		"fileData":   geminiFile,
		"functionCall": calling(twins(members{
			"name": text(Name), "args": gathered(Arguments), "partialArgs": gathered(Arguments),
			"id": scalar, "willContinue": scalar,
		})),
		"functionResponse": asTool(twins(members{
			"name": text(Name), "response": geminiResult,
			"parts": attached(emptied, oneOrMore(twins(members{"inlineData": geminiBlob, "fileData": geminiFile, "mediaProcessing": scalar}))),
			"id":    scalar, "scheduling": scalar, "willContinue": scalar,
		})),
		"executableCode":      twins(members{"code": text(Arguments), "language": scalar, "id": scalar}),
		"codeExecutionResult": asTool(twins(members{"output": geminiResult, "outcome": scalar, "id": scalar})),
		"toolCall":            twins(members{"args": gathered(Arguments), "toolType": scalar, "id": scalar}),
		"toolResponse":        asTool(twins(members{"response": geminiResult, "toolType": scalar, "id": scalar})),
		"audioTranscription": twins(members{
			"text": text(kind), "words": gathered(Annotation), "speakerLabel": text(Name),
			"finished": scalar, "languageCode": scalar, "startOffset": scalar, "endOffset": scalar,
		}),
		"speechMetadata": twins(members{"speaker": text(Name), "style": text(kind)}),

		"thought": geminiSwitch, "thoughtSignature": scalar, "mediaProcessing": scalar,
		"mediaResolution": opaque, "partMetadata": opaque, "videoMetadata": opaque,
	}))
}

// geminiSwitch is a switch that decides how its neighbours are read.
func geminiSwitch(w *walk, v gjson.Result) {
	if !v.IsBool() {
		w.other(v)
	}
}

// asTool reads what a tool returned. In answers parts have no role.
func asTool(read schema) schema {
	return func(w *walk, v gjson.Result) {
		if w.role == "" {
			read(w, v)
			return
		}
		as(Tool, read)(w, v)
	}
}

// geminiResult is what a tool returned, in any form.
func geminiResult(w *walk, v gjson.Result) {
	kind := Text
	if w.role == "" {
		kind = ToolResult
	}
	anyOf{text: text(kind), list: gathered(kind), object: replacedBy(noted, gathered(kind))}.read(w, v)
}

// geminiBlob is a file in base64.
func geminiBlob(w *walk, v gjson.Result) {
	geminiBlobMembers(w, v)
	if data := v.Get("data"); data.Exists() && w.err == nil {
		w.in("data", data, geminiData(member(v, "mimeType").Str))
	}
}

var geminiBlobMembers = twins(members{"data": opaque, "displayName": text(Name), "mimeType": setting})

// geminiData reads the bytes of a file with a media type. Those of a text are read
// like any other document.
func geminiData(mime string) schema {
	return func(w *walk, v gjson.Result) {
		if plain, ok := textOf(mime, v.Str); ok {
			w.add(Document, plain, v)
			w.parts[len(w.parts)-1].replacement = base64Text
			return
		}
		media(mediaKind(mime))(w, v)
	}
}

// textOf decodes a file in base64 if it is a text.
func textOf(mime, data string) (plain string, ok bool) {
	if !isTextual(mime) {
		return "", false
	}
	raw, err := decodeBase64(data)
	return string(raw), err == nil && len(raw) > 0 && utf8.Valid(raw)
}

// isTextual reports whether a media type is read as text by models.
func isTextual(mime string) bool {
	mime, _, _ = strings.Cut(strings.ToLower(mime), ";")
	switch mime = strings.TrimSpace(mime); mime {
	case "application/json", "application/xml", "application/javascript", "application/x-javascript":
		return true
	}
	return strings.HasPrefix(mime, "text/")
}

// mediaKind is the kind of a file with a media type.
func mediaKind(mime string) Kind {
	family, _, _ := strings.Cut(strings.ToLower(mime), "/")
	switch family {
	case "image":
		return Image
	case "audio":
		return Audio
	}
	return File
}

// decodeBase64 reads bytes as protocol buffers take them from JSON: in either alphabet,
// with or without padding.
func decodeBase64(s string) ([]byte, error) {
	s = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(s), "=")
	return base64.RawStdEncoding.DecodeString(s)
}

// geminiFile is a file that the provider fetches.
func geminiFile(w *walk, v gjson.Result) {
	geminiFileMembers(w, v)
	for _, name := range []string{"fileUri", "file_uri"} {
		if uri := v.Get(name); uri.Exists() && w.err == nil {
			w.in(name, uri, media(mediaKind(member(v, "mimeType").Str)))
		}
	}
}

var geminiFileMembers = twins(members{"fileUri": opaque, "displayName": text(Name), "mimeType": setting})

var geminiTool = twins(members{
	"functionDeclarations": oneOrMore(twins(members{
		"name": text(Name), "description": text(Text), "behavior": scalar,
		"parameters": gathered(Schema), "parametersJsonSchema": gathered(Schema),
		"response": gathered(Schema), "responseJsonSchema": gathered(Schema),
	})),
	"mcpServers": oneOrMore(twins(members{
		"name": text(Name), "streamableHttpTransport": opaque, // with the credentials
	})),
	"computerUse": twins(members{
		"environment": scalar, "excludedPredefinedFunctions": opaque,
		"enablePromptInjectionDetection": scalar, "disabledSafetyPolicies": opaque,
	}),
	"fileSearch": twins(members{
		"fileSearchStoreNames": opaque, "metadataFilter": scalar, "topK": scalar, "retrievalConfig": opaque,
	}),
	"googleSearch": twins(members{
		"timeRangeFilter": opaque, "searchTypes": opaque, "excludeDomains": opaque, "blockingConfidence": scalar,
	}),
	"enterpriseWebSearch": twins(members{"excludeDomains": opaque, "blockingConfidence": scalar}),
	"urlContext":          twins(members{}),
	"codeExecution":       twins(members{}),

	// These hold credentials and settings.
	"googleMaps": opaque, "googleSearchRetrieval": opaque, "retrieval": opaque, "exaAiSearch": opaque, "parallelAiSearch": opaque,
})

var geminiToolConfig = twins(members{
	"functionCallingConfig": twins(members{
		"mode": scalar, "allowedFunctionNames": gathered(Name), "streamFunctionCallArguments": scalar,
	}),
	"retrievalConfig": opaque, "includeServerSideToolInvocations": scalar,
})

var geminiConfig = twins(members{
	"stopSequences":       oneOrMore(text(Text)),
	"responseSchema":      as(Definition, gathered(Schema)),
	"responseJsonSchema":  as(Definition, gathered(Schema)),
	"_responseJsonSchema": as(Definition, gathered(Schema)),
	"responseFormat": as(Definition, oneOrMore(twins(members{
		"text":  twins(members{"mimeType": setting, "schema": gathered(Schema)}),
		"audio": opaque, "image": opaque, "video": opaque,
	}))),
	"audioTranscriptionConfig": twins(members{
		"customVocabulary": gathered(Text), "adaptationPhrases": gathered(Text), "sourceText": text(Text),
		"languageCodes": opaque, "languageAuto": opaque, "languageHints": opaque,
		"wordTimestamp": scalar, "diarization": scalar, "mode": scalar,
	}),

	"candidateCount": scalar, "maxOutputTokens": scalar, "temperature": scalar, "topP": scalar, "topK": scalar, "seed": scalar,
	"presencePenalty": scalar, "frequencyPenalty": scalar, "responseLogprobs": scalar, "logprobs": scalar, "responseMimeType": scalar,
	"mediaResolution": scalar, "audioTimestamp": scalar, "enableEnhancedCivicAnswers": scalar, "enableAffectiveDialog": scalar,

	"responseModalities": opaque, "speechConfig": opaque, "thinkingConfig": opaque, "imageConfig": opaque,
	"routingConfig": opaque, "modelConfig": opaque, "modelSelectionConfig": opaque, "translationConfig": opaque,
})

// geminiAnswer is a whole answer as well as a chunk of a stream.
var geminiAnswer = twins(members{
	"candidates": oneOrMore(inChoice(twins(members{
		"content":            geminiContent,
		"finishMessage":      text(RefusalText),
		"citationMetadata":   gathered(Annotation),
		"groundingMetadata":  gathered(Annotation),
		"urlContextMetadata": gathered(Annotation),

		"groundingAttributions": gathered(Annotation),

		"logprobsResult": media(Logprobs),

		"index": scalar, "finishReason": scalar, "tokenCount": scalar, "avgLogprobs": scalar, "continuationToken": scalar,
		"safetyRatings": opaque,
	}))),
	"promptFeedback": twins(members{
		"blockReason": scalar, "blockReasonMessage": text(RefusalText), "safetyRatings": opaque,
	}),
	"modelStatus": gathered(Annotation),

	"modelVersion": scalar, "responseId": scalar, "createTime": scalar, "usageMetadata": unreadObject,
	"error": gathered(Annotation),
})

// member is a member of a message of protocol buffers under either of its names.
func member(v gjson.Result, name string) gjson.Result {
	if m := v.Get(name); m.Exists() {
		return m
	}
	return v.Get(snakeCase(name))
}
