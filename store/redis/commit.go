package redis

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/caddy-lex/lex/store"
)

//go:embed commit.lua
var commitSource string

var commitScript = client.NewScript(commitSource)

const (
	// prefix begins all keys of a turn; {0} is the shard.
	prefix       = "lex:{0}:"
	receiptsKey  = prefix + "receipts"
	summariesKey = prefix + "summaries"
	statsKey     = prefix + "stats"
	logKey       = prefix + "log"
	headKey      = prefix + "head"

	// sessionLife is how long a session is remembered after its last turn.
	sessionLife = store.SessionLife

	// maxStep is by how much the counter of versions grows at most: it has room for 2^43 turns.
	maxStep = 1 << 20
)

func receiptKey(id string) string  { return prefix + "receipt:" + id }
func turnKey(id string) string     { return prefix + "turn:" + id }
func sessionKey(key string) string { return prefix + "session:" + key }
func familyKey(family string) string {
	return prefix + "family:" + family
}
func countersKey(key string) string { return prefix + "tally:" + key }

// scriptCall is one call of commit.lua.
type scriptCall struct {
	keys []string
	args []any
}

// Commit makes the change durable with the next batch.
func (s *Store) Commit(ctx context.Context, change store.Change) error {
	if err := change.Validate(); err != nil {
		return err
	}
	next, existing := change.WithFamily()
	state, err := store.EncodeSession(next)
	if err != nil {
		return err
	}
	c := commitCall(change.Receipts(), change.Excluded())
	c.args = append(c.args,
		next.Key, strconv.FormatUint(next.Version, 10), state, int64(sessionLife/time.Second), next.Family, existing,
		1+rand.IntN(maxStep)) //nolint:gosec // G404: it must differ by chance, and nobody guards it
	c.keys = append(c.keys, sessionKey(next.Key), familyKey(next.Family))
	for _, alias := range change.Aliases {
		c.keys = append(c.keys, sessionKey(alias))
	}
	return s.writes.Do(ctx, c)
}

// Append writes the receipts with the next batch.
func (s *Store) Append(ctx context.Context, receipts ...store.Receipt) error {
	if err := store.ValidateReceipts(receipts); err != nil || len(receipts) == 0 {
		return err
	}
	return s.writes.Do(ctx, commitCall(receipts, false))
}

// commitCall returns the arguments that lone receipts and a change have in common.
// excluded says that the session is taken out of the statistics whatever the labels of
// the receipts are. Records and summaries are copied because the caller may change its
// own while the batch waits.
func commitCall(receipts []store.Receipt, excluded bool) scriptCall {
	c := scriptCall{keys: []string{receiptsKey, summariesKey, statsKey, logKey, headKey}, args: []any{len(receipts)}}
	for _, r := range receipts {
		counters, sum := store.NewCounters(r), sha256.Sum256(r.JSON)
		level := ""
		if r.Level.Counted() {
			level = levelField + strconv.Itoa(int(r.Level.Place()))
		}
		c.keys = append(c.keys, receiptKey(r.ID), turnKey(r.TurnID), countersKey(r.CountedUnder()))
		c.args = append(c.args,
			r.ID, r.Kind, r.SessionKey, r.SessionID, r.Turn, r.Timestamp,
			counters.Interventions, strconv.FormatFloat(r.MAfter, 'g', -1, 64), string(r.JSON), counters.Margin, excluded || r.Excluded(),
			r.TurnID, string(r.Summary), hex.EncodeToString(sum[:]), level)
	}
	return c
}

// writeBatch sends the batch in one round trip. Its callers' contexts are
// theirs; the batch has a time of its own, so that a connection which hangs does not keep
// the next batch waiting once their writes have failed.
func (s *Store) writeBatch(batch []scriptCall) []error {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	kept := s.documents.all()
	cmds, found := s.send(ctx, batch, kept, commitScript.EvalSha)
	if anyLacksScript(cmds) {
		// A pipeline cannot fall back to EVAL by itself. Some of the batch may
		// have run, if the server lost its scripts half way: running all of it
		// again is safe, because what is there is found by its id. EVAL brings
		// the script along, so that losing it again does no harm.
		cmds, found = s.send(ctx, batch, kept, commitScript.Eval)
	}
	lost := s.restoreDocuments(ctx, kept, found) // before anybody is told that a receipt which names them is durable
	errs := make([]error, len(batch))
	for i, cmd := range cmds {
		errs[i] = cmp.Or(answer(cmd), lost)
	}
	s.noteRefusal(errs)
	return errs
}

// noteRefusal remembers for Check whether the server refused to write. A commit that
// conflicts says nothing of that.
func (s *Store) noteRefusal(errs []error) {
	refused := func(err error) bool { return errors.Is(err, store.ErrRefused) }
	switch {
	case slices.ContainsFunc(errs, refused):
		s.failed.Store(true)
	case slices.Contains(errs, nil):
		s.failed.Store(false)
	}
}

// scriptRunner runs a script: by its digest or with its text.
type scriptRunner func(ctx context.Context, c client.Scripter, keys []string, args ...any) *client.Cmd

// send runs the script for each of the batch, and then counts the documents that are kept.
func (s *Store) send(ctx context.Context, batch []scriptCall, kept map[string][]byte, run scriptRunner) (cmds []*client.Cmd, found *client.IntCmd) {
	cmds = make([]*client.Cmd, len(batch))
	pipeline := s.client.Pipeline()
	for i, c := range batch {
		cmds[i] = run(ctx, pipeline, c.keys, c.args...)
	}
	found = countDocuments(ctx, pipeline, kept)
	_, _ = pipeline.Exec(ctx) // every command has its own error
	return cmds, found
}

func anyLacksScript(cmds []*client.Cmd) bool {
	for _, cmd := range cmds {
		if client.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			return true
		}
	}
	return false
}

// answer reads the script's answer. That the time of the batch is over is the server's
// failure: no caller ended it.
func answer(cmd *client.Cmd) error {
	done, err := cmd.Bool()
	if err != nil {
		return failure(context.Background(), "committing", err)
	}
	if !done {
		return fmt.Errorf("committing a turn: %w", store.ErrConflict)
	}
	return nil
}
