package caddymodule_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// failureLines are the lines in which lex says that what is behind it failed.
func failureLines(t *testing.T, logged string) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(logged) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if entry["msg"] == "the handlers behind lex failed" {
			lines = append(lines, entry)
		}
	}
	return lines
}

// A governed request whose provider failed leaves one line with the cause and
// nothing of the request.
func TestFailuresAreLoggedOnce(t *testing.T) {
	behind := map[string]string{
		"no handler": "", "other path": "reverse_proxy /openai/* 127.0.0.1:1", "page": "respond <html>login</html>", "nothing": "respond 200",
	}
	for name, upstream := range failing(t) {
		behind[name] = "reverse_proxy " + upstream
	}
	for name, cause := range map[string]string{
		"refused": "refused", "timeout": "timeout", "reset": "reset", "tls": "tls", "dns": "dns", "cut": "broken_off", "500": "",
		"no handler": "no_handler", "other path": "no_handler", "page": "no_text", "nothing": "no_text",
	} {
		for path, body := range map[string]string{
			"/v1/chat/completions": chatQuestion, "/lex/govern": question, "/v1/other": `{"a":"b"}`,
		} {
			t.Run(name+path, func(t *testing.T) {
				p := runCaddy(t, "lex {\nstore bolt ${store}\n}", "lex {\nbaseline always\n}\n"+behind[name])
				p.send(http.MethodPost, path+"?key="+canary, body, http.Header{"X-Api-Key": {canary}})
				lines := failureLines(t, p.stop())
				passed := cause == "no_text" && path != "/lex/govern" || (cause == "broken_off" || cause == "no_handler") && path == "/v1/other" // on, as it is
				if cause == "" || passed {
					if len(lines) > 0 {
						t.Errorf("logged %v", lines)
					}
					return
				}
				if len(lines) != 1 || lines[0]["cause"] != cause || lines[0]["level"] != "error" {
					t.Fatalf("logged %v, want %s", lines, cause)
				}
				for member := range lines[0] {
					if !slices.Contains([]string{"level", "ts", "logger", "msg", "cause"}, member) {
						t.Errorf("the line has %s: %v", member, lines[0])
					}
				}
			})
		}
	}
}

// A client that leaves is no failure of the provider.
func TestLeavingIsNoFailure(t *testing.T) {
	ctx, leave := context.WithCancel(context.Background())
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the server does not see that the connection ends
		leave()
		<-r.Context().Done()
	}))
	defer srv.Close()
	p := runCaddy(t, "lex {\nstore bolt ${store}\n}", "lex\nreverse_proxy "+srv.Listener.Addr().String())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/v1/chat/completions", strings.NewReader(chatQuestion))
	if err != nil {
		t.Fatal(err)
	}
	if response, err := http.DefaultClient.Do(r); err == nil {
		response.Body.Close()
		t.Error("the client did not leave")
	}
	if lines := failureLines(t, p.stop()); len(lines) > 0 {
		t.Errorf("logged %v", lines)
	}
}

// Errors of what lex does not govern end in handle_errors, whether or not the
// request brings a credential, and leave a line at error level without it.
func TestHandleErrors(t *testing.T) {
	for name, errors := range map[string]string{
		"none":     "",
		"respond":  "handle_errors {\nheader X-Handled yes\nrespond \"sorry: {err.status_code} {path}\" {err.status_code}\n}",
		"failing":  "handle_errors {\nerror 418\n}",
		"no match": "handle_errors 404 {\nrespond nothing\n}",
	} {
		t.Run(name, func(t *testing.T) {
			options := "lex {\nstore bolt ${store}\n}\nlog {\noutput file ${log}\nlevel INFO\n}" // rewrite shows all at debug level
			p := runCaddy(t, options, "lex {\nendpoints off\n}\nhandle /a {\nrewrite /b\nreverse_proxy "+failing(t)["refused"]+"\n}\nhandle {\nerror 404\n}\n"+errors)
			for _, path := range []string{"/a", "/elsewhere"} {
				plainStatus, plainHeader, plainBody := p.send(http.MethodGet, path+"?q=1", "", nil)
				status, header, body := p.send(http.MethodGet, path+"?key="+canary, "", http.Header{"X-Api-Key": {canary}})
				if status != plainStatus || body != plainBody || header.Get("X-Handled") != plainHeader.Get("X-Handled") || status == http.StatusOK {
					t.Errorf("%s: %d %q with a credential, %d %q without", path, status, body, plainStatus, plainBody)
				}
				if name == "respond" && path == "/a" && body != "sorry: 502 /a" {
					t.Errorf("handle_errors answered %d %q", status, body)
				}
			}
			logged := p.stop()
			checkNoCanary(t, logged)
			if lines := failureLines(t, logged); len(lines) != 1 || lines[0]["cause"] != "refused" || lines[0]["status"] != 502.0 {
				t.Errorf("logged %v", lines)
			}
			if name == "none" && !strings.Contains(logged, `"logger":"http.log.error"`) {
				t.Error("Caddy logged no error of a request without credentials")
			}
		})
	}
}

