package onnx_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/caddy-lex/lex"
	"github.com/caddy-lex/lex/guards/onnx"
	"github.com/caddy-lex/lex/model"
)

var update = flag.Bool("update", false, "rewrite golden files")

// The test's model knows four words: "zonk" means an attack, "fine" the contrary, and the
// others little.
var (
	words   = []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "fine", "zonk", "the", "please"}
	vectors = [][2]float32{{9, 9}, {0.5, 0.25}, {0, 0}, {0, 0}, {8, -1}, {-1, 9}, {0.25, 0}, {0.5, 0}}
	weights = [2][2]float32{{1, -0.5}, {-0.25, 1.5}}
	bias    = [2]float32{0.5, -0.125}
)

// expected is the probability of an attack in some words, by hand.
func expected(ids ...int) float64 {
	ids = append([]int{2}, append(ids, 3)...) // [CLS] and [SEP]
	var x, y float64
	for _, id := range ids {
		x, y = x+float64(vectors[id][0]), y+float64(vectors[id][1])
	}
	x, y = x/float64(len(ids)), y/float64(len(ids))
	benign := x*float64(weights[0][0]) + y*float64(weights[1][0]) + float64(bias[0])
	attack := x*float64(weights[0][1]) + y*float64(weights[1][1]) + float64(bias[1])
	return 1 / (1 + math.Exp(benign-attack))
}

const settingsFile = `{"model_type":"bert","max_position_embeddings":512,"pad_token_id":0,"id2label":{"0":"BENIGN","1":"MALICIOUS"}}`

// tokenizerFile has whole words, in lower case.
func tokenizerFile(t testing.TB) []byte {
	t.Helper()
	vocabulary := make(map[string]int)
	for i, w := range words {
		vocabulary[w] = i
	}
	special := func(id int) map[string]any {
		return map[string]any{"id": id, "content": words[id], "special": true}
	}
	document, err := json.Marshal(map[string]any{
		"added_tokens":   []any{special(0), special(1), special(2), special(3)},
		"normalizer":     map[string]any{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "lowercase": true},
		"pre_tokenizer":  map[string]any{"type": "WhitespaceSplit"},
		"post_processor": map[string]any{"type": "BertProcessing", "cls": []any{"[CLS]", 2}, "sep": []any{"[SEP]", 3}},
		"model":          map[string]any{"type": "WordLevel", "unk_token": "[UNK]", "vocab": vocabulary},
	})
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// folder writes a model and returns its folder. Files in change have other contents, or are
// missing where that is nil.
func folder(t testing.TB, change map[string][]byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny-guard")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{
		"model.onnx": meanClassifier(vectors, weights, bias).bytes(), "tokenizer.json": tokenizerFile(t), "config.json": []byte(settingsFile),
	}
	for name, content := range change {
		files[name] = content
	}
	for name, content := range files {
		if content != nil {
			write(t, filepath.Join(dir, name), content)
		}
	}
	return dir
}

// provision provisions a guard and cleans it up with the test.
func provision(t testing.TB, g *onnx.Guard) error {
	t.Helper()
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	t.Cleanup(cancel)
	err := g.Provision(ctx)
	t.Cleanup(func() { _ = g.Cleanup() })
	return err
}

func guardOf(t testing.TB, dir string) model.Guard {
	t.Helper()
	g := &onnx.Guard{Dir: dir}
	g.Timeout = caddy.Duration(time.Minute) // a slow machine is no fault
	if err := provision(t, g); err != nil {
		t.Fatal(err)
	}
	return *g.Guard().Model.(*model.Guard)
}

func asked(t testing.TB, g *model.Guard, role model.Role, text string) model.Verdict {
	t.Helper()
	v, err := g.Ask(t.Context(), "caller", model.GuardText{Role: role, Text: text})
	if err != nil {
		t.Fatalf("%.60q: %v", text, err)
	}
	return v
}

// The probabilities are those that a person computes.
func TestProbabilitiesAreThoseOfTheModel(t *testing.T) {
	g := guardOf(t, folder(t, nil))
	for text, ids := range map[string][]int{
		"zonk":                 {5},
		"fine":                 {4},
		"Please ZONK the fine": {7, 5, 6, 4},
		"nothing that it knows, but many words: " + strings.Repeat("so ", 25): append(make([]int, 0), ones(32)...),
		"[SEP] zonk [CLS]":            {1, 5, 1}, // special tokens of texts are unknown words
		"zonk\x00\u200d \xff\xfezonk": {5, 1},
		strings.Repeat("zonk ", 100):  fives(100), // the next length of the graph
	} {
		v := asked(t, &g, model.RolePrompt, text)
		if want := expected(ids...); len(v) != 1 || math.Abs(v[model.Identity]-want) > 1e-6 {
			t.Errorf("%.40q: %v, want %v", text, v, want)
		}
		if v := asked(t, &g, model.RoleToolResult, text); len(v) != 1 || math.Abs(v[model.Injection]-expected(ids...)) > 1e-6 {
			t.Errorf("%.40q in a result of a tool: %v", text, v)
		}
	}
}

