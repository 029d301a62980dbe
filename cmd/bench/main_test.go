package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

// The texts have the sizes that the tables name, and requests are JSON.
func TestTexts(t *testing.T) {
	if len(answer) != answerSize || !json.Valid(answer) {
		t.Errorf("the answer has %d bytes: %s", len(answer), answer)
	}
	if texts := bytes.Count(bytes.Join(frame, nil), []byte(`"content":`)); texts != frames {
		t.Errorf("%d frames with text", texts)
	}
	for _, w := range works {
		_, body, _ := bytes.Cut(w.request(&target{}, quickModel), []byte("\r\n\r\n"))
		if w.prompt == 0 {
			if len(body) != 0 {
				t.Errorf("%s has a body: %s", w, body)
			}
			continue
		}
		var asked struct {
			Stream   bool
			Messages []struct{ Content string }
		}
		if err := json.Unmarshal(body, &asked); err != nil {
			t.Fatalf("%s: %v", w, err)
		}
		if len(asked.Messages[0].Content) != w.prompt || asked.Stream != w.streamed {
			t.Errorf("%s: %d bytes, streamed %t", w, len(asked.Messages[0].Content), asked.Stream)
		}
	}
}

// Each work gets its answer from the upstream, and prompts differ.
func TestUpstream(t *testing.T) {
	u, err := startUpstream()
	if err != nil {
		t.Fatal(err)
	}
	defer u.close()
	for _, w := range works {
		c, err := dial(t.Context(), u.address, w.request(&target{address: u.address}, quickModel))
		if err != nil {
			t.Fatal(err)
		}
		sent := make(map[string]bool)
		for range 3 {
			s, err := c.ask()
			if err != nil || s.first <= 0 || s.first > s.whole {
				t.Errorf("%s: %v, first after %v, whole after %v", w, err, s.first, s.whole)
			}
			sent[string(c.request)] = true
		}
		if w.prompt > 0 && len(sent) != 3 {
			t.Errorf("%s: %d different requests of 3", w, len(sent))
		}
		_ = c.Close()
	}
}

// A stream is held until it is released, and its first text arrives before.
func TestHeldStream(t *testing.T) {
	u, err := startUpstream()
	if err != nil {
		t.Fatal(err)
	}
	defer u.close()
	to := &target{address: u.address}
	u.hold()
	rest, err := open(t.Context(), to, work{prompt: 170, streamed: true}.request(to, heldModel))
	if err != nil {
		t.Fatal(err)
	}
	if n := to.turns.Load(); n != 0 {
		t.Errorf("%d turns before the release", n)
	}
	u.release()
	if err := rest(); err != nil || to.turns.Load() != 1 {
		t.Errorf("%v, %d turns", err, to.turns.Load())
	}
}

// An answer that is not the upstream's ends a run: a refusal, an error, nothing at all.
func TestWrongAnswers(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"refusal": func(w http.ResponseWriter, _ *http.Request) {
			whole(w, []byte(`{"choices":[{"message":{"content":"No."}}]}`))
		},
		"error":   func(w http.ResponseWriter, _ *http.Request) { http.Error(w, ending, http.StatusBadGateway) },
		"nothing": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		server := httptest.NewServer(handler)
		if err := once(t.Context(), &target{address: server.Listener.Addr().String()}, works[0]); err == nil {
			t.Errorf("%s: no error", name)
		}
		server.Close()
	}
}

// Figures are of the answers between two readings, and of no others.
func TestBetween(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(second float64, whole time.Duration) sample {
		return sample{at: start.Add(time.Duration(second * float64(time.Second))), first: whole / 2, whole: whole}
	}
	samples := []sample{at(-0.1, time.Hour), at(0.1, 4), at(0.2, 8), at(0.3, 2), at(1.9, 100), at(2.1, time.Hour)}
	got, err := between(reading{at: start, cpu: 100, allocated: 50}, reading{at: start.Add(2 * time.Second), cpu: 500, allocated: 90}, samples)
	want := figures{rate: 2, p50: 4, p99: 100, first50: 2, first99: 50, cpu: 100, allocated: 10}
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := between(reading{at: start}, reading{at: start.Add(time.Second)}, nil); err == nil {
		t.Error("figures of no answers")
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   spread
		text   string
	}{
		{[]float64{3, 1, 2}, spread{2, 1, 3}, "2 (1–3)"},
		{[]float64{4, 1, 2, 3}, spread{2.5, 1, 4}, "3 (1–4)"},
		{[]float64{2299}, spread{2299, 2299, 2299}, "2,299 (2,299–2,299)"},
	} {
		if got := spreadOf(c.values); got != c.want || within(got, count) != c.text {
			t.Errorf("%v: %v, %s", c.values, got, within(got, count))
		}
	}
	bare := []figures{{rate: 100}, {rate: 10}, {rate: 50}}
	if got := against([]figures{{rate: 50}, {rate: 10}, {rate: 40}}, bare, share); got != (spread{0.8, 0.5, 1}) {
		t.Errorf("shares are of the same round: %v", got)
	}
}

// A sample of a profile belongs to the innermost of our areas.
func TestAreas(t *testing.T) {
	for _, c := range []struct {
		stack []string // innermost first
		want  string
	}{
		{[]string{"runtime.mallocgc", "encoding/json.Marshal", lex + "kernel.Receipt.Canonical", lex + "govern.(*Judged).Commit"}, "kernel and receipt"},
		{[]string{"strings.Index", lex + "kernel/detect.Judge", lex + "govern.(*Assessed).Judge"}, "detector and judge"},
		{[]string{"syscall.Syscall", "go.etcd.io/bbolt.(*DB).Update", lex + "store/bolt.(*Store).writeBatch"}, "store"},
		{[]string{"syscall.Syscall", "net/http.(*conn).serve"}, "Caddy and net/http"},
		{[]string{"runtime.gcBgMarkWorker"}, "collector and scheduler"},
	} {
		s := &profile.Sample{Value: []int64{1, 10}}
		for _, name := range c.stack {
			s.Location = append(s.Location, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: name}}}})
		}
		if got := areas[areaOf(s)].name; got != c.want {
			t.Errorf("%v: %s", c.stack, got)
		}
		if got := sharesOf(&profile.Profile{Sample: []*profile.Sample{s}}); got[areaOf(s)] != 1 {
			t.Errorf("%v: %v", c.stack, got)
		}
	}
}

// Only what is between the marks of a page is written.
func TestWritePage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	for page, want := range map[string]string{
		"before\n" + beginMark + "old\n" + endMark + "\nafter\n": "before\n" + beginMark + "\nnew\n\n" + endMark + "\nafter\n",
		"a page without marks": "",
		beginMark + "no end":   "",
	} {
		if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
		err := writePage(file, "new\n")
		if want == "" {
			if err == nil || strings.Contains(err.Error(), filepath.Dir(file)) {
				t.Errorf("%q: %v", page, err)
			}
			continue
		}
		if got, _ := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%v: %q", err, got)
		}
	}
}