// What outlives a reload logs to the logs of the configuration in force.
func TestLogsAfterAReload(t *testing.T) {
	const options = "lex {\nstore bolt ${store}\nembedder openai {\nbase_url http://127.0.0.1:1/v1\n}\n}\nlog {\noutput file ${log}%s\n}"
	srv := httptest.NewServer(answeringHTTP("application/json", completion("Paris.")))
	defer srv.Close()
	site := "lex {\nbaseline never\n}\nreverse_proxy " + srv.Listener.Addr().String()
	p := runCaddy(t, "lex {\nstore bolt ${store}.other\n}", site)
	if err := p.loadFaulty(fmt.Sprintf(options, ".first"), site); err != nil {
		t.Fatal(err)
	}
	if err := p.loadFaulty(fmt.Sprintf(options, ".second"), site+"\nheader X-Second yes"); err != nil {
		t.Fatal(err)
	}
	if err := p.loadFaulty(fmt.Sprintf(options, ".refused"), site+"\nbind 192.0.2.1"); err == nil {
		t.Fatal("an address that is not ours was listened on")
	}
	broken.Store(p.data, true)
	for i := range 8 {
		p.send(http.MethodPost, "/lex/govern", fmt.Sprintf(`{"prompt":"What is %d + %d?","session_id":"s"}`, i, i), nil)
	}
	broken.Delete(p.data)
	if err := caddy.Stop(); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]bool{".first": false, ".second": true, ".refused": false} {
		logged, err := os.ReadFile(p.log + name)
		if err != nil && want {
			t.Fatal(err)
		}
		for _, line := range []string{"the store is failing", "the disk is gone", "the remote model is failing"} {
			if strings.Contains(string(logged), line) != want {
				t.Errorf("%q in the log %s: %v, want %v", line, name, !want, want)
			}
		}
	}
}

// What a handler after lex refuses by itself keeps its status, in the shape of the API, with the
// headers that belong to the status.
func TestHandlersOwnErrorsKeepTheirStatus(t *testing.T) {
	for name, test := range map[string]struct {
		handlers, header string
		status           int
	}{
		"basic_auth":  {"basic_auth {\nuser $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG\n}\nrespond ok", "Www-Authenticate", http.StatusUnauthorized},
		"error":       {"error no 404", "", http.StatusNotFound},
		"file_server": {"file_server", "", http.StatusNotFound},
		"no answer":   {"error no 503", "", http.StatusBadGateway},
	} {
		t.Run(name, func(t *testing.T) {
			p := runCaddy(t, "lex {\nstore bolt ${store}\n}", "route {\nlex\n"+test.handlers+"\n}")
			code := "upstream_error"
			if test.status == http.StatusBadGateway {
				code = "upstream_failed"
			}
			for path, body := range map[string]string{
				"/v1/chat/completions": chatQuestion, "/v1/messages": claudeQuestion, "/v1/embeddings": `{"model":"m","input":"What is the capital of France?"}`,
			} {
				status, header, got := p.send(http.MethodPost, path, body, nil)
				if status != test.status || test.header != "" && header.Get(test.header) == "" || path == "/v1/chat/completions" && !strings.Contains(got, code) {
					t.Errorf("%s: %d %v %s", path, status, header, got)
				}
			}
		})
	}
}