func ones(n int) []int  { return repeated(1, n) }
func fives(n int) []int { return repeated(5, n) }

func repeated(id, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = id
	}
	return out
}

// What is hostile has a verdict or an error of its own kind, and never breaks anything.
func TestHostileTexts(t *testing.T) {
	g := guardOf(t, folder(t, nil))
	if v := asked(t, &g, model.RolePrompt, " \n\t"); len(v) != 0 {
		t.Errorf("a blank text: %v", v)
	}
	for _, text := range []string{"\xff", "\x00", strings.Repeat("[SEP]", 200), strings.Repeat("\u0301", 500), strings.Repeat("zonk ", 100_000), strings.Repeat("\U0010ffff", 5000)} {
		asked(t, &g, model.RolePrompt, text)
	}
	// An attack in the last of the pieces that are read is found, and one behind them is not.
	filler := strings.Repeat("fine ", g.Reads())
	if v := asked(t, &g, model.RolePrompt, filler[:31_000]+strings.Repeat("zonk ", 240)); v[model.Identity] < 0.5 {
		t.Errorf("an attack at the end: %v", v)
	}
	if v := asked(t, &g, model.RolePrompt, filler[:g.Reads()]+strings.Repeat("zonk ", 40)); v[model.Identity] > 0.5 {
		t.Errorf("an attack behind what is read: %v", v)
	}
}

// A text whose pieces have too many tokens is read in smaller ones; one with a token for
// each byte is no verdict where the model reads less than that.
func TestPiecesWithTooManyTokens(t *testing.T) {
	text := strings.Repeat("a ", 590) + "zonk"
	whole := guardOf(t, folder(t, nil))
	if v := asked(t, &whole, model.RolePrompt, text); len(v) != 1 {
		t.Errorf("%v", v)
	}
	short := guardOf(t, folder(t, map[string][]byte{"config.json": []byte(strings.Replace(settingsFile, "512", "48", 1))}))
	_, err := short.Ask(t.Context(), "caller", model.GuardText{Role: model.RolePrompt, Text: text})
	if model.Why(err) != model.Rejected {
		t.Errorf("%v", err)
	}
}

// A graph that was exported for one length is given texts of that length.
func TestGraphOfOneLength(t *testing.T) {
	graph := meanClassifier(vectors, weights, bias)
	graph.length = 40
	g := guardOf(t, folder(t, map[string][]byte{"model.onnx": graph.bytes()}))
	if v := asked(t, &g, model.RolePrompt, "zonk"); math.Abs(v[model.Identity]-expected(5)) > 1e-6 {
		t.Errorf("%v", v)
	}
}

func TestConcurrentCallers(t *testing.T) {
	g := guardOf(t, folder(t, nil))
	var all sync.WaitGroup
	for caller := range 16 {
		all.Go(func() {
			for n := range 20 {
				ids := fives(1 + (caller+n)%40)
				text := strings.TrimSpace(strings.Repeat("zonk ", len(ids)))
				v, err := g.Ask(t.Context(), fmt.Sprint("caller ", caller), model.GuardText{Role: model.RolePrompt, Text: text})
				if err != nil || math.Abs(v[model.Identity]-expected(ids...)) > 1e-6 {
					t.Errorf("%d times zonk: %v %v", len(ids), v, err)
				}
			}
		})
	}
	all.Wait()
}

