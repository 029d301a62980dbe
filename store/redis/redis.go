package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/caddy-lex/lex/store"
)

// defaultTimeout lets a server fail over, or wait for its disk, without failing the
// requests that come meanwhile: each of them may hold a model's answer that was paid for. It
// is as long as a turn waits for a write before it repeats it.
const defaultTimeout = 5 * time.Second

// Options adjusts a store. The zero value is right for production.
type Options struct {
	// Timeout bounds each wait for the server: to connect, to write, to read. A batch of
	// commits is bounded as a whole, because those that come meanwhile wait for it.
	// Default: 5 s. Waiting for a connection that other requests use may take
	// another second, because a burst is no outage. The URL does not change it.
	Timeout time.Duration
	// ReadOnly opens the store to be read alone, as a verifier does: nothing is written and
	// nothing is put in order. So the server may be a replica, and the user one who may not write.
	ReadOnly bool
}

// Store is a [store.Store] in Redis.
type Store struct {
	client    *client.Client
	primary   primary
	timeout   time.Duration
	documents documents
	failed    atomic.Bool // the last commit that was to write was refused; see Check
	writes    *store.GroupCommit[scriptCall]
	close     func() error
}

// Open connects to the server at the one URL of the form
// redis://[user:password@]host[:port][/db], or rediss:// for TLS. It fails when
// the server does not answer, when the store is to be written and cannot be, and when it is to be
// read alone and its log has lost its head.
func Open(ctx context.Context, urls []string, opts Options) (*Store, error) {
	timeout := cmp.Or(opts.Timeout, defaultTimeout)
	settings, err := parse(urls, timeout)
	if err != nil {
		return nil, err
	}
	quieten()
	s := &Store{timeout: timeout}
	settings.Dialer = s.primary.dials(showingTheirEnd(client.NewDialer(settings)))
	s.client = client.NewClient(settings)
	s.client.AddHook(&s.primary)
	steps := []func(context.Context) error{s.greet, s.checkEviction, s.checkCommands, s.checkKeys, s.beginLog}
	if opts.ReadOnly {
		steps = []func(context.Context) error{s.greet, s.checkBegun}
	}
	for _, step := range steps {
		if err = step(ctx); err != nil {
			break
		}
	}
	if err != nil {
		_ = s.client.Close()
		return nil, fmt.Errorf("connecting: %w", err)
	}
	s.writes = store.NewGroupCommit(s.writeBatch)
	s.close = sync.OnceValue(s.shut)
	return s, nil
}

// greet sends the first command, a short one: to a script without a password the server says
// only that it is too long. A server that ends the connection without a word takes what it got
// for no beginning of TLS.
func (s *Store) greet(ctx context.Context) error {
	err := s.client.Exists(ctx, headKey).Err()
	if s.client.Options().TLSConfig == nil && closed(err) {
		return fmt.Errorf("checking: %w: the server closed the connection; does it want TLS (rediss://)?", store.ErrUnavailable)
	}
	return failure(ctx, "checking", err)
}

// checkEviction finds out that the server throws receipts away when its memory is full. A user who
// may not ask the server is believed.
func (s *Store) checkEviction(ctx context.Context) error {
	memory := s.client.InfoMap(ctx, "memory").Item
	limit, policy := memory("Memory", "maxmemory"), memory("Memory", "maxmemory_policy")
	if limit == "" || limit == "0" || !strings.HasPrefix(policy, "allkeys-") {
		return nil
	}
	return fmt.Errorf("checking: %w: the server throws receipts away when its memory is full; set its maxmemory-policy to noeviction", store.ErrRefused)
}

// CheckURLs reports whether Open understands the addresses, without a connection.
func CheckURLs(urls []string) error {
	_, err := parse(urls, defaultTimeout)
	return err
}

// parse reads the URL. Its errors do not quote it: it may hold a password.
func parse(urls []string, timeout time.Duration) (*client.Options, error) {
	if len(urls) != 1 {
		return nil, errors.New("redis: give exactly one url")
	}
	o, err := client.ParseURL(urls[0])
	if err != nil {
		return nil, errors.New("redis: the url is not of the form redis://[user:password@]host[:port][/db]")
	}
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = timeout, timeout, timeout, timeout+time.Second
	o.ContextTimeoutEnabled = true
	// One try, of dialling too: giving back a run twice would exceed a limit.
	o.MaxRetries, o.DialerRetries = -1, 1
	o.PipelinePoolSize = -1 // one writer sends all: it needs no pool of its own, nor to wait for two
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if o.TLSConfig != nil {
		o.TLSConfig.MinVersion = tls.VersionTLS12
	}
	return o, nil
}

