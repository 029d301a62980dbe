package detect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel/detect"
)

// letter is ordinary text that nothing refuses.
const letter = " The autumn fair has two budgets, one for travel and one for the booth." +
	" Which of them pays for the hotel, and when is the invoice due?" +
	" Last year we booked rooms near the station and walked to the hall every morning." +
	" The printer needs the drawings of the posters a week before we leave." +
	" Our colleague from the warehouse sends three boxes of samples by train." +
	" If the weather is good, the evening meeting takes place in the garden." +
	" Most visitors asked about delivery times and the price of spare parts." +
	" The table below compares the sales of the last four quarters by region." +
	" In spring the numbers were higher because two large orders came early." +
	" A short summary with the main points would help the team to prepare." +
	" The new catalogue has forty pages, and half of them are photographs." +
	" Tickets for the tram can be bought at the hotel or from the driver."

// BenchmarkRequest is the detector's part of a request: its prompt, which is never the same
// twice, the judgement on the answer, and the embedding of the answer.
func BenchmarkRequest(b *testing.B) {
	m := detect.Default()
	answer := strings.TrimSpace(strings.Repeat(letter, 2)[:900])
	for _, size := range []int{170, 10_000} {
		text := strings.Repeat(letter, size/len(letter)+1)
		prompts := make([]string, 64)
		for i := range prompts {
			prompts[i] = fmt.Sprintf("Question %08d:%s", i*1_234_567, text)[:size]
		}
		b.Run(fmt.Sprintf("assess/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := m.Assess(b.Context(), []detect.Text{{Source: detect.User, Body: prompts[i%len(prompts)]}}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("judge/%d", size), func(b *testing.B) {
			before, err := m.Assess(b.Context(), []detect.Text{{Source: detect.User, Body: prompts[0]}})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if detect.Judge(before, prompts[i%len(prompts)], answer).Capitulated {
					b.Fatal("an ordinary answer is accused")
				}
			}
		})
	}
	b.Run("embed/900", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.Embed(b.Context(), answer); err != nil {
				b.Fatal(err)
			}
		}
	})
}
