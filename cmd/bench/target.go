package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// A target is what answers a work: the upstream alone, or a proxy in front of it.
type target struct {
	name     string
	address  string
	headers  string // what each request carries for this target, as lines of HTTP
	admin    string // the URL of Caddy's admin endpoint; empty if it is not Caddy
	governed bool
	peer     bool         // another project's proxy, which may be unable to do a work
	proxy    *process     // nil for the upstream alone
	beside   *process     // a server that works for the proxy, such as Redis, or nil
	answers  atomic.Int64 // under load
	turns    atomic.Int64 // answers to prompts, each of which must have its receipt
}

// Names of targets that the tables refer to.
const (
	bareName     = "bare Caddy"
	governedName = "governed, bolt"
)

// A setup is a configuration of Caddy to measure.
type setup struct {
	name    string
	store   string // of the global option lex
	options string // of that option, besides
	site    string // the handlers in front of reverse_proxy
	key     bool   // the requests carry a Lex key
}

// setups are Caddy's configurations; redis is the URL of a server, or empty.
func setups(redis string) []setup {
	all := []setup{
		{name: bareName},
		{name: governedName, store: "bolt", site: "lex"},
		{name: "governed, Redis", store: "redis " + redis, site: "lex"},
		{name: "observe, bolt", store: "bolt", site: "lex {\n\t\tmode observe\n\t}"},
		{
			name: "governed, bolt, key and limits", store: "bolt", key: true,
			options: "limits {\n\t\t\tintercepted 1000000000/1m\n\t\t\tplan bench 1000000000/30d\n\t\t}\n\t\tsecrets {\n\t\t\tadmin {env." + secretName + "}\n\t\t}",
			site:    "lex {\n\t\trequire_key\n\t}",
		},
	}
	if redis == "" {
		return append(all[:2:2], all[3:]...)
	}
	return all
}

// secretName is the variable that holds the secret of the administration, which makes
// the key.
const secretName = "BENCH_ADMIN_SECRET"

// caddyfile writes the configuration.
func (s setup) caddyfile(site, admin, upstream string) string {
	global := ""
	if s.store != "" {
		global = fmt.Sprintf("\tlex {\n\t\tstore %s\n\t\t%s\n\t}\n", s.store, s.options)
	}
	host, port, _ := strings.Cut(site, ":")
	return fmt.Sprintf("{\n\tadmin %s\n\tpersist_config off\n%s}\n:%s {\n\tbind %s\n\t%s\n\treverse_proxy %s\n}\n",
		admin, global, port, host, s.site, upstream)
}

// start runs Caddy with the configuration, with its data in a folder of its own.
func (s setup) start(ctx context.Context, caddy, folder, upstream string) (*target, error) {
	site, admin := freeAddress(), freeAddress()
	home, err := os.MkdirTemp(folder, "caddy-")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(home, "Caddyfile")
	if err := os.WriteFile(config, []byte(s.caddyfile(site, admin, upstream)), 0o600); err != nil {
		return nil, err
	}
	secret := filepath.Base(home)
	cmd := exec.CommandContext(ctx, caddy, "run", "--config", config, "--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home, secretName+"="+secret)
	t := &target{name: s.name, address: site, admin: "http://" + admin, governed: s.site != ""}
	if t.proxy, err = startProcess(ctx, cmd, listens(site)); err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	if s.key {
		key, err := newKey(ctx, site, secret)
		if err != nil {
			return t, fmt.Errorf("%s: %w", s.name, err)
		}
		t.headers = "X-Lex-Api-Key: " + key + "\r\n"
	}
	return t, nil
}

// newKey makes a key of the plan bench.
func newKey(ctx context.Context, site, secret string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+site+"/admin/keys", strings.NewReader(`{"name":"bench","plan":"bench"}`))
	if err != nil {
		return "", err
	}
	req.Header.Set("X-Lex-Admin-Password", secret)
	var made struct{ Key string }
	if err := fetchJSON(req, http.StatusCreated, &made); err != nil {
		return "", fmt.Errorf("making a key: %w", err)
	}
	return made.Key, nil
}

// receipts asks a governed target how many receipts it has stored.
func (t *target) receipts(ctx context.Context) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+t.address+"/stats", http.NoBody)
	if err != nil {
		return 0, err
	}
	var stats struct {
		Total int64 `json:"total_receipts"`
	}
	err = fetchJSON(req, http.StatusOK, &stats)
	return stats.Total, err
}

func fetchJSON(req *http.Request, status int, into any) error {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != status {
		return fmt.Errorf("%s %s: status %d: %.200s", req.Method, req.URL.Path, resp.StatusCode, body)
	}
	return json.Unmarshal(body, into)
}

// A field is everything that is measured, in the order of the tables.
type field struct {
	targets []*target
	absent  []string // what could not be measured, and why, in sentences
}

