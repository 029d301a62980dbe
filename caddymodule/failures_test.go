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

// What is addressed to lex does not go on to handle_errors, which may ask another
// provider. All else does, and logs and placeholders show what they showed.
func TestHandleErrorsGetsNoLexHeaders(t *testing.T) {
	seen := new(recorder)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen.record(r) }))
	defer srv.Close()
	options := "lex {\nstore bolt ${store}\nsecrets {\nadmin adm-secret\nbench bench-secret\n}\n}\nlog {\noutput file ${log}\nlevel INFO\n}"
	refused := "reverse_proxy " + failing(t)["refused"]
	backup := "reverse_proxy " + srv.Listener.Addr().String() + " {\nheader_up X-Status {err.status_code}\nheader_up X-Of {header.X-Lex-Session}\n}"
	for name, site := range map[string]string{
		"beside lex":   "lex\n" + refused + "\nhandle_errors {\n" + backup + "\n}",
		"unknown pass": "lex {\nunknown pass\n}\n" + refused + "\nhandle_errors {\n" + backup + "\n}",
		"require_key":  "lex {\nrequire_key\n}\n" + refused + "\nhandle_errors {\n" + backup + "\n}",
		"nested":       "handle {\nroute {\nlex\nrewrite /x\n" + refused + "\n}\n}\nhandle_errors 502 {\n@kept header X-Kept kept\nhandle @kept {\n" + backup + "\n}\n}",
		"named route":  "lex\n" + refused + "\nhandle_errors {\nroute {\ninvoke backup\n}\n}\n}\n&(backup) {\n" + backup,
	} {
		t.Run(name, func(t *testing.T) {
			p := runCaddy(t, options, "log\nlog_append session {header.x-lex-session}\n"+site)
			_, _, body := p.send(http.MethodPost, "/admin/keys", `{"name":"k"}`, http.Header{"X-Lex-Admin-Password": {"adm-secret"}})
			var made struct {
				Key string `json:"key"`
			}
			if err := json.Unmarshal([]byte(body), &made); err != nil || made.Key == "" {
				t.Fatalf("%v: %s", err, body)
			}
			for _, header := range []http.Header{
				{"Authorization": {"Bearer " + made.Key}, "X-Lex-Eval": {"1"}}, // Caddy's own log shows no credential of this one
				{"Authorization": {"Bearer " + made.Key}, "X-Api-Key": {"theirs"}},
				{"Authorization": {"Bearer theirs"}, "X-Lex-Api-Key": {made.Key}, "X-Lex-Admin-Password": {"adm-secret"}, "X-Lex-Bench-Secret": {"bench-secret"}, "X-Lex-Session": {"s1"}},
			} {
				header.Set("X-Kept", "kept")
				for method, path := range map[string]string{http.MethodGet: "/v1/models", http.MethodDelete: "/ungoverned", http.MethodPost: "/v1/other"} {
					content := ""
					if method == http.MethodPost {
						if content = `{"a":"b"}`; name != "unknown pass" {
							continue // governed: lex answers for the handlers after it
						}
					}
					before := seen.count.Load()
					status, _, _ := p.send(method, path, content, header)
					if status != http.StatusOK || seen.count.Load() != before+1 {
						t.Fatalf("%s: %d", path, status)
					}
					got := seen.last().header
					for name, values := range got {
						if strings.HasPrefix(name, "X-Lex-") || strings.Contains(fmt.Sprint(values), made.Key) || strings.Contains(fmt.Sprint(values), "-secret") {
							t.Errorf("%s: handle_errors gave on %s: %s", path, name, values)
						}
					}
					theirs := header.Get("Authorization")
					if strings.Contains(theirs, made.Key) {
						theirs = ""
					}
					if got.Get("X-Kept") != "kept" || got.Get("X-Api-Key") != header.Get("X-Api-Key") || got.Get("Authorization") != theirs ||
						got.Get("X-Status") != "502" || got.Get("X-Of") != header.Get("X-Lex-Session") || seen.last().path != path {
						t.Errorf("%s: handle_errors gave on %v", path, seen.last())
					}
				}
			}

			// A governed call is answered by lex, with a receipt.
			before := seen.count.Load()
			status, header, _ := p.send(http.MethodPost, "/v1/chat/completions", chatQuestion, http.Header{"X-Lex-Api-Key": {made.Key}, "X-Lex-Session": {"s1"}})
			if status != http.StatusBadGateway || seen.count.Load() != before {
				t.Errorf("a governed call: %d, %d to handle_errors", status, seen.count.Load()-before)
			}
			if status, _, body := p.send(http.MethodGet, "/audits/turn/"+header.Get("X-Lex-Turn"), "", nil); name != "require_key" && (status != http.StatusOK || !strings.Contains(body, `"provider_failed"`)) {
				t.Errorf("its receipt: %d %s", status, body)
			}
			if logged := p.stop(); !strings.Contains(logged, `"X-Lex-Session":["s1"]`) || !strings.Contains(logged, `"session":"s1"`) {
				t.Error("the access log lacks the session")
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
