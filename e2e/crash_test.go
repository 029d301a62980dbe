package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

const loadCaddyfile = `{
	admin 127.0.0.1:${admin}
	lex {
		limits {
			anonymous 1000000/1m
			read 1000000/1m
		}
	}
}
:${site} {
	lex
	reverse_proxy 127.0.0.1:${demo}
}
:${demo} {
	bind 127.0.0.1
	lex_demo_model
}
`

// A receipt whose answer was completed is there after kill -9 and a restart.
func TestKillKeepsEveryReceipt(t *testing.T) {
	t.Parallel()
	p := freePorts(t)
	config := writeCaddyfile(t, p, loadCaddyfile)
	home := t.TempDir()
	completed := make(map[string]bool)
	for round := range 3 {
		s := start(t, config, home, p)
		ids := loadUntil(s, 40*(round+1), func() { s.kill() })
		for _, id := range ids {
			completed[id] = true
		}
	}
	s := start(t, config, home, p)
	listed := make(map[string]bool)
	for _, id := range s.receipts(t) {
		listed[id] = true
	}
	missing := 0
	for id := range completed {
		if !listed[id] {
			missing++
		}
	}
	if len(completed) < 100 || missing > 0 {
		t.Fatalf("%d answers completed, %d of their receipts are missing", len(completed), missing)
	}
}

// loadUntil sends requests of both kinds from eight clients and calls end
// while they run, once n answers were completed. It returns the receipt ids of
// all answers that were completed.
func loadUntil(s *server, n int, end func()) []string {
	var mu sync.Mutex
	var ids []string
	reached := make(chan struct{})
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id, err := oneReceipt(s, c, i)
				if err != nil {
					return // the process is gone
				}
				mu.Lock()
				if ids = append(ids, id); len(ids) == n {
					close(reached)
				}
				mu.Unlock()
			}
		})
	}
	select {
	case <-reached:
	case <-time.After(time.Minute):
	}
	end()
	wg.Wait()
	return ids
}

func oneReceipt(s *server, client, i int) (string, error) {
	session := fmt.Sprintf("load-%d-%d", client, i%5)
	if i%2 == 0 {
		body, err := s.post("/lex/govern", governBody("What is the capital of France?", session))
		if err != nil {
			return "", err
		}
		var got struct {
			ID string `json:"receipt_id"`
		}
		return got.ID, json.Unmarshal(body, &got)
	}
	body, err := s.post("/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"What is 2 + 2?"}]}`)
	if err != nil {
		return "", err
	}
	_, comments := events(string(body))
	if len(comments) != 1 || !strings.Contains(string(body), "[DONE]") {
		return "", fmt.Errorf("no complete stream: %s", body)
	}
	return strings.TrimPrefix(comments[0], ": x-lex-receipt-id: "), nil
}

func (s *server) post(path, body string) ([]byte, error) {
	resp, err := s.client.Post(s.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	return io.ReadAll(resp.Body)
}
