// Command xcaddyargs turns a build manifest, in the JSON shape of xcaddy's
// Builder, into the arguments of `xcaddy build`: xcaddy itself reads no file.
//
//	xcaddy build $(xcaddyargs xcaddy.json)
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
)

// manifest holds the members of xcaddy's Builder that our manifest uses.
type manifest struct {
	CaddyVersion string `json:"caddy_version"`
	Plugins      []struct {
		ModulePath string `json:"module_path"`
		Version    string `json:"version"`
	} `json:"plugins"`
	Replacements []struct {
		Old string `json:"old"`
		New string `json:"new"`
	} `json:"replacements"`
}

func main() {
	args, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "xcaddyargs:", err)
		os.Exit(1)
	}
	fmt.Println(strings.Join(args, " "))
}

func run(files []string) ([]string, error) {
	if len(files) != 1 {
		return nil, fmt.Errorf("give one manifest, not %d", len(files))
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	var m manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("decoding the manifest: %w", err)
	}
	return m.args(), nil
}

// args pins every plugin's version: without one xcaddy looks up the list of
// published versions, which an unpublished tree does not have.
func (m manifest) args() []string {
	replaced := make(map[string]string)
	for _, r := range m.Replacements {
		replaced[r.Old] = "=" + r.New
	}
	args := []string{m.CaddyVersion}
	for _, p := range m.Plugins {
		args = append(args, "--with", p.ModulePath+"@"+p.Version+replaced[p.ModulePath])
	}
	return args
}
