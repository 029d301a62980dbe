package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/caddy-lex/lex/store/storetest"
)

// demoSite stands in for the servers that the examples name.
const demoSite = `
:${demo} {
	bind 127.0.0.1
	uri strip_prefix /openai
	lex_demo_model
}
`

// Every example runs as its folder says: each call of its README gets the answer that
// expect.txt has for it, one behind a blank line after the other. Only its ports are
// changed, and the demo model stands in for the servers it names.
func TestExamples(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("../examples/*/README.md")
	if err != nil || len(folders) < 10 {
		t.Fatalf("%d examples, %v", len(folders), err)
	}
	index := read(t, "../examples/README.md")
	for _, file := range folders {
		name := filepath.Base(filepath.Dir(file))
		if !strings.Contains(index, "["+name+"]("+name+")") {
			t.Errorf("examples/README.md does not list %s", name)
		}
		switch name {
		case "verify": // a program, which has tests of its own
			continue
		case "onnx-guard": // needs another binary: the tests of guards/onnx run it
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runExample(t, filepath.Dir(file))
		})
	}
}

var (
	example = regexp.MustCompile(`(?m)^curl -s localhost:8080(/v1\S*|/api\S*|/model\S*)((?: -H '[^']*')*) -d '([^']*)'$`)
	header  = regexp.MustCompile(`-H '([^:]*): ([^']*)'`)
	servers = regexp.MustCompile(`https://api\.\w+\.com|https://generativelanguage\.googleapis\.com|https://bedrock-runtime\.[\w-]+\.amazonaws\.com|127\.0\.0\.1:1143[45]`)
)

func runExample(t *testing.T, dir string) {
	t.Helper()
	readme := read(t, filepath.Join(dir, "README.md"))
	calls := example.FindAllStringSubmatch(readme, -1)
	expected := strings.Split(strings.TrimSpace(read(t, filepath.Join(dir, "expect.txt"))), "\n\n")
	if len(calls) == 0 || len(calls) != len(expected) {
		t.Fatalf("the README has %d calls to try, and expect.txt answers to %d", len(calls), len(expected))
	}
	p := freePorts(t)
	text := strings.NewReplacer(":8080 ", ":"+p.site+" ", ":8080\n", ":"+p.site+"\n", ":8090 ", ":"+p.admin+" ", ":2020 ", ":"+reserve(t)+" ").Replace(caddyfileOf(t, dir))
	text = servers.ReplaceAllString(text, "127.0.0.1:"+p.demo)
	if !strings.Contains(text, "admin off") {
		text = withAdmin(text)
	}
	env := []string{"LEX_UPSTREAM=127.0.0.1:" + p.demo, "HOOK_URL=http://127.0.0.1:9/refused"}
	if strings.Contains(text, "LEX_REDIS_URL") {
		env = append(env, "LEX_REDIS_URL="+storetest.StartRedis(t))
	}
	s := start(t, writeCaddyfile(t, p, text+demoSite), "", p, env...)
	for i, call := range calls {
		checkExample(t, s, call, strings.Split(expected[i], "\n"))
	}
	checkFilters(t, s, readme)
	checkReport(t, s, readme)
}

// checkReport runs the report of a README, which finds the attack that was tried.
func checkReport(t *testing.T, s *server, readme string) {
	t.Helper()
	for line := range strings.Lines(readme) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "caddy lex report --url http://localhost:8080 ")
		if !ok {
			continue
		}
		out, errs, err := s.lex(t, append([]string{"report", "--url", s.URL}, strings.Fields(command)...)...)
		if err != nil || !regexp.MustCompile(`(?m)^semantic_classifier +0 +1 \+ 0$`).MatchString(out) {
			t.Errorf("%s: %v %s\n%s", line, err, errs, out)
		}
	}
}

// checkExample tries a call of a README. The answer has the status on the first line, and
// contains the others.
func checkExample(t *testing.T, s *server, call, expected []string) {
	t.Helper()
	var headers []string
	for _, h := range header.FindAllStringSubmatch(call[2], -1) {
		headers = append(headers, h[1], h[2])
	}
	resp := s.do(t, http.MethodPost, call[1], call[3], headers...)
	if strconv.Itoa(resp.Status) != expected[0] {
		t.Errorf("status %d, want %s", resp.Status, expected[0])
	}
	for _, want := range expected[1:] {
		if !strings.Contains(resp.Body, want) {
			t.Errorf("no %q in %s", want, resp.Body)
		}
	}
}

// caddyfileOf returns the configuration of an example: its Caddyfile, or the one in
// its Kubernetes manifest. What other files of its scenario need must be there.
func caddyfileOf(t *testing.T, dir string) string {
	t.Helper()
	if compose, err := os.ReadFile(filepath.Join(dir, "compose.yaml")); err == nil {
		var c struct {
			Services map[string]struct {
				Build   struct{ Context, Dockerfile string }
				Volumes []string
			}
		}
		if err := yaml.Unmarshal(compose, &c); err != nil {
			t.Fatal(err)
		}
		lex := c.Services["lex"]
		read(t, filepath.Join(dir, lex.Build.Context, lex.Build.Dockerfile))
		for _, v := range lex.Volumes {
			if file, _, _ := strings.Cut(v, ":"); strings.HasPrefix(file, ".") { // else it is the name of a volume
				read(t, filepath.Join(dir, file))
			}
		}
	}
	manifest, err := os.Open(filepath.Join(dir, "pod.yaml"))
	if err != nil {
		return read(t, filepath.Join(dir, "Caddyfile"))
	}
	defer manifest.Close()
	var config struct{ Data map[string]string }
	if err := yaml.NewDecoder(manifest).Decode(&config); err != nil { // its first document
		t.Fatal(err)
	}
	return config.Data["Caddyfile"]
}

var (
	filteredBy = regexp.MustCompile(`select\(\.(\w+)\)`)
	projection = regexp.MustCompile(`jq '\{([\w, ]+)\}'`)
)

// checkFilters checks that the receipts of an example have the members that its
// README reads with jq: the listed ones those of select, the whole ones those of a
// projection.
func checkFilters(t *testing.T, s *server, readme string) {
	t.Helper()
	var listed, whole []string
	for _, m := range filteredBy.FindAllStringSubmatch(readme, -1) {
		listed = append(listed, m[1])
	}
	for _, m := range projection.FindAllStringSubmatch(readme, -1) {
		whole = append(whole, strings.Split(m[1], ", ")...)
	}
	if strings.Contains(readme, "| jq") && (len(listed) == 0 || len(whole) == 0) {
		t.Errorf("a jq filter that is not checked: %s", readme)
	}
	item := s.do(t, http.MethodGet, "/audits/recent", "").object(t)["receipts"].([]any)[0].(map[string]any)
	for _, member := range listed {
		if item[member] != true {
			t.Errorf("%s of the listed receipt is %v", member, item[member])
		}
	}
	receipt := s.do(t, http.MethodGet, "/audits/"+item["id"].(string), "").object(t)
	for _, member := range whole {
		if _, ok := receipt[member]; !ok {
			t.Errorf("receipts have no %s", member)
		}
	}
}

// withAdmin moves the admin endpoint to a free port.
func withAdmin(text string) string {
	if at := strings.Index(text, "{\n"); at >= 0 && !strings.Contains(text[:at], ":") {
		return text[:at+2] + "\tadmin 127.0.0.1:${admin}\n" + text[at+2:]
	}
	return "{\n\tadmin 127.0.0.1:${admin}\n}\n" + text
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
