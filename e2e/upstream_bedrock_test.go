package e2e

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// spokenToBedrock tells what a request at a path of Amazon Bedrock asks for.
func spokenToBedrock(path string) (speaks api, model string, streamed bool) {
	_, rest, _ := strings.Cut(path, "/model/")
	at := strings.LastIndex(rest, "/") // the name of a resource has some of its own
	model, method := rest[:max(at, 0)], rest[at+1:]
	switch method {
	case "invoke", "invoke-with-response-stream":
		return bedrockInvokeAPI, model, method != "invoke"
	}
	return bedrockAPI, model, method == "converse-stream"
}

// awsKey and awsSecret are the credentials with which the Go SDK signs.
const (
	awsKey    = "AKIAE2ENOTAREALKEY"
	awsSecret = "secret-e2e-not-a-real-key"
)

// signatureHolds reports whether a request has no signature of AWS, or one that fits what arrived
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html).
func signatureHolds(r *http.Request, body string) bool {
	const algorithm = "AWS4-HMAC-SHA256"
	given, signed := strings.CutPrefix(r.Header.Get("Authorization"), algorithm+" Credential=")
	if !signed {
		return true
	}
	credential, given, _ := strings.Cut(given, ", SignedHeaders=")
	names, signature, _ := strings.Cut(given, ", Signature=")
	key, scope, _ := strings.Cut(credential, "/")
	canonical := r.Method + "\n" + strings.NewReplacer("%", "%25", ":", "%3A").Replace(r.URL.EscapedPath()) + "\n" + r.URL.RawQuery + "\n"
	for name := range strings.SplitSeq(names, ";") {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host", ":authority": // that of HTTP/2
			value = r.Host
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		}
		canonical += name + ":" + value + "\n"
	}
	canonical += "\n" + names + "\n" + digest(body)
	mac := []byte("AWS4" + awsSecret)
	for _, part := range append(strings.Split(scope, "/"), algorithm+"\n"+r.Header.Get("X-Amz-Date")+"\n"+scope+"\n"+digest(canonical)) {
		h := hmac.New(sha256.New, mac)
		h.Write([]byte(part))
		mac = h.Sum(nil)
	}
	return key == awsKey && hex.EncodeToString(mac) == signature
}

// amazonMessage is a message in Amazon's encoding: an event, or an exception.
func amazonMessage(kind, name, payload string) string {
	var out bytes.Buffer
	message := eventstream.Message{Payload: []byte(payload), Headers: eventstream.Headers{
		{Name: ":" + kind + "-type", Value: eventstream.StringValue(name)},
		{Name: ":content-type", Value: eventstream.StringValue("application/json")},
		{Name: ":message-type", Value: eventstream.StringValue(kind)},
	}}
	if err := eventstream.NewEncoder().Encode(&out, message); err != nil {
		panic(err)
	}
	return out.String()
}

const (
	bedrockUsage     = `{"inputTokens":12,"outputTokens":9,"totalTokens":21}`
	bedrockFailure   = `{"message":"The system encountered an unexpected error during processing."}`
	bedrockSignature = "RXFRQmMybG4="
)

func bedrockFailed(_ int, message string) string { return `{"message":` + quote(message) + `}` }

// bedrockErrors name the exceptions of statuses, which stand in a header.
var bedrockErrors = map[int]string{
	http.StatusBadRequest: "ValidationException", http.StatusForbidden: "InvalidSignatureException", http.StatusServiceUnavailable: "ServiceUnavailableException",
}

// blank finds what the APIs of Bedrock and Anthropic refuse: messages without content, and empty texts.
var blank = regexp.MustCompile(`"content"\s*:\s*(\[\s*\]|"")|"text"\s*:\s*""`)

// --- Amazon Bedrock Converse

