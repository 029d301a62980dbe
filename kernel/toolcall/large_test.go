package toolcall_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddy-lex/lex/kernel/toolcall"
)

// largeSize is how many bytes of arguments a large call has.
const largeSize = 64 << 10 / largeShare

// files returns the beginning of the files that a pattern names, one behind the other.
func files(pattern string) string {
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		panic(fmt.Sprintf("%s: %v", pattern, err))
	}
	var all strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			panic(err)
		}
		all.Write(text)
	}
	return strings.ToValidUTF8(all.String()[:min(largeSize, all.Len())], "")
}

// pythonProgram has functions that differ.
func pythonProgram() string {
	return "import json, logging, pathlib\nfrom dataclasses import dataclass\n\nlog = logging.getLogger(__name__)\n\n" + numbered(largeSize, `@dataclass
class Report%[1]d:
    """Reads the figures of week %[1]d and writes a summary."""
    name: str = "week-%[1]d"
    rows: list = None

    def rows_of(self, folder: str) -> list:
        path = pathlib.Path(folder) / f"{self.name}.json"
        with open(path) as f:
            self.rows = [r for r in json.load(f) if r["amount"] > %[1]d and r["kind"] != 'draft']
        log.info("read %%d rows of %%s", len(self.rows), path)
        return self.rows

    def total(self) -> float:
        return sum(float(r["amount"]) for r in self.rows)  # in euros


`)
}

// base64Image is an image as an address that holds data.
func base64Image() string {
	raw := make([]byte, largeSize*3/4)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range raw {
		raw[i] = byte(random.Uint32())
	}
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(raw)
}

// ordinaryTexts are texts of 64 KB of the kinds that agents handle most.
var ordinaryTexts = map[string]func() string{
	"go":     func() string { return files("../../govern/*.go") },
	"python": pythonProgram,
	"markdown": func() string {
		return numbered(largeSize, "## Step %[1]d\n\nRun `make build-%[1]d`, then look at [the log](https://docs.example.com/logs/%[1]d) and the table:\n\n| name | value |\n|---|---|\n| `size_%[1]d` | **%[1]d** bytes |\n\n- It isn't slow; see *step %[1]d*.\n\n")
	},
	"page": func() string {
		return "<!doctype html>\n<html><body>\n" + numbered(largeSize, "<div class=\"card c%[1]d\"><a href=\"https://www.example.com/items/%[1]d?ref=list\"><img src=\"/img/%[1]d.png\" alt='Item %[1]d'></a><p>It's the best of %[1]d &amp; more.</p></div>\n")
	},
	"minified": func() string {
		return numbered(largeSize, `function a%[1]d(e,t){var n=e.children[%[1]d]||{},r="item-"+n.id+'-%[1]d';return n.done?(t.push({id:r,at:Date.now()}),fetch("/api/items/"+r).then(function(e){return e.json()})):t.filter(function(e){return e!==r&&!e.hidden})}`)
	},
	"csv": func() string {
		return "id,name,email,city,amount,note\n" + numbered(largeSize, "%[1]d,\"Miller, Ann %[1]d\",ann%[1]d@example.com,Zurich,%[1]d.50,\"paid, thanks\"\n")
	},
	"json": func() string {
		return "[" + numbered(largeSize, `{"id": %[1]d, "name": "Item %[1]d", "tags": ["a", "b"], "done": false, "url": "https://example.com/items/%[1]d?b=c", "note": "It's \"fine\", %[1]d pieces"},`+"\n") + "{}]"
	},
	"image": base64Image,
	"yaml": func() string {
		return numbered(largeSize, "- name: service-%[1]d\n  image: \"registry.example.com/app:%[1]d\"\n  command: [\"serve\", \"--port=80%[1]d\"]\n  env:\n    LEVEL: info\n    LIMIT: '%[1]d'\n  # restarts by itself\n  ports: [80%[1]d]\n")
	},
	"log": func() string {
		return numbered(largeSize, "2026-03-04T10:11:12.%[1]dZ INFO [worker-%[1]d] GET /api/items/%[1]d?page=2 200 in 12ms (user=ann, id=\"a-%[1]d\")\n")
	},
	"diff": func() string {
		return numbered(largeSize, "diff --git a/src/item%[1]d.go b/src/item%[1]d.go\n--- a/src/item%[1]d.go\n+++ b/src/item%[1]d.go\n@@ -1,3 +1,3 @@ func item%[1]d() {\n \tx := %[1]d\n-\treturn load(x, \"old\")\n+\treturn load(x, 'n') // new\n }\n")
	},
	"sqldump": func() string {
		return numbered(largeSize, "CREATE TABLE `t%[1]d` (`id` int NOT NULL, `name` varchar(20) DEFAULT 'none', PRIMARY KEY (`id`));\nINSERT INTO `t%[1]d` VALUES (1,'Ann'),(2,'Bob''s'),(3,NULL);\n")
	},
	"script": func() string {
		return "#!/bin/bash\nset -euo pipefail\n" + numbered(largeSize, "echo \"step %[1]d\"\n"+strings.ReplaceAll(buildScript, "%", "%%"))
	},
	"sql": func() string {
		return numbered(largeSize, "INSERT INTO orders (id, name, note, price) VALUES (%[1]d, 'Item %[1]d', 'it''s \"new\"; see the list', %[1]d.99);\n")
	},
	"prose": func() string {
		return numbered(largeSize, "Dear Ann, this is paragraph %[1]d of the report. We have spoken with all the people whom you named; they agree, more or less, with what was written in the last one (see page %[1]d). Please update the list, and do not forget the room on the 2nd floor. It isn't large!\n\n")
	},
	"german": func() string {
		return numbered(largeSize, "Absatz %[1]d: Für die Prüfung der Zähler müssen alle Gebäude geöffnet sein, sonst können die Geräte nicht überprüft werden. Bitte schicken Sie die Liste „Schlüssel“ an das Büro – spätestens übermorgen.\n")
	},
	"chinese": func() string {
		return numbered(largeSize, "第%[1]d段：请把上个月的报告发送给负责人，并且更新客户名单。会议室在二楼，时间没有变化。\n")
	},
}

