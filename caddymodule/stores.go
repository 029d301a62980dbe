package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/bolt"
	"github.com/caddy-lex/lex/store/redis"
)

func init() {
	caddy.RegisterModule(BoltStore{})
	caddy.RegisterModule(RedisStore{})
}

// A StoreOpener is a module in the namespace lex.stores. OpenStore is called
// once for all configurations that share StoreKey, which must name the
// resource itself (a path, an address), not its options: opening one resource
// twice is what the key prevents.
type StoreOpener interface {
	StoreKey() string
	OpenStore(ctx context.Context) (store.Store, error)
}

// BoltStore keeps everything in one file on this machine.
type BoltStore struct {
	// The database file. Placeholders are allowed. Default: lex/lex.db in Caddy's data
	// directory.
	Path string `json:"path,omitempty"`

	logger *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (BoltStore) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "lex.stores.bolt",
		New: func() caddy.Module { return new(BoltStore) },
	}
}

// Provision makes the path absolute: it is the store's identity.
func (s *BoltStore) Provision(ctx caddy.Context) error {
	s.logger = ctx.Logger()
	path, err := caddy.NewReplacer().ReplaceOrErr(s.Path, true, true)
	if err != nil { // a file whose name nobody knows would be lost with its container
		return fmt.Errorf("the path %q of the bolt store: %w", s.Path, err)
	}
	s.Path = path
	if s.Path == "" {
		s.Path = filepath.Join(caddy.AppDataDir(), "lex", "lex.db")
	}
	if s.Path, err = filepath.Abs(s.Path); err != nil {
		return fmt.Errorf("resolving the database path: %w", err)
	}
	return nil
}

// StoreKey returns the file's identity, which is the same by whatever folder it is reached.
func (s *BoltStore) StoreKey() string {
	return "bolt:" + filepath.Join(withoutLinks(filepath.Dir(s.Path)), filepath.Base(s.Path))
}

// withoutLinks returns a folder without symbolic links. What of it is not there yet will be
// made without them.
func withoutLinks(folder string) string {
	if found, err := filepath.EvalSymlinks(folder); err == nil {
		return found
	}
	above := filepath.Dir(folder)
	if above == folder {
		return folder
	}
	return filepath.Join(withoutLinks(above), filepath.Base(folder))
}

// OpenStore opens the file, or says who to ask when it is locked.
func (s *BoltStore) OpenStore(context.Context) (store.Store, error) {
	opened, err := bolt.Open(s.Path, bolt.Options{})
	if err != nil {
		return nil, err
	}
	if opened.JournalLost() {
		s.logger.Warn("the store was not closed, and its journal is missing, cut or overwritten: its last turns may be lost", zap.String("journal", s.Path+".journal"))
	}
	return opened, nil
}

// UnmarshalCaddyfile sets up the store from Caddyfile tokens. Syntax:
//
//	bolt [<path>]
func (s *BoltStore) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	if d.NextArg() {
		if s.Path = d.Val(); s.Path == "" {
			return d.Err("the path is empty: set what it names, or leave it out for the default")
		}
	}
	return noMoreArguments(d)
}

// RedisStore keeps everything in Redis, where replicas share it.
type RedisStore struct {
	// The address, exactly one, in the form redis://[user:password@]host:port[/db], rediss://
	// for TLS. Placeholders are allowed.
	URLs []string `json:"urls,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (RedisStore) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "lex.stores.redis",
		New: func() caddy.Module { return new(RedisStore) },
	}
}

// Provision resolves placeholders and checks the addresses.
func (s *RedisStore) Provision(caddy.Context) error {
	if len(s.URLs) == 0 {
		return errors.New("the redis store needs an address: store redis redis://host:6379")
	}
	repl := caddy.NewReplacer()
	for i, u := range s.URLs {
		if s.URLs[i] = repl.ReplaceAll(u, ""); s.URLs[i] == "" {
			return fmt.Errorf("the address %q of the redis store is empty: set what it names", u) // placeholders alone, and no password
		}
		if _, err := repl.ReplaceOrErr(u, true, true); err != nil { // without a host it would be another server; the error may hold a piece of a password
			return errors.New("the address of the redis store has a placeholder that is unknown or empty: set what it names, and write %7B for a brace")
		}
	}
	return redis.CheckURLs(s.URLs)
}

// StoreKey returns the identity of the servers.
func (s *RedisStore) StoreKey() string {
	return "redis:" + strings.Join(slices.Sorted(slices.Values(s.URLs)), " ")
}

// OpenStore connects.
func (s *RedisStore) OpenStore(ctx context.Context) (store.Store, error) {
	return redis.Open(ctx, s.URLs, redis.Options{})
}

// UnmarshalCaddyfile sets up the store from Caddyfile tokens. Syntax:
//
//	redis <url>
func (s *RedisStore) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	if s.URLs = d.RemainingArgs(); len(s.URLs) == 0 {
		return missing(d, "store redis", "an address, such as redis://host:6379")
	}
	return noMoreArguments(d)
}

// noMoreArguments refuses surplus arguments and a block on a module that has
// no options.
func noMoreArguments(d *caddyfile.Dispenser) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		return d.Errf("unrecognized option %q", d.Val())
	}
	return nil
}

// Interface guards
var (
	_ StoreOpener           = (*BoltStore)(nil)
	_ caddy.Provisioner     = (*BoltStore)(nil)
	_ caddyfile.Unmarshaler = (*BoltStore)(nil)
	_ StoreOpener           = (*RedisStore)(nil)
	_ caddy.Provisioner     = (*RedisStore)(nil)
	_ caddyfile.Unmarshaler = (*RedisStore)(nil)
)