// startField starts all targets. The field is never nil, and must be stopped.
func startField(ctx context.Context, o options, folder, upstream string) (*field, error) {
	f := &field{targets: []*target{{name: "the upstream alone", address: upstream}}}
	redis, url, err := startRedis(ctx, folder)
	if err != nil {
		f.absent = append(f.absent, fmt.Sprintf("Governed Caddy with Redis was not measured: %v.", err))
	}
	all := setups(url)
	started := make([]*target, len(all), len(all)+1)
	var group errgroup.Group
	for i, s := range all {
		group.Go(func() (err error) {
			started[i], err = s.start(ctx, o.caddy, folder, upstream)
			if started[i] != nil && strings.HasPrefix(s.store, "redis") {
				started[i].beside = redis
			}
			return err
		})
	}
	var peer *target
	var fault error
	group.Go(func() error {
		peer, fault = startPortkey(ctx, o.install, folder, upstream)
		return nil
	})
	err = group.Wait()
	if fault != nil {
		f.absent = append(f.absent, fmt.Sprintf("Portkey's gateway was not measured: %v.", fault))
	}
	for _, t := range append(started, peer) {
		if t != nil {
			f.targets = append(f.targets, t)
		}
	}
	return f, err
}

func (f *field) stop() {
	for _, t := range f.targets {
		t.proxy.stop()
		t.beside.stop()
	}
}

// named returns a target that is there in every run.
func (f *field) named(name string) *target {
	for _, t := range f.targets {
		if t.name == name {
			return t
		}
	}
	panic("no target " + name)
}

// startRedis starts a redis-server that keeps nothing on disk, as the tests do.
func startRedis(ctx context.Context, folder string) (*process, string, error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, "", errors.New("there is no redis-server on the PATH")
	}
	address := freeAddress()
	host, port, _ := strings.Cut(address, ":")
	cmd := exec.CommandContext(ctx, binary, "--bind", host, "--port", port, "--dir", folder, "--save", "", "--appendonly", "no")
	p, err := startProcess(ctx, cmd, listens(address))
	return p, "redis://" + address, err
}

// peerFolder has the package.json of the peer, seen from the root of the repository.
const peerFolder = "cmd/bench"

// startPortkey starts Portkey's gateway, which npm fetches in the pinned version if it
// is not there and install says so.
func startPortkey(ctx context.Context, install bool, folder, upstream string) (*target, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, errors.New("there is no node on the PATH")
	}
	root := filepath.Join(peerFolder, "node_modules", "@portkey-ai", "gateway")
	if install {
		if err := installPeer(ctx); err != nil {
			return nil, err
		}
	}
	manifest, err := os.ReadFile(filepath.Join(root, "package.json"))
	if err != nil {
		return nil, errors.New("it is not installed")
	}
	var about struct{ Version string }
	if err := json.Unmarshal(manifest, &about); err != nil {
		return nil, errors.New("its package.json cannot be read")
	}
	t := &target{name: "Portkey " + about.Version, address: freeAddress(), peer: true}
	_, port, _ := strings.Cut(t.address, ":")
	t.headers = "x-portkey-provider: openai\r\nx-portkey-custom-host: http://" + upstream + "/v1\r\nAuthorization: Bearer none\r\n"
	script, err := filepath.Abs(filepath.Join(root, "build", "start-server.js"))
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, node, script, "--port="+port, "--headless")
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "NODE_ENV=production")
	t.proxy, err = startProcess(ctx, cmd, listens(t.address))
	if err != nil {
		return nil, errors.New("it did not start")
	}
	return t, nil
}

// installPeer lets npm fetch the peer, unless it is there in the version of the lock.
func installPeer(ctx context.Context) error {
	lock, err := os.ReadFile(filepath.Join(peerFolder, "package-lock.json"))
	if err != nil {
		return errors.New("its lock file cannot be read")
	}
	mark := filepath.Join(peerFolder, "node_modules", ".lock-installed")
	if installed, err := os.ReadFile(mark); err == nil && bytes.Equal(installed, lock) {
		return nil
	}
	npm := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund", "--loglevel=error")
	npm.Dir = peerFolder
	if _, err := npm.CombinedOutput(); err != nil {
		return errors.New("npm could not fetch it")
	}
	return os.WriteFile(mark, lock, 0o600)
}

// freeAddress finds a port of this machine that nobody listens on. Another process may
// take it before it is used; the target then does not start.
func freeAddress() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // nothing waits here
	if err != nil {
		panic(err) // a machine without a free port
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// listens reports whether a server takes connections. Caddy's admin endpoint does so
// before its sites.
func listens(address string) func(context.Context) bool {
	return func(ctx context.Context) bool {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return false
		}
		_ = conn.Close()
		return true
	}
}

// fetch reads what a URL answers with status 200.
func fetch(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: status %d", url, resp.StatusCode)
	}
	return body, nil
}
