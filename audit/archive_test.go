package audit_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// An archivist writes receipts as a running proxy makes them: about two kilobytes each,
// of turns and of tool calls, of many sessions that go on side by side.
type archivist struct {
	k        *kernel.Kernel
	random   *rand.Rand
	sessions []conversation
	written  uint64
	last     []byte // what was written last
}

// A conversation is a session of an archivist.
type conversation struct {
	id     string
	state  kernel.Session
	head   string
	turn   int
	resent bool
}

func newArchivist(t testing.TB, sessions int, resent bool) *archivist {
	t.Helper()
	k, err := kernel.New(kernel.DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	a := &archivist{k: k, random: rand.New(rand.NewPCG(1, 2)), sessions: make([]conversation, sessions)}
	for i := range a.sessions {
		a.sessions[i] = conversation{id: a.digits(8), state: k.NewSession(), resent: resent}
	}
	return a
}

// digits returns the hex digits of so many random bytes.
func (a *archivist) digits(bytes int) string {
	b := make([]byte, bytes)
	for i := range b {
		b[i] = byte(a.random.Uint32())
	}
	return hex.EncodeToString(b)
}

// next returns the next receipt: mostly of a turn, sometimes of a tool call.
func (a *archivist) next() kernel.Receipt {
	c := &a.sessions[a.random.IntN(len(a.sessions))]
	var (
		turn kernel.Turn
		err  error
	)
	score := func() float64 { return float64(a.random.IntN(1e4)) / 2e4 }
	scores := kernel.Scores{Identity: score(), Coercion: score(), Exploitative: score(), HarmRequest: score(), Sycophancy: score(), Injection: score()}
	tool := c.turn > 0 && a.random.IntN(4) == 0
	if tool {
		call := kernel.ToolCall{Tool: "read_file", Effect: kernel.ToolReads, Provenance: kernel.FromUser, ArgumentsCommitment: a.digits(32)}
		if turn, err = a.k.RecordToolCall(c.state, call, kernel.Evidence{}, kernel.Enforce); err != nil {
			panic(err)
		}
	} else {
		c.turn++
		turn, err = a.k.Assess(c.state, kernel.Evidence{Scores: scores, ThreatSignal: score() - 0.3}, kernel.Enforce)
		if err == nil {
			turn, err = a.k.Conclude(turn, kernel.Output{LostThread: c.turn%16 == 0})
		}
		if err != nil {
			panic(err)
		}
	}
	r := a.k.Receipt(turn)
	r.SessionID, r.Turn, r.Timestamp, r.Prev, r.Resent = c.id, c.turn, 1_790_000_000_000+int64(a.written), c.head, c.resent
	r.Setup = "5f3c1d0a9b8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a"
	r.Nonce, r.Version = a.digits(16), "lex-go/1.0.0+policy."+r.Policy[:12]
	r.Endpoint, r.Dialect, r.Model = "v1/chat/completions", "openai", "a-model-2026-01-01"
	r.Coverage = kernel.Coverage{
		Detectors: []kernel.DetectorRun{{Name: "local", Outcome: kernel.Clean}, {Name: "embedder", Outcome: kernel.NotRun, Why: "none configured"}},
		Inspected: []kernel.CoveredPart{
			{Part: "request.messages[0].content", Detector: "local", Bytes: 412},
			{Part: "request.messages[1].content", Detector: "local", Bytes: 88},
			{Part: "response.choices[0].message.content", Detector: "local", Bytes: 731},
		},
		BytesInspected: 1231, BytesForwarded: 1907,
	}
	if !tool {
		r.PromptCommitment, r.OutputCommitment = a.digits(32), a.digits(32)
	}
	if _, err := r.Seal(); err != nil {
		panic(err)
	}
	c.state, c.head = turn.Next, r.Link()
	a.written++
	return r
}

// entry returns the next receipt with its place in the log.
func (a *archivist) entry() store.Receipt {
	entry := store.Receipt{Seq: a.written + 1}
	if a.last != nil {
		sum := sha256.Sum256(a.last)
		entry.LogPrev = hex.EncodeToString(sum[:])
	}
	text, err := a.next().JSON()
	if err != nil {
		panic(err)
	}
	entry.JSON, a.last = text, text
	return entry
}

// write writes so many receipts as the lines of an export.
func (a *archivist) write(w io.Writer, receipts int) {
	for range receipts {
		if _, err := w.Write(audit.AppendLogLine(nil, a.entry())); err != nil {
			panic(err)
		}
	}
}

// file writes a file of so many receipts and returns its name and its size.
func (a *archivist) file(t testing.TB, receipts int) (name string, size int64) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "receipts.jsonl")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := bufio.NewWriter(file)
	a.write(w, receipts)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return name, info.Size()
}