// A folder that is no model is an error that says what is wrong.
func TestFoldersThatAreNoModel(t *testing.T) {
	good := meanClassifier(vectors, weights, bias)
	graph := func(change func(*exported)) []byte {
		g := meanClassifier(vectors, weights, bias)
		change(g)
		return g.bytes()
	}
	for name, test := range map[string]struct {
		change map[string][]byte
		want   string
	}{
		"no graph":          {map[string][]byte{"model.onnx": nil}, "model.onnx: no such file"},
		"no tokenizer":      {map[string][]byte{"tokenizer.json": nil}, "tokenizer.json: no such file"},
		"no settings":       {map[string][]byte{"config.json": nil}, "config.json: no such file"},
		"broken graph":      {map[string][]byte{"model.onnx": good.bytes()[:200]}, "model.onnx: "},
		"empty graph":       {map[string][]byte{"model.onnx": {}}, "not a whole ONNX graph"},
		"text for a graph":  {map[string][]byte{"model.onnx": []byte("version https://git-lfs.github.com/spec/v1")}, "model.onnx: "},
		"broken tokenizer":  {map[string][]byte{"tokenizer.json": []byte("{")}, "tokenizer.json: "},
		"other tokenizer":   {map[string][]byte{"tokenizer.json": []byte(`{"model":{"type":"BPE"}}`)}, `a model of the type "BPE"`},
		"broken settings":   {map[string][]byte{"config.json": []byte("[]")}, "config.json: "},
		"no labels":         {map[string][]byte{"config.json": []byte(`{}`)}, "id2label does not name"},
		"a hole in labels":  {map[string][]byte{"config.json": []byte(`{"id2label":{"0":"SAFE","2":"INJECTION"}}`)}, "id2label does not name the label 1"},
		"three labels":      {map[string][]byte{"config.json": []byte(`{"id2label":{"0":"SAFE","1":"INJECTION","2":"JAILBREAK"}}`)}, "2 outputs, and config.json 3 labels"},
		"unknown labels":    {map[string][]byte{"config.json": []byte(`{"id2label":{"0":"NEGATIVE","1":"POSITIVE"}}`)}, `the label "NEGATIVE"`},
		"numbers as labels": {map[string][]byte{"config.json": []byte(`{"id2label":{"0":"LABEL_0","1":"LABEL_1"}}`)}, `the label "LABEL_0"`},
		"no attack":         {map[string][]byte{"config.json": []byte(`{"id2label":{"0":"SAFE","1":"BENIGN"}}`)}, "no label for an attack"},
		"many at once":      {map[string][]byte{"config.json": []byte(`{"problem_type":"multi_label_classification","id2label":{"0":"SAFE","1":"INJECTION"}}`)}, "exclude each other"},
		"unknown operator": {map[string][]byte{"model.onnx": graph(func(g *exported) {
			g.outputs = []string{g.node("Hardmax", []string{"logits"})}
		})}, "Hardmax"},
		"unknown input": {map[string][]byte{"model.onnx": graph(func(g *exported) { g.inputs = append(g.inputs, "pixel_values") })}, `the input "pixel_values" is not known`},
		"no mask":       {map[string][]byte{"model.onnx": graph(func(g *exported) { g.inputs = g.inputs[:1] })}, "attention_mask"},
		"no output":     {map[string][]byte{"model.onnx": graph(func(g *exported) { g.outputs = nil })}, "model.onnx: "},
		"a weight that is not there": {map[string][]byte{"model.onnx": graph(func(g *exported) {
			g.initializers = g.initializers[1:]
		})}, "embeddings"},
		"weights elsewhere": {map[string][]byte{"model.onnx": graph(func(g *exported) {
			g.initializers[0] = message(number(1, 8), number(1, 2), number(2, float32s), word(8, "embeddings"),
				content(13, message(word(1, "location"), word(2, "/etc/passwd"))), number(14, 1))
		})}, "another file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, test.change)
			err := provision(t, &onnx.Guard{Dir: dir})
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "guard onnx "+dir+": ") {
				t.Errorf("%v", err)
			}
		})
	}
	for _, g := range []*onnx.Guard{{}, {Dir: "/nowhere/at/all"}, {Dir: folder(t, nil), Inferences: -1}} {
		if err := provision(t, g); err == nil || !strings.HasPrefix(err.Error(), "guard onnx") {
			t.Errorf("%q: %v", g.Dir, err)
		}
	}
}

// A model whose labels are numbers is known by its name.
func TestLabelsThatAreNumbers(t *testing.T) {
	dir := folder(t, map[string][]byte{"config.json": []byte(`{"id2label":{"0":"LABEL_0","1":"LABEL_1"}}`)})
	g := &onnx.Guard{Dir: dir}
	g.Model = "meta-llama/Llama-Prompt-Guard-2-86M"
	if err := provision(t, g); err != nil {
		t.Fatal(err)
	}
}

// slowFolder has a model that computes for much longer than the deadline of the test.
func slowFolder(t testing.TB) string {
	t.Helper()
	graph := meanClassifier(vectors, weights, bias)
	const wide = 400
	graph.floats("wide", make([]float32, wide*wide), wide, wide)
	product := "wide"
	for range 8 {
		product = graph.node("MatMul", []string{product, "wide"})
	}
	zero := graph.node("ReduceMean", []string{product}, integers("axes", 0, 1), integer("keepdims", 0))
	graph.outputs = []string{graph.node("Add", []string{"logits", zero})}
	return folder(t, map[string][]byte{"model.onnx": graph.bytes()})
}