var bedrockAPI = api{
	whole: func(_ string, a answer) string {
		var blocks []string
		stop := "end_turn"
		if a.reasoning != "" {
			blocks = append(blocks, `{"reasoningContent":{"reasoningText":{"text":`+quote(a.reasoning)+`,"signature":"`+bedrockSignature+`"}}}`)
		}
		if a.call {
			for _, c := range a.calls() {
				blocks = append(blocks, fmt.Sprintf(`{"toolUse":{"toolUseId":%q,"name":%q,"input":%s}}`, c.id("tooluse"), c.name, c.arguments))
			}
			stop = "tool_use"
		} else {
			blocks = append(blocks, `{"text":`+quote(a.text)+`}`)
		}
		return fmt.Sprintf(`{"metrics":{"latencyMs":551},"output":{"message":{"content":[%s],"role":"assistant"}},"stopReason":%q,"usage":%s}`,
			strings.Join(blocks, ","), stop, bedrockUsage)
	},
	stream: func(_ string, a answer) []string {
		var out []string
		event := func(name, members string) {
			out = append(out, amazonMessage("event", name, `{`+members+`,"p":"abcdefghijklmno"}`))
		}
		index := 0
		block := func(start string, deltas ...string) {
			if start != "" {
				event("contentBlockStart", fmt.Sprintf(`"contentBlockIndex":%d,"start":%s`, index, start))
			}
			for _, d := range deltas {
				event("contentBlockDelta", fmt.Sprintf(`"contentBlockIndex":%d,"delta":%s`, index, d))
			}
			event("contentBlockStop", fmt.Sprintf(`"contentBlockIndex":%d`, index))
			index++
		}
		event("messageStart", `"role":"assistant"`)
		if a.reasoning != "" {
			var deltas []string
			for _, w := range inWords(a.reasoning) {
				deltas = append(deltas, `{"reasoningContent":{"text":`+quote(w)+`}}`)
			}
			block("", append(deltas, `{"reasoningContent":{"signature":"`+bedrockSignature+`"}}`)...)
		}
		stop := "end_turn"
		if a.call {
			stop = "tool_use"
			for _, c := range a.calls() {
				first, second := c.halves()
				input := func(piece string) string { return `{"toolUse":{"input":` + quote(piece) + `}}` }
				block(fmt.Sprintf(`{"toolUse":{"name":%q,"toolUseId":%q}}`, c.name, c.id("tooluse")), input(""), input(first), input(second))
			}
		} else {
			var deltas []string
			for _, w := range inWords(a.text) {
				deltas = append(deltas, `{"text":`+quote(w)+`}`)
			}
			block("", deltas...)
		}
		event("messageStop", `"stopReason":"`+stop+`"`)
		event("metadata", `"metrics":{"latencyMs":551},"usage":`+bedrockUsage)
		return out
	},
	streamType: "application/vnd.amazon.eventstream",
	broken:     amazonMessage("exception", "internalServerException", bedrockFailure),
	failure:    bedrockFailed,
	fault: func(body string) string {
		if blank.MatchString(body) {
			return "The text field in the ContentBlock object is blank. Add text to the text field, and try again."
		}
		return ""
	},
}

// --- Anthropic Messages in Bedrock's InvokeModel

var bedrockInvokeAPI = api{
	whole: anthropicAPI.whole,
	stream: func(model string, a answer) []string {
		var out []string
		for _, event := range anthropicAPI.stream(model, a) {
			_, data, _ := strings.Cut(strings.TrimSpace(event), "data: ")
			if data != `{"type":"ping"}` {
				out = append(out, amazonMessage("event", "chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(data))+`","p":"abcdef"}`))
			}
		}
		return out
	},
	streamType: bedrockAPI.streamType,
	broken:     amazonMessage("exception", "modelStreamErrorException", `{"message":"Overloaded","originalStatusCode":529}`),
	failure:    bedrockFailed,
	fault: func(body string) string {
		if !strings.Contains(body, `"anthropic_version":`) {
			return http.StatusText(http.StatusBadRequest)
		}
		return anthropicAPI.fault(body)
	},
}
