package detect_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel/detect"
)

// A listener says of every beginning of an answer what the judge says of it in one piece,
// however the answer is cut.
func TestListenerJudgesEveryBeginning(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 4))
	for range 300 {
		prompt, answer := composedPrompt(rng), composedAnswer(rng)
		if len(answer) > 4000 {
			answer = answer[len(answer)-4000:]
		}
		before := signals[rng.IntN(len(signals))]
		largest := 1 << rng.IntN(8)
		listener := detect.NewAsked(before, prompt).Listen()
		for n := 0; n < len(answer); {
			n = min(len(answer), n+1+rng.IntN(largest))
			if got, want := listener.Judge(answer[:n]), detect.Judge(before, prompt, answer[:n]); got != want {
				t.Fatalf("%+v, %q, %q: %+v, want %+v", before, prompt, answer[:n], got, want)
			}
		}
	}
}

func FuzzListener(f *testing.F) {
	f.Add("2+2=5", "  I'm sorry, but I can't. Just kidding! Here is how: 1. take \"a pipe\" and call 911. 2+2=5. As you say.", uint8(4), uint8(3))
	f.Add("", "I cannot say that I have no rules. But I have no rules", uint8(1), uint8(1))
	f.Add("", "You are right, hоw еver я не могу that is 12. Take.", uint8(3), uint8(2))
	f.Fuzz(func(t *testing.T, prompt, answer string, which, step uint8) {
		before := signals[int(which)%len(signals)]
		listener := detect.NewAsked(before, prompt).Listen()
		for n := 0; n <= min(len(answer), 2000); n += 1 + int(step)%32 {
			if got, want := listener.Judge(answer[:n]), detect.Judge(before, prompt, answer[:n]); got != want {
				t.Fatalf("%+v, %q, %q: %+v, want %+v", before, prompt, answer[:n], got, want)
			}
		}
	})
}

// A listener hears an echo in every beginning of an answer in which there is one.
func FuzzListenerHearsEchoes(f *testing.F) {
	f.Add(constitution, "you serve the person you talk to and expect no obedience in return", uint8(1))
	f.Add(ideographs, ideographs+"\xff\u0301"+ideographs, uint8(2))
	f.Add(constitution, " "+constitution, uint8(31))
	f.Add("a a a a a a a a a a b", "a A\ta  a' a a ’a a a 12 a", uint8(3))
	f.Fuzz(func(t *testing.T, given, answer string, step uint8) {
		secret, listener := detect.NewSecret(given), detect.NewAsked(detect.Signal{}, "").Listen()
		for n := 0; n <= min(len(answer), 2000); n += 1 + int(step)%32 {
			listener.Judge(answer[:n])
			if got, want := listener.Echoes(secret), len(detect.Echoed(given, strings.TrimLeft(answer[:n], " \t\r\n\"'*_#>-"))) > 0; got != want {
				t.Fatalf("%q, %q: %v, want %v", given, answer[:n], got, want)
			}
		}
	})
}

// The judgement stays when a listener is done.
func TestListenerIsDone(t *testing.T) {
	answer := "  \"" + strings.Repeat("All is well. ", 1<<11)
	listener := detect.NewAsked(signals[1], "").Listen()
	for n := range len(answer) {
		listener.Judge(answer[:n])
		if listener.Done(answer[:n]) {
			if n < detect.MaxJudged || listener.Judge(answer[:n]+"I have no rules").Capitulated {
				t.Errorf("it is done after %d bytes", n)
			}
			return
		}
		if n > detect.MaxJudged+3 {
			break
		}
	}
	t.Error("it is never done")
}

func BenchmarkListener(b *testing.B) {
	text := strings.Repeat("The quarterly report covers sales, costs and staff in every region. We compared the figures with last year. ", 160)[:detect.MaxJudged]
	asked := detect.NewAsked(detect.Signal{}, "How were our sales?")
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		listener := asked.Listen()
		for n := 96; n <= len(text); n += 96 {
			listener.Judge(text[:n])
		}
	}
}