// When the time is over, the caller goes on at once though the inference does not end, and
// later callers do not pile up behind: as many inferences run as may run, and no more.
func TestDeadline(t *testing.T) {
	g := &onnx.Guard{Dir: slowFolder(t), Inferences: 1}
	g.Timeout = caddy.Duration(5 * time.Millisecond)
	if err := provision(t, g); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	var all sync.WaitGroup
	for caller := range 64 {
		all.Go(func() {
			_, err := g.Guard().Model.Ask(t.Context(), fmt.Sprint(caller), model.GuardText{Role: model.RolePrompt, Text: "zonk"})
			if why := model.Why(err); why != model.Timeout && why != model.Busy && why != model.BreakerOpen {
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	if after := runtime.NumGoroutine(); after > before+16 {
		t.Errorf("%d goroutines are left, %d were there", after, before)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Guard().Model.Ask(gone, "another", model.GuardText{Role: model.RolePrompt, Text: "zonk"}); model.Why(err) != model.Cancelled && model.Why(err) != model.BreakerOpen {
		t.Errorf("a caller that left: %v", err)
	}
}

// A folder is loaded once for all configurations, and again when a file changed.
func TestReload(t *testing.T) {
	dir := folder(t, nil)
	first := &onnx.Guard{Dir: dir}
	if err := provision(t, first); err != nil {
		t.Fatal(err)
	}
	second := &onnx.Guard{Dir: dir}
	if err := provision(t, second); err != nil {
		t.Fatal(err)
	}
	if first.Guard().Model != second.Guard().Model {
		t.Error("the guard was made twice")
	}
	swapped := [2]float32{bias[0] + 1, bias[1]}
	write(t, filepath.Join(dir, "model.onnx"), meanClassifier(vectors, weights, swapped).bytes())
	third := &onnx.Guard{Dir: dir}
	if err := provision(t, third); err != nil {
		t.Fatal(err)
	}
	if third.Guard().Model == first.Guard().Model || third.Guard().Files["model.onnx"] == first.Guard().Files["model.onnx"] {
		t.Error("the file that changed was not loaded")
	}
	if err := second.Cleanup(); err != nil {
		t.Fatal(err)
	}
	v, err := first.Guard().Model.Ask(t.Context(), "caller", model.GuardText{Role: model.RolePrompt, Text: "zonk"})
	if err != nil || math.Abs(v[model.Identity]-expected(5)) > 1e-6 {
		t.Errorf("after the reload: %v %v", v, err)
	}
}

// A model that no configuration has any more takes no memory.
func TestMemoryIsGivenBack(t *testing.T) {
	dir := folder(t, map[string][]byte{"model.onnx": bert(shape{words: 20_000, width: 256, heads: 4, layers: 1}).bytes()})
	before := heap()
	for range 3 {
		g := &onnx.Guard{Dir: dir}
		ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
		if err := g.Provision(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Guard().Model.Ask(t.Context(), "caller", model.GuardText{Role: model.RolePrompt, Text: "zonk"}); err != nil {
			t.Fatal(err)
		}
		if during := heap(); during < before+20<<20 {
			t.Errorf("%d MiB while it is loaded, whose weights are 23", (during-before)>>20)
		}
		runtime.KeepAlive(g)
		if err := g.Cleanup(); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
	if after := heap(); after > before+10<<20 {
		t.Errorf("%d MiB are left", (after-before)>>20)
	}
}

const divider = "----------\n"

// Each golden file holds a Caddyfile, a line of dashes, and the JSON that it adapts to or
// the error that it ends in.
func TestAdapt(t *testing.T) {
	files, err := filepath.Glob("testdata/*.caddyfiletest")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		input, want, _ := strings.Cut(string(raw), divider)
		adapted, err := adapt(input)
		got := string(adapted) + "\n"
		if err != nil {
			got = err.Error() + "\n"
		}
		if *update {
			write(t, file, []byte(input+divider+got))
		} else if got != want {
			t.Errorf("%s: adapted to:\n%s\nwant:\n%s", file, got, want)
		}
	}
}

func adapt(input string) ([]byte, error) {
	adapter := caddyfile.Adapter{ServerType: httpcaddyfile.ServerType{}}
	out, _, err := adapter.Adapt([]byte(input), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return nil, err
	}
	var pretty bytes.Buffer
	err = json.Indent(&pretty, out, "", "\t")
	return pretty.Bytes(), err
}

// A proxy is Caddy in this process, on a socket.
type proxy struct {
	t      *testing.T
	client http.Client
}

// run runs a Caddyfile whose site is :8080 and whose model is on 127.0.0.1:11434, as the
// example's.
func run(t *testing.T, text, dir string) *proxy {
	t.Helper()
	answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Sure."},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(answers.Close)
	home, err := os.MkdirTemp("", "lex") // a short name: that of a socket has 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	socket := filepath.Join(home, "s")
	text = strings.NewReplacer(
		":8080 {", "http:// {\n\tbind unix/"+socket, "127.0.0.1:11434", answers.Listener.Addr().String(), "./prompt-guard", dir,
		"\tlex {\n\t\tguard", "\tadmin off\n\tlex {\n\t\tstore bolt "+filepath.Join(home, "lex.db")+"\n\t\tguard",
	).Replace(text)
	config, err := adapt(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = caddy.Stop() })
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	p := &proxy{t: t, client: http.Client{Transport: &http.Transport{DialContext: dial}}}
	t.Cleanup(p.client.CloseIdleConnections)
	return p
}

// call makes a call and reads its answer.
func (p *proxy) call(method, path, body string) (answer map[string]any, whole string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, "http://proxy"+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := p.client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, json.Unmarshal(raw, &answer)); err != nil {
		p.t.Fatalf("%s %s: %v: %s", method, path, err, raw)
	}
	return answer, string(raw)
}

var example = regexp.MustCompile(`(?m)^curl -s localhost:8080(/\S+) -d '([^']*)'$`)

// The example runs as its folder says, with a model in the folder that it names: what the
// model finds is refused, the receipt has its score and is valid, and its setup names the
// files of the model by their hashes.
func TestExample(t *testing.T) {
	text, err := os.ReadFile("../../examples/onnx-guard/Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../examples/onnx-guard/README.md")
	if err != nil {
		t.Fatal(err)
	}
	// The example's prompt is what the model takes for an attack.
	calls := example.FindAllSubmatch(readme, -1)
	if len(calls) != 1 {
		t.Fatalf("%d calls", len(calls))
	}
	dir := folder(t, map[string][]byte{
		"model.onnx":     meanClassifier(vectors, weights, [2]float32{0.5, 4}).bytes(),
		"tokenizer.json": bytes.Replace(tokenizerFile(t), []byte(`"zonk"`), []byte(`"disregard"`), 1),
	})
	p := run(t, string(text), dir)
	for _, test := range []struct {
		path, body string
		refused    bool
	}{
		{string(calls[0][1]), string(calls[0][2]), true},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"please the fine fine"}]}`, false},
	} {
		_, answer := p.call(http.MethodPost, test.path, test.body)
		if strings.Contains(answer, "Sure.") == test.refused {
			t.Errorf("%s: %s", test.body, answer)
		}
		listed, _ := p.call(http.MethodGet, "/audits/recent", "")
		id := listed["receipts"].([]any)[0].(map[string]any)["id"].(string)
		receipt, whole := p.call(http.MethodGet, "/audits/"+id, "")
		if receipt["refused"] != test.refused {
			t.Errorf("refused %v: %s", receipt["refused"], whole)
		}
		run := coverage(receipt, "guard_onnx.prompt")
		if score, _ := run["score"].(float64); (score > 0.5) != test.refused || run["outcome"] != map[bool]string{true: "flagged", false: "clean"}[test.refused] {
			t.Errorf("%v", run)
		}
		if report, said := p.call(http.MethodPost, "/audits/verify", `{"receipt_id":"`+id+`"}`); report["valid"] != true {
			t.Errorf("%s", said)
		}
		_, setup := p.call(http.MethodGet, "/lex/setups/"+receipt["setup"].(string), "")
		for _, name := range []string{"model.onnx", "tokenizer.json", "config.json"} {
			content, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(content)
			if !strings.Contains(setup, `"`+name+`":"`+hex.EncodeToString(sum[:])+`"`) {
				t.Errorf("%s: %s", name, setup)
			}
		}
	}
	health, whole := p.call(http.MethodGet, "/lex/health", "")
	if health["components"].(map[string]any)["guard_onnx"] != "ok" {
		t.Errorf("%s", whole)
	}
}

// coverage returns the entry of a detector.
func coverage(receipt map[string]any, name string) map[string]any {
	for _, d := range receipt["coverage"].(map[string]any)["detectors"].([]any) {
		if run := d.(map[string]any); run["name"] == name {
			return run
		}
	}
	return nil
}
