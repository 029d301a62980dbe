//go:build codingagents

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// codingAgents are what developers run in a terminal, each with an API of its own: how to ask
// one through Lex, in a folder of its own that is its home, too. {origin} is Lex.
var codingAgents = map[string]struct {
	env   []string
	files map[string]string
	args  []string // behind which the prompt stands
}{
	"claude": {
		env:  []string{"ANTHROPIC_BASE_URL={origin}", "ANTHROPIC_API_KEY=e2e-not-a-real-key", "DISABLE_AUTOUPDATER=1"},
		args: []string{"-p"},
	},
	"codex": {
		env: []string{"CODEX_HOME={home}", "OPENAI_API_KEY=e2e-not-a-real-key"},
		files: map[string]string{"config.toml": `model = "gpt-5.1-codex"
model_provider = "lex"
sandbox_mode = "danger-full-access"
[model_providers.lex]
name = "Lex"
base_url = "{origin}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
`},
		args: []string{"exec", "--skip-git-repo-check"},
	},
	"gemini": {
		env:   []string{"GOOGLE_GEMINI_BASE_URL={origin}", "GEMINI_API_KEY=e2e-not-a-real-key"},
		files: map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false}}`},
		args:  []string{"--skip-trust", "-m", "gemini-2.5-pro", "-y", "-p"},
	},
	"qwen": {
		env:  []string{"OPENAI_BASE_URL={origin}/v1", "OPENAI_API_KEY=e2e-not-a-real-key", "OPENAI_MODEL=qwen3-coder"},
		args: []string{"--auth-type", "openai", "-y", "-p"},
	},
	"opencode": {
		env: []string{"OPENCODE_CONFIG={home}/lex.json"},
		files: map[string]string{"lex.json": `{"autoupdate":false,"provider":{"lex":{"npm":"@ai-sdk/openai-compatible","name":"Lex",` +
			`"options":{"baseURL":"{origin}/v1","apiKey":"e2e-not-a-real-key"},"models":{"m":{"name":"m"}}}},"model":"lex/m","small_model":"lex/m"}`},
		args: []string{"run"},
	},
}

// With only the address changed, coding agents work: their own instructions, tools and notes are
// no attack, what the user says is read, and a refusal is shown.
func TestCodingAgents(t *testing.T) {
	const agentsMD = "# Rules\nThese instructions come first. You MUST run the tests before every commit and NEVER push to main.\n"
	u := newUpstream(t)
	p := freePorts(t)
	s := start(t, writeCaddyfile(t, p, fmt.Sprintf("{\n\tadmin off\n}\n:${site} {\n\tlex\n\treverse_proxy %s\n}\n", u.address)), "", p)
	for name, agent := range codingAgents {
		t.Run(name, func(t *testing.T) {
			program, err := filepath.Abs(filepath.Join("codingagents", "node_modules", ".bin", name))
			if err != nil {
				t.Fatal(err)
			}
			home := t.TempDir()
			fill := strings.NewReplacer("{origin}", s.URL, "{home}", home).Replace
			work := filepath.Join(home, "work")
			for file, text := range agent.files {
				write(t, filepath.Join(home, file), fill(text))
			}
			for _, file := range []string{"CLAUDE.md", "AGENTS.md", "GEMINI.md", "QWEN.md"} {
				write(t, filepath.Join(work, file), agentsMD)
			}
			ask := func(prompt string) string {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, program, append(agent.args[:len(agent.args):len(agent.args)], prompt)...)
				cmd.Dir, cmd.WaitDelay = work, time.Second
				cmd.Env = append(os.Environ(), "HOME="+home, "NO_COLOR=1")
				for _, v := range agent.env {
					cmd.Env = append(cmd.Env, fill(v))
				}
				out, err := cmd.CombinedOutput()
				t.Logf("%s: %v: %s", prompt, err, out)
				return string(out)
			}
			if out := ask("What is the capital of France?"); !strings.Contains(out, "the city of Paris") {
				t.Errorf("an ordinary question was not answered")
			}
			if out := ask(attack); !strings.Contains(out, refusalText) {
				t.Errorf("an attack was not refused, or nothing was shown")
			}
		})
	}
	for _, arrived := range u.of("") {
		if strings.Contains(arrived.body, attack) {
			t.Errorf("the attack reached the model: %s", around(arrived.body, attack))
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
