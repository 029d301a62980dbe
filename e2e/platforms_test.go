package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// The kernel's golden files hold the bits of long walks, and the detector's those of the
// signals of many texts. Receipts replay and prompts can be scored again everywhere only if
// every platform gives the same ones: one without fused
// multiply-adds, one that has them, 32 bits, and a machine that is no machine.
func TestKernelGivesTheSameBitsEverywhere(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("needs linux/amd64, which can run all of these")
	}
	root := goOutput(t, nil, "env", "GOROOT")
	for name, c := range map[string]struct {
		build []string
		run   []string
		exec  []string
	}{
		"amd64 without FMA": {run: []string{"GODEBUG=cpu.fma=off"}},
		"amd64 v3":          {build: []string{"GOAMD64=v3"}},
		"386":               {build: []string{"GOARCH=386", "CGO_ENABLED=0"}},
		"wasm": {
			build: []string{"GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0"},
			exec:  []string{filepath.Join(root, "lib", "wasm", "go_js_wasm_exec")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for folder, names := range map[string][]string{
				"../kernel":        {"TestLongWalkIsBitExact", "TestGoldenSteps", "TestReplayOfRecordedTurns"},
				"../kernel/detect": {"TestSignalsAreBitExact"},
			} {
				tests := filepath.Join(t.TempDir(), "kernel.test")
				goOutput(t, c.build, "test", "-c", "-o", tests, folder)
				args := append(slices.Clone(c.exec), tests, "-test.v", "-test.run=^("+strings.Join(names, "|")+")$")
				cmd := exec.Command(args[0], args[1:]...)
				cmd.Dir = folder // where testdata is
				// Node refuses a long environment; and it must be the one that npm brought.
				cmd.Env = append([]string{"PATH=" + absolute(t, "node_modules/.bin") + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, c.run...)
				out, err := cmd.CombinedOutput()
				if name == "386" && errors.Is(err, syscall.ENOEXEC) {
					t.Skip("this machine's kernel runs no 32-bit programs; they were only built (.ci/run says so too)")
				}
				if err != nil || strings.Count(string(out), "--- PASS") != len(names) {
					t.Errorf("%s: %v\n%s", folder, err, out)
				}
			}
		})
	}
}

// On arm64 and others the compiler fuses a product with the sum it meets, unless
// a conversion rounds it in between. No such instruction may be in the kernel or the detector.
func TestKernelHasNoFusedMultiplyAdd(t *testing.T) {
	t.Parallel()
	arm := []string{"GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0"}
	fused := regexp.MustCompile(`\tFN?M(ADD|SUB)[SD]\t.*`)
	for _, folder := range []string{"../kernel", "../kernel/detect"} {
		if found := fused.FindAllString(goOutput(t, arm, "build", "-gcflags=-S", folder), -1); found != nil {
			t.Errorf("%s has fused multiply-adds:\n%s", folder, strings.Join(found, "\n"))
		}
	}
	control := filepath.Join(t.TempDir(), "control.go")
	if err := os.WriteFile(control, []byte("package control\n\nfunc F(a, b, c float64) float64 { return a*b + c }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !fused.MatchString(goOutput(t, arm, "build", "-gcflags=-S", control)) {
		t.Error("a fused multiply-add is not recognised")
	}
}

// goOutput runs the go command with more environment and returns what it printed.
func goOutput(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