// carriers are the arguments in which agents hand such texts to tools.
var carriers = map[string]func(text string) toolcall.Call{
	"written": func(text string) toolcall.Call { return with("write_file", "content", text) },
	"sent": func(text string) toolcall.Call {
		return members("send_email", "to", "ann@example.com", "body", text)
	},
	"unnamed": func(text string) toolcall.Call { return with("deploy", "thing", text) },
}

// members is a call of string members: names and values in turn.
func members(tool string, pairs ...string) toolcall.Call {
	object := make(map[string]string)
	for i := 0; i < len(pairs); i += 2 {
		object[pairs[i]] = pairs[i+1]
	}
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return toolcall.Call{Name: tool, Arguments: raw}
}

// nodes nests objects in objects.
func nodes(depth int, n *int) any {
	if *n++; depth == 0 {
		return fmt.Sprintf("value %d of the tree", *n)
	}
	return map[string]any{"name": fmt.Sprintf("node %d", *n), "size": *n, "left": nodes(depth-1, n), "right": nodes(depth-1, n)}
}

// largeCalls are ordinary calls of 64 KB of arguments.
func largeCalls() map[string]toolcall.Call {
	out := map[string]toolcall.Call{
		"run/script":     with("bash", "command", ordinaryTexts["script"]()),
		"run/heredoc":    with("bash", "command", "cat > report.py <<'END'\n"+ordinaryTexts["python"]()+"END\npython3 report.py"),
		"run/write_json": with("bash", "command", "cat > rows.json <<'END'\n"+ordinaryTexts["json"]()+"\nEND\n"),
		"run_sql/sql":    with("run_sql", "sql", ordinaryTexts["sql"]()),
		"python/python":  with("python", "code", ordinaryTexts["python"]()),
		"node/minified":  with("run_javascript", "code", ordinaryTexts["minified"]()),
		"apply_patch":    with("apply_patch", "input", "*** Begin Patch\n*** Update File: govern/turn.go\n@@\n+"+strings.ReplaceAll(ordinaryTexts["go"](), "\n", "\n+")),
		"edit_file":      members("edit_file", "path", "govern/turn.go", "old_string", ordinaryTexts["go"]()[:largeSize/2], "new_string", ordinaryTexts["go"]()[largeSize/2:]),
		"windows":        with("powershell", "command", numbered(largeSize, "Get-ChildItem .\\src%[1]d -Recurse | Where-Object { $_.Length -gt %[1]d } | Select-Object Name | Export-Csv \"out-%[1]d.csv\"\n")),
		"paths":          call("read_files", `{"paths":[`+numbered(largeSize, `"src/module%[1]d/file_%[1]d.go",`)+`"go.mod"]}`),
		"addresses":      call("fetch", `{"urls":[`+numbered(largeSize, `"https://host%[1]d.example.com/a/b?c=%[1]d",`)+`"https://example.com"]}`),
		"receivers":      call("send_email", `{"subject":"News","body":"It is here.","to":[`+numbered(largeSize, `"ann%[1]d@example.com",`)+`"bob@example.com"]}`),
		"rows":           call("import_rows", `{"rows":[`+numbered(largeSize, `{"id":%[1]d,"name":"Item %[1]d","price":%[1]d.5,"tags":["a b","c"]},`)+`{}]}`),
	}
	n := 0
	raw, err := json.Marshal(map[string]any{"tree": nodes(9, &n)})
	if err != nil {
		panic(err)
	}
	out["tree"] = toolcall.Call{Name: "save_tree", Arguments: raw}
	quoted, err := json.Marshal(map[string]string{"payload": string(raw)})
	if err != nil {
		panic(err)
	}
	out["tree/quoted"] = toolcall.Call{Name: "call_api", Arguments: quoted}
	for by, carry := range carriers {
		for kind, text := range ordinaryTexts {
			out[by+"/"+kind] = carry(text())
		}
	}
	return out
}

