package caddymodule_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An agent may read a file, as a tool's result or as a document, and the model gets it
// unchanged. With an attack in it the model is not asked.
func TestFilesThatToolsReturn(t *testing.T) {
	names, err := filepath.Glob("../govern/testdata/ordinary/*")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			text   string
			passes bool
		}{{string(file), true}, {string(file[:len(file)/2]) + "\n" + attack + "\n" + string(file[len(file)/2:]), false}} {
			quoted, err := json.Marshal(test.text)
			if err != nil {
				t.Fatal(err)
			}
			for _, messages := range []string{
				`{"role":"user","content":"Look it up."},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":TEXT}]}`,
				`{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":TEXT}},{"type":"text","text":"Sum up."}]}`,
			} {
				s, seen := claudeListening(t, `{}`)
				w := s.post("/v1/messages", `{"model":"m","max_tokens":9,"messages":[`+strings.Replace(messages, "TEXT", string(quoted), 1)+`]}`)
				if passed := seen.count.Load() == 1; passed != test.passes || passed == (readClaude(t, w, false).StopReason == "refusal") {
					t.Errorf("%s: %d %s", name, w.Code, w.Body)
				}
			}
		}
	}
}
