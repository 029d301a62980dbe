package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// caddy runs the binary to its end.
func caddy(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return caddyWith(t, "", args...)
}

// caddyWith is [caddy] with a variable more in the environment.
func caddyWith(t *testing.T, variable string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home)
	if variable != "" {
		cmd.Env = append(cmd.Env, variable)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestListModules(t *testing.T) {
	t.Parallel()
	out, err := caddy(t, "list-modules")
	if err != nil {
		t.Fatal(err, out)
	}
	for _, id := range []string{"lex", "http.handlers.lex", "http.handlers.lex_demo_model", "lex.stores.bolt", "lex.stores.redis", "lex.embedders.local", "lex.embedders.gemini", "lex.embedders.mistral", "lex.embedders.jina", "lex.embedders.openai", "lex.judges.local", "lex.judges.openai", "http.reverse_proxy.transport.lex", "caddy.logging.encoders.filter.lex", "events.handlers.lex_webhook"} {
		if !strings.Contains("\n"+out, "\n"+id+"\n") {
			t.Errorf("%s is not listed", id)
		}
	}
}

func TestShippedCaddyfileIsValidAndFormatted(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"validate", "--config", "../Caddyfile", "--adapter", "caddyfile"},
		{"adapt", "--config", "../Caddyfile", "--adapter", "caddyfile"},
		{"fmt", "--diff", "../Caddyfile"},
	} {
		if out, err := caddy(t, args...); err != nil {
			t.Errorf("caddy %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// A validated configuration opens nothing: the database may be in use.
func TestValidateOpensNoStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none", "lex.db")
	config := writeCaddyfile(t, ports{"1", "2", "3"}, "{\n\tlex {\n\t\tstore bolt "+path+"\n\t}\n}\n:${site} {\n\tlex\n}\n")
	if out, err := caddy(t, "validate", "--config", config, "--adapter", "caddyfile"); err != nil {
		t.Fatal(err, out)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("validate made the database: %v", err)
	}
}

func TestMistakesNameFileAndLine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"unknown option":    {":80 {\n\tlex {\n\t\tmood good\n\t}\n}\n", `Caddyfile:3`},
		"unknown value":     {":80 {\n\tlex {\n\t\tmode strict\n\t}\n}\n", `is not one of enforce, observe`},
		"repeated option":   {":80 {\n\tlex {\n\t\tmodel a\n\t\tmodel b\n\t}\n}\n", `model is given twice`},
		"surplus argument":  {":80 {\n\tlex {\n\t\tmodel a b\n\t}\n}\n", `Caddyfile:3`},
		"argument of lex":   {":80 {\n\tlex now\n}\n", `Caddyfile:2`},
		"unknown store":     {"{\n\tlex {\n\t\tstore paper\n\t}\n}\n", ` in this binary, which has bolt, redis, at `},
		"unset store":       {"{\n\tlex {\n\t\tstore {$LEX_TEST_UNSET}\n\t}\n}\n", `store needs one of bolt, redis; if {$NAME} stands there`},
		"unset webhook":     {"{\n\tevents {\n\t\ton lex_refused lex_webhook {$LEX_TEST_UNSET}\n\t}\n}\n", `lex_webhook needs an address; if {$NAME} stands there`},
		"a rate of nothing": {"{\n\tlex {\n\t\tlimits {\n\t\t\tanonymous 0/1m\n\t\t}\n\t}\n}\n", `not a rate such as 20/1m`},
		"option twice":      {"{\n\tlex\n\tlex\n}\n", `given twice`},
		"demo options":      {":80 {\n\tlex_demo_model {\n\t\tsize big\n\t}\n}\n", `Caddyfile:3`},
		"invalid policy":    {"{\n\tlex {\n\t\tpolicy {\n\t\t\ttau 0.4\n\t\t}\n\t}\n}\n:80 {\n\tlex\n}\n", `tau`},
		"loud status":       {":80 {\n\tlex {\n\t\trefuse_with status 429\n\t}\n}\n", `refuse_with status 429`},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := caddy(t, "validate", "--config", writeCaddyfile(t, ports{}, test.text), "--adapter", "caddyfile")
			if err == nil || !strings.Contains(out, test.want) {
				t.Errorf("error %v, output %s; want %q", err, out, test.want)
			}
		})
	}
}