// inConversation puts a call behind 64 KB of what tools returned, and what the user asks for.
func inConversation(c toolcall.Call) toolcall.Call {
	c.Request = "Please go through the reports and the mail of last week, write the summary for Ann (ann@example.com), save it in report.md and run the build."
	c.System = "You are the assistant of the office. You may read and write files, send mail and run commands."
	c.Context = []toolcall.Observation{
		{Tool: "read_mail", Text: ordinaryTexts["prose"]()[:largeSize/4]},
		{Tool: "read_file", Text: ordinaryTexts["json"]()[:largeSize/4]},
		{Tool: "read_file", Text: ordinaryTexts["go"]()[:largeSize/4]},
		{Tool: "fetch", Text: ordinaryTexts["page"]()[:largeSize/4]},
	}
	return c
}

// Ordinary calls are decided on their merits, whatever they carry, with two thirds of the
// budget at most; behind a conversation as large, they are read to the end.
func TestLargeOrdinaryCalls(t *testing.T) {
	t.Parallel()
	for name, c := range largeCalls() {
		if d, work := toolcall.Work(c); !d.Allowed || work > toolcall.MaxWork*2/3 {
			t.Errorf("%s: %+v after %d units of %d", name, d, work, toolcall.MaxWork)
		}
		if d, work := toolcall.Work(inConversation(c)); d.Invariant == toolcall.UnreadableCall {
			t.Errorf("%s in a conversation: %+v after %d units of %d", name, d, work, toolcall.MaxWork)
		}
	}
}

// benchmarkCall measures a call, and the slowest of all runs.
func benchmarkCall(b *testing.B, c toolcall.Call) {
	b.Helper()
	b.ReportAllocs()
	work, slowest := 0, time.Duration(0)
	for b.Loop() {
		start := time.Now()
		_, work = toolcall.Work(c)
		slowest = max(slowest, time.Since(start))
	}
	b.ReportMetric(float64(work), "units/op")
	b.ReportMetric(float64(slowest.Microseconds())/1000, "max-ms")
}

// BenchmarkLarge decides calls of 64 KB of arguments.
func BenchmarkLarge(b *testing.B) {
	for name, c := range largeCalls() {
		b.Run(name, func(b *testing.B) { benchmarkCall(b, c) })
	}
}

// BenchmarkLargeInConversation decides calls of 64 KB of arguments after 64 KB of text.
func BenchmarkLargeInConversation(b *testing.B) {
	for name, c := range largeCalls() {
		b.Run(name, func(b *testing.B) { benchmarkCall(b, inConversation(c)) })
	}
}
