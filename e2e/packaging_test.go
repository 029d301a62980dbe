package e2e

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// instructions returns the arguments of a Dockerfile's instructions by their names, in order.
func instructions(t *testing.T, file string) map[string][]string {
	t.Helper()
	found := make(map[string][]string)
	for line := range strings.Lines(read(t, file)) {
		if name, args, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			found[name] = append(found[name], strings.TrimSpace(args))
		}
	}
	return found
}

// The image's binary is what the Dockerfile's own command builds: static, so that it runs
// where there is no libc, and the program of its entry point and of its health check.
func TestImage(t *testing.T) {
	t.Parallel()
	d := instructions(t, "../examples/docker/Dockerfile")
	if last := d["FROM"][len(d["FROM"])-1]; !strings.HasSuffix(last, ":nonroot") || !slices.Equal(d["USER"], []string{"nonroot:nonroot"}) {
		t.Errorf("the image is %s, and runs as %v", last, d["USER"])
	}
	out := t.TempDir()
	i := slices.IndexFunc(d["RUN"], func(run string) bool { return strings.Contains(run, "go build") })
	if i < 0 {
		t.Fatalf("nothing builds the binary: %v", d["RUN"])
	}
	build := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(d["RUN"][i], "/out", out))
	build.Dir = ".."
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	program, err := elf.Open(filepath.Join(out, "caddy"))
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the binary has a %s: it is not static", p.Type)
		}
	}
	for _, name := range []string{"data", "config"} { // that the image copies
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			t.Error(err)
		}
	}

	p := freePorts(t)
	s := start(t, "../Caddyfile", "", p)
	_, check, _ := strings.Cut(d["HEALTHCHECK"][0], "CMD ")
	args := strings.Fields(strings.NewReplacer("[", "", "]", "", `"`, "", ",", "").Replace(check))
	if args[0] != "/usr/bin/caddy" || d["ENTRYPOINT"][0] != `["/usr/bin/caddy"]` {
		t.Errorf("the health check runs %s, and the entry point is %s", args[0], d["ENTRYPOINT"])
	}
	healthy := func() error {
		cmd := exec.CommandContext(t.Context(), filepath.Join(out, "caddy"), args[1:]...)
		cmd.Args[len(cmd.Args)-1] = s.URL
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		return cmd.Run()
	}
	if err := healthy(); err != nil {
		t.Errorf("a running proxy is not healthy: %v", err)
	}
	s.stop()
	if healthy() == nil {
		t.Error("a proxy that was stopped is healthy")
	}
}

var (
	gracePeriod = regexp.MustCompile(`grace_period (\S+)`)
	stopTimeout = regexp.MustCompile(`(?m)^TimeoutStopSec=(\S+)$`)
	programLine = regexp.MustCompile(`(?m)^Exec(?:Start|Reload)=(\S+) .*--config (\S+)`)
)

// Service managers wait for the grace period and the ten seconds of the last receipts.
func TestServicesWaitForTheLastReceipts(t *testing.T) {
	t.Parallel()
	var compose struct {
		Services map[string]struct {
			Wait string `yaml:"stop_grace_period"`
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "../examples/docker/compose.yaml")), &compose); err != nil {
		t.Fatal(err)
	}
	unit := read(t, "../examples/systemd/caddy-lex.service")
	for folder, waits := range map[string]string{"docker": compose.Services["lex"].Wait, "systemd": stopTimeout.FindStringSubmatch(unit)[1]} {
		grace, err := time.ParseDuration(gracePeriod.FindStringSubmatch(read(t, "../examples/"+folder+"/Caddyfile"))[1])
		if err != nil {
			t.Fatal(err)
		}
		if wait, err := time.ParseDuration(waits); err != nil || wait < grace+10*time.Second {
			t.Errorf("%s waits %s for a grace period of %s: %v", folder, waits, grace, err)
		}
	}
	readme := read(t, "../examples/systemd/README.md")
	lines := programLine.FindAllStringSubmatch(unit, -1)
	if len(lines) != 2 {
		t.Errorf("%d lines run the program", len(lines))
	}
	for _, l := range lines {
		for _, file := range l[1:] {
			if !strings.Contains(readme, file) {
				t.Errorf("the README does not install %s", file)
			}
		}
	}
}

var makeTarget = regexp.MustCompile(`(?m)^([a-z]+):`)

// The workflow's jobs run targets that the Makefile has, among them those of .ci/run, with
// no rights to write.
func TestWorkflow(t *testing.T) {
	t.Parallel()
	var workflow struct {
		Permissions map[string]string
		Jobs        map[string]struct {
			Steps []struct{ Run string }
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "../.github/workflows/ci.yml")), &workflow); err != nil {
		t.Fatal(err)
	}
	if len(workflow.Permissions) != 1 || workflow.Permissions["contents"] != "read" {
		t.Errorf("the permissions are %v", workflow.Permissions)
	}
	targets := make(map[string]bool)
	for _, m := range makeTarget.FindAllStringSubmatch(read(t, "../Makefile"), -1) {
		targets[m[1]] = true
	}
	ran := make(map[string]bool)
	for name, job := range workflow.Jobs {
		for _, step := range job.Steps {
			words := strings.Fields(step.Run)
			if len(words) < 2 || words[0] != "make" {
				continue
			}
			if ran[words[1]] = true; !targets[words[1]] {
				t.Errorf("the job %s makes %s, which there is not", name, words[1])
			}
		}
	}
	for _, target := range []string{"cover", "lint", "fuzz", "reproduce"} {
		if !ran[target] {
			t.Errorf("no job makes %s", target)
		}
	}
}
