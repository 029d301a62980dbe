package wire_test

import (
	"fmt"
	"net/url"

	"github.com/caddy-lex/lex/wire"
)

// A call is taken apart into parts; nothing of it is left out.
func Example() {
	d, _ := wire.Match(&url.URL{Path: "/openai/v1/Chat/Completions/"})
	r, err := d.Request([]byte(`{"model": "m", "stream": true, "messages": [
		{"role": "system", "content": "Be brief."},
		{"role": "user", "content": [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}
	], "mystery": 1}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Name(), r.Prompt())
	for _, p := range r.Parts {
		fmt.Printf("%s %s %s %q\n", p.Role, p.Kind, p.Path, p.Text)
	}
	// Output:
	// openai_chat What is this?
	// system text messages.0.content "Be brief."
	// user text messages.1.content.0.text "What is this?"
	// user image messages.1.content.1.image_url ""
	// other unknown sha256:4f0d9e5f2d159c8b ""
}

// A stream keeps its bytes, whatever pieces they come in.
func ExampleSplitter() {
	d, _ := wire.Named("openai")
	events, stream := d.Events(), wire.NewSplitter(d.Framing(), 0)
	for _, piece := range []string{"data: {\"choices\":[{\"index\":0,\"del", "ta\":{\"content\":\"Paris\"}}]}\n", "\ndata: [DONE]\n\n"} {
		if err := stream.Push([]byte(piece)); err != nil {
			fmt.Println(err)
			return
		}
		for frame, ok := stream.Next(); ok; frame, ok = stream.Next() {
			event, err := events.Event(frame)
			fmt.Println(len(frame.Raw), len(event.Deltas), event.Done, err)
		}
	}
	// Output:
	// 61 1 false <nil>
	// 14 0 true <nil>
}
