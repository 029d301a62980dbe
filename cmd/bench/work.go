package main

import (
	"bytes"
	"fmt"
	"strings"
)

// frames is how many pieces of text a streamed answer has.
const frames = 100

// A work is one kind of request, sent again and again over a number of connections.
type work struct {
	name        string
	label       string // in the plot
	connections int
	prompt      int // bytes of the prompt's text; 0 asks for the list of models
	streamed    bool
}

// works are the rows of the tables.
var works = []work{
	{"170-byte prompt, 900-byte answer", "170-byte prompt", 16, 170, false},
	{"170-byte prompt, 900-byte answer", "170-byte prompt", 1, 170, false},
	{"10 KB prompt, 900-byte answer", "10 KB prompt", 16, 10_000, false},
	{"10 KB prompt, 900-byte answer", "10 KB prompt", 1, 10_000, false},
	{"170-byte prompt, 100 streamed frames", "100 frames", 16, 170, true},
	{"170-byte prompt, 100 streamed frames", "100 frames", 1, 170, true},
	{"`GET /v1/models`", "no text", 16, 0, false},
}

func (w work) String() string {
	if w.connections == 1 {
		return w.name + ", 1 connection"
	}
	return fmt.Sprintf("%s, %d connections", w.name, w.connections)
}

// number stands in every prompt for the number of the request: no two prompts are the
// same, so no cache of texts can answer for the work.
const number = "00000000"

// request writes what a connection sends to a target, for a model of the upstream.
func (w work) request(t *target, model string) []byte {
	var out bytes.Buffer
	if w.prompt == 0 {
		fmt.Fprintf(&out, "GET /v1/models HTTP/1.1\r\nHost: %s\r\n%s\r\n", t.address, t.headers)
		return out.Bytes()
	}
	body := fmt.Sprintf(`{"model":"%s","stream":%t,"messages":[{"role":"user","content":"%s"}]}`, model, w.streamed, prompt(w.prompt))
	fmt.Fprintf(&out, "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		t.address, t.headers, len(body), body)
	return out.Bytes()
}

// sentences are what the prompts are made of: ordinary text that nothing refuses.
var sentences = []string{
	"The autumn fair has two budgets, one for travel and one for the booth.",
	"Which of them pays for the hotel, and when is the invoice due?",
	"Last year we booked rooms near the station and walked to the hall every morning.",
	"The printer needs the drawings of the posters a week before we leave.",
	"Our colleague from the warehouse sends three boxes of samples by train.",
	"If the weather is good, the evening meeting takes place in the garden.",
	"Most visitors asked about delivery times and the price of spare parts.",
	"The table below compares the sales of the last four quarters by region.",
	"In spring the numbers were higher because two large orders came early.",
	"A short summary with the main points would help the team to prepare.",
	"The new catalogue has forty pages, and half of them are photographs.",
	"Tickets for the tram can be bought at the hotel or from the driver.",
}

// prompt is a text of some bytes that begins with the place of the number.
func prompt(size int) string {
	var text strings.Builder
	text.WriteString("Question " + number + ":")
	for i := 0; text.Len() < size; i++ {
		text.WriteString(" " + sentences[i%len(sentences)])
	}
	return text.String()[:size]
}
