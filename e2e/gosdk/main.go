// Gosdk drives the official Go SDKs of OpenAI, Anthropic, Google and AWS as the programs
// beside this folder drive the JavaScript ones. It makes the calls of a plan and prints
// one JSON object a call: what an application would see.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/anthropics/anthropic-sdk-go"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	"github.com/openai/openai-go/v3"
	"google.golang.org/genai"
)

const (
	question   = "What is the capital of France?"
	thinking   = "Think about France, then name its capital."
	weather    = "What is the weather in Paris? Ask the tool."
	story      = "Tell me a long story."
	asJSON     = "Name the capital of France, with capital as JSON."
	toolResult = "18 degrees and sunny"
)

var (
	schema = map[string]any{"type": "object", "properties": map[string]any{"capital": map[string]any{"type": "string"}}, "required": []string{"capital"}, "additionalProperties": false}
	city   = map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"}, "additionalProperties": false}
)

// plan says which calls to make: each with its name, the action that it repeats, the
// origin to send it to, and the manner in which the upstream behaves.
var plan struct {
	SDK    string `json:"sdk"`
	Attack string `json:"attack"`
	Signed bool   `json:"signed"` // requests to Bedrock, with credentials of AWS
	Calls  []struct {
		Name   string `json:"name"`
		Action string `json:"action"`
		Origin string `json:"origin"`
		Manner string `json:"manner"`
	} `json:"calls"`
}

// A sighting is what an application sees of a call.
type sighting struct {
	API       string   `json:"api"`
	Name      string   `json:"name"`
	Requests  int      `json:"requests"`
	Turns     []string `json:"turns"`
	Before    []string `json:"before"`
	Exception string   `json:"exception,omitempty"`
	Status    int      `json:"status,omitempty"`
	Message   string   `json:"message,omitempty"`
	Text      string   `json:"text"`
	Refusal   string   `json:"refusal"`
	Reasoning string   `json:"reasoning"`
	Calls     string   `json:"calls"`
	Finish    string   `json:"finish"`
	Pieces    int      `json:"pieces"`
}

// A wire is the transport of one call. It counts the requests, notes the turns, and
// adds the headers by which the upstream knows the call.
type wire struct {
	id, manner string
	requests   int
	turns      []string
	before     []string // the turns of the conversation that the call goes on
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.requests++
	r = r.Clone(r.Context())
	ofBody, ofHeaders := sha256.New(), sha256.New()
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		ofBody.Write(body)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	var sent []string
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if name == "Accept-Encoding" {
			continue
		}
		sent = append(sent, strings.ToLower(name))
		_, _ = fmt.Fprintf(ofHeaders, "%s: %s\n", strings.ToLower(name), strings.Join(r.Header[name], ", "))
	}
	r.Header.Set("X-E2e-Call", w.id)
	r.Header.Set("X-E2e-Manner", w.manner)
	r.Header.Set("X-E2e-Headers", strings.Join(sent, ","))
	r.Header.Set("X-E2e-Sha256", hex.EncodeToString(ofHeaders.Sum(nil)))
	r.Header.Set("X-E2e-Body-Sha256", hex.EncodeToString(ofBody.Sum(nil)))
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && resp.Header.Get("X-Lex-Turn") != "" {
		w.turns = append(w.turns, resp.Header.Get("X-Lex-Turn"))
	}
	return resp, err
}

// again begins a call anew: what came before was the conversation that it goes on.
func (w *wire) again() { w.requests, w.turns, w.before = 0, nil, w.turns }

// An action makes a call and returns what it saw.
type action func(ctx context.Context, origin string, w *wire) (sighting, error)

func main() {
	if err := json.Unmarshal([]byte(os.Args[1]), &plan); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var running sync.WaitGroup
	var printing sync.Mutex
	atOnce := make(chan struct{}, 16)
	for api, actions := range map[string]map[string]action{"chat": chatActions(), "responses": responsesActions(), "anthropic": anthropicActions(), "gemini": geminiActions(), "bedrock": converseActions(), "bedrock invoke": invokeActions()} {
		for _, c := range plan.Calls {
			act := actions[c.Action]
			if act == nil {
				continue
			}
			running.Go(func() {
				atOnce <- struct{}{}
				defer func() { <-atOnce }()
				w := &wire{id: plan.SDK + "/" + api + "/" + c.Name, manner: c.Manner}
				saw, err := act(context.Background(), c.Origin, w)
				if err != nil {
					saw = describe(err)
				}
				saw.API, saw.Name, saw.Requests, saw.Turns, saw.Before = api, c.Name, w.requests, w.turns, w.before
				printing.Lock()
				defer printing.Unlock()
				_ = json.NewEncoder(os.Stdout).Encode(saw)
			})
		}
	}
	running.Wait()
}

// describe names an error as an application would tell it from others.
func describe(err error) sighting {
	saw := sighting{Exception: "error", Message: err.Error()}
	var ofOpenAI *openai.Error
	var ofAnthropic *anthropic.Error
	var ofGoogle genai.APIError
	var ofAWS smithy.APIError
	var ofHTTP *awshttp.ResponseError
	switch {
	case errors.As(err, &ofOpenAI):
		saw.Exception, saw.Status, saw.Message = "*openai.Error", ofOpenAI.StatusCode, ofOpenAI.Message
	case errors.As(err, &ofAnthropic):
		saw.Exception, saw.Status = "*anthropic.Error", ofAnthropic.StatusCode
	case errors.As(err, &ofAWS):
		saw.Exception, saw.Message = fmt.Sprintf("%T", ofAWS), ofAWS.ErrorMessage()
		if errors.As(err, &ofHTTP) {
			saw.Status = ofHTTP.HTTPStatusCode()
		}
	case errors.As(err, &ofGoogle):
		saw.Exception, saw.Status = "genai.APIError", ofGoogle.Code
	}
	return saw
}

// eventError is an error of this program, for what an SDK tells without one.
func eventError(message string) error { return errors.New(message) }

// compact is arguments as JSON without spaces.
func compact(arguments string) string { return strings.ReplaceAll(arguments, ": ", ":") }