// Close finishes the commits that were begun and closes the connections.
func (s *Store) Close() error { return s.close() }

func (s *Store) shut() error {
	s.writes.Close()
	if err := s.client.Close(); err != nil {
		return failure(context.Background(), "closing", err)
	}
	return nil
}

//go:embed check.lua
var checkSource string

var checkScript = client.NewScript(checkSource)

// turnKeys are those that check.lua looks at, and those that it writes to.
var turnKeys = []string{
	receiptsKey, summariesKey, statsKey, logKey, headKey,
	prefix + "check:stream", prefix + "check:hash", prefix + "check:set", prefix + "check:string",
}

// otherKeys are those of what is no turn, one of each kind.
var otherKeys = append([]string{keysKey, benchmarksKey, keyKey("check"), documentKey("check")}, limitKeys("check", "run")...)

// probe is as large as a large turn.
var probe = strings.Repeat("0", 256<<10)

// Check reports whether commits would succeed.
func (s *Store) Check(ctx context.Context) error {
	if err := s.checkCommands(ctx); err != nil {
		return err
	}
	if err := s.checkKeys(ctx); err != nil {
		return err
	}
	return s.checkHead(ctx)
}

// checkKeys finds out that the user may not have the keys that no turn has. The server asks for
// the right to read and write every key that a script names, before it runs it. Each script
// names one, because they are in different slots.
func (s *Store) checkKeys(ctx context.Context) error {
	pipeline := s.client.Pipeline()
	for _, key := range otherKeys {
		pipeline.Eval(ctx, "return 1", []string{key})
	}
	_, err := pipeline.Exec(ctx)
	return failure(ctx, "checking", err)
}

// checkBegun finds out that the log has no head although there are receipts. A log without one
// looks whole to a reader, and one that was lost with it empty.
func (s *Store) checkBegun(ctx context.Context) error {
	pipeline := s.client.Pipeline()
	receipts := pipeline.XRevRangeN(ctx, receiptsKey, "+", "-", 1)
	begun := pipeline.Exists(ctx, headKey)
	if _, err := pipeline.Exec(ctx); err != nil {
		return failure(ctx, "checking", err)
	}
	if begun.Val() == 0 && len(receipts.Val()) > 0 {
		return fmt.Errorf("checking: %w: the log has lost its head, or was never begun; a start of Caddy begins it again", store.ErrRefused)
	}
	return nil
}

// checkHead finds out that the head of the log was lost, or is older than the log, or that both
// were lost and the receipts were not. The head is read last, and the log before it: a commit that
// comes between makes them newer.
func (s *Store) checkHead(ctx context.Context) error {
	pipeline := s.client.Pipeline()
	receipts := pipeline.XRevRangeN(ctx, receiptsKey, "+", "-", 1)
	newest := pipeline.XRevRangeN(ctx, logKey, "+", "-", 1)
	head := pipeline.HMGet(ctx, headKey, "size")
	if _, err := pipeline.Exec(ctx); err != nil {
		return failure(ctx, "checking", err)
	}
	size, _ := head.Val()[0].(string)
	known, _ := strconv.ParseUint(size, 10, 64)
	lost := known == 0 && len(receipts.Val()) > 0
	if len(newest.Val()) > 0 {
		seq, err := seqOf(newest.Val()[0])
		lost = lost || err != nil || seq > known
	}
	if lost {
		return fmt.Errorf("checking: %w: the log has more receipts than its head says", store.ErrRefused)
	}
	return nil
}

// checkCommands runs every command that the store uses: a server that is full, or has become a
// replica, still answers reads, and one command alone may be denied to the user. When the
// last commit was refused it asks for the room of a large turn, because a server fills up to
// where there is room for a little.
func (s *Store) checkCommands(ctx context.Context) error {
	room := ""
	if s.failed.Load() {
		room = probe
	}
	wrong, err := checkScript.Run(ctx, s.client, turnKeys, room).StringSlice()
	if err == nil && len(wrong) == 2 && isReplica(wrong[1]) { // a failover may have made it one
		s.primary.generation.Add(1)
		wrong, err = checkScript.Run(ctx, s.client, turnKeys, room).StringSlice()
	}
	if err != nil {
		return failure(ctx, "checking", err)
	}
	if len(wrong) == 2 {
		return fmt.Errorf("checking: %w: %s: %s", store.ErrRefused, wrong[0], code(wrong[1]))
	}
	if room != "" {
		s.failed.Store(false)
	}
	return nil
}

var _ store.Store = (*Store)(nil)
