package caddymodule_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
)

// A proxy is Caddy itself, running in this process; one at a time.
type proxy struct {
	t    *testing.T
	url  string
	log  string // file, at debug level
	data string
}

// runCaddy starts Caddy with a site block's content. ${store} is a place for a
// database, in options or elsewhere.
func runCaddy(t *testing.T, options, site string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	p := &proxy{t: t, url: "http://" + address, log: filepath.Join(dir, "log"), data: filepath.Join(dir, "lex.db")}
	t.Cleanup(func() { _ = caddy.Stop() })
	if err := p.load(options, site); err != nil {
		t.Fatal(err)
	}
	return p
}

// load replaces the configuration.
func (p *proxy) load(options, site string) error {
	p.t.Helper()
	config, err := p.adapt(options, site)
	if err != nil {
		return err
	}
	return caddy.Load(config, true)
}

// loadFaulty is load with a store that fails when told to.
func (p *proxy) loadFaulty(options, site string) error {
	p.t.Helper()
	config, err := p.adapt(options, site)
	if err != nil {
		return err
	}
	return caddy.Load(bytes.ReplaceAll(config, []byte(`"engine":"bolt"`), []byte(`"engine":"faulty"`)), true)
}

func (p *proxy) adapt(options, site string) ([]byte, error) {
	if !strings.Contains(options, "log {") {
		options += "\nlog {\noutput file " + p.log + "\n}"
	}
	text := "{\nadmin off\ndebug\n" + options + "\n}\n" + p.url + " {\n" + site + "\n}\n"
	text = strings.NewReplacer("${store}", p.data, "${log}", p.log).Replace(text)
	config, _, err := caddyfile.Adapter{ServerType: httpcaddyfile.ServerType{}}.Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	return config, err
}

// validate provisions a configuration, as `caddy validate` does.
func validate(config []byte) error {
	var c caddy.Config
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	return caddy.Validate(&c)
}

// stop ends Caddy and returns all that it logged.
func (p *proxy) stop() string {
	p.t.Helper()
	if err := caddy.Stop(); err != nil {
		p.t.Error(err)
	}
	logged, err := os.ReadFile(p.log)
	if err != nil {
		p.t.Error(err)
	}
	return string(logged)
}

// send returns the status, the headers and the body of an answer, also of one
// that broke off; 0 means that there was none.
func (p *proxy) send(method, path, body string, header http.Header) (int, http.Header, string) {
	p.t.Helper()
	r, err := http.NewRequest(method, p.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		p.t.Fatal(err)
	}
	if header != nil {
		r.Header = header.Clone()
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		return 0, nil, ""
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, response.Header, string(text)
}

// health is what the health says when the first pass of the self-test is over, for which a
// busy machine may take longer than the health waits.
func (p *proxy) health() (status int, body string) {
	p.t.Helper()
	for {
		if status, _, body = p.send(http.MethodGet, "/lex/health", "", nil); !strings.Contains(body, `"self_test":"starting"`) {
			return status, body
		}
	}
}
