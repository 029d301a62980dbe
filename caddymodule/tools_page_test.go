package caddymodule_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// The table of docs/tools.md is what clients get; -update writes it.
func TestToolsPage(t *testing.T) {
	const file = "../docs/tools.md"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := replaceGenerated(t, string(page), "calls", blockedTable(t))
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(page) {
		t.Errorf("%s is not what the code does: run go test ./caddymodule -run TestToolsPage -update, and read the difference", file)
	}
	for _, margin := range margins(t) {
		if !strings.Contains(want, margin) {
			t.Errorf("%s does not say that the margin falls to %s", file, margin)
		}
	}
}

// blockedTable says where the note stands and what an answer ends with, when one of two
// calls is blocked and when the only one is.
func blockedTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| answer | the note stands in | one of two calls is blocked | the only call is blocked |\n|---|---|---|---|\n")
	for _, api := range callingAPIs {
		one, place := endOf(t, api, wipe, weather)
		only, alone := endOf(t, api, wipe)
		if place != alone {
			t.Errorf("%s: the note stands in %s or in %s", api.name, place, alone)
		}
		fmt.Fprintf(&b, "| %s | %s | `%s` | `%s` |\n", api.name, place, one, only)
	}
	return b.String()
}

// endOf returns what an edited answer ends with, and where its first note stands.
func endOf(t *testing.T, api callingAPI, calls ...askedFor) (finish, place string) {
	contentType, body := api.answer(calls...)
	got := newSite(t, `{}`, answering(contentType, body)).post(api.path, api.question).Body.String()
	values := []string{got}
	switch {
	case contentType == amazonType:
		values = nil
		payloads, _ := amazonPayloads(got)
		for _, payload := range payloads {
			values = append(values, payload.Raw)
		}
	case !gjson.Valid(got):
		values = strings.Split(got, "\n")
	}
	for _, line := range values {
		line = strings.TrimPrefix(line, "data: ")
		if at := noteIn(gjson.Parse(line)); at != nil && place == "" {
			place = "`" + strings.Join(at, ".") + "`"
			if event := gjson.Get(line, "type").Str; strings.Contains(contentType, "stream") && event != "" {
				place += " of `" + event + "`"
			}
		}
	}
	return api.finish(got), place
}

// noteIn returns the path of a note in a value.
func noteIn(v gjson.Result) (path []string) {
	switch {
	case v.Type == gjson.String && strings.Contains(v.Str, "[A tool call was blocked"):
		return []string{}
	case !v.IsObject() && !v.IsArray():
		return nil
	}
	at := 0
	v.ForEach(func(name, value gjson.Result) bool {
		if rest := noteIn(value); rest != nil {
			key := name.Str
			if v.IsArray() {
				key = strconv.Itoa(at)
			}
			path = append([]string{key}, rest...)
		}
		at++
		return path == nil
	})
	return path
}

// margins are those of a new session after each of three blocked calls, and after each of
// four that read.
func margins(t *testing.T) (all []string) {
	s := newSite(t, `{}`, answering("text/plain", ""))
	for _, call := range []string{"rm -rf /", "rm -rf /", "rm -rf /", "ls", "ls", "ls", "ls"} {
		body, err := json.Marshal(map[string]any{"session_id": "s", "tool": map[string]any{"name": "run_command", "arguments": map[string]string{"command": call}}})
		if err != nil {
			t.Fatal(err)
		}
		id := gjson.Get(s.post("/lex/tools/check", string(body)).Body.String(), "receipt_id").Str
		all = append(all, fmt.Sprintf("%.3f", s.get("/audits/" + id)["m_after"]))
	}
	return []string{strings.Join(all[:2], ", ") + " and " + all[2], all[4], all[6]}
}
