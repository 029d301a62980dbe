// Package onnx is a Caddy module with which Lex asks a classifier of prompt attacks in its
// own process, without a server: lex.guards.onnx. It computes models that were exported to
// ONNX, such as Prompt Guard 2, in pure Go, with GoMLX (https://github.com/gomlx). It is a
// Go module of its own, so that only a build that names it has what it depends on.
//
// Start reading at [Guard.Provision]: files.go reads a folder, tokenizer.go makes tokens of
// a text, and classifier.go computes the probabilities of its labels.
package onnx

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-lex/lex/caddymodule"
)

func init() { caddy.RegisterModule(Guard{}) }

// Guard asks a classifier of prompt attacks in this process, such as Prompt Guard 2, PIGuard
// or a DeBERTa of Protect AI or deepset, exported to ONNX.
type Guard struct {
	caddymodule.LocalGuard

	// The folder with model.onnx, tokenizer.json and config.json.
	Dir string `json:"dir,omitempty"`

	// How many pieces of texts are computed at once. Default: GOMAXPROCS.
	Inferences int `json:"inferences,omitempty"`

	loaded *loadedKey
}

// CaddyModule returns the Caddy module information.
func (Guard) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "lex.guards.onnx",
		New: func() caddy.Module { return new(Guard) },
	}
}

// loaded holds the classifiers, so that a reload that keeps a folder and its files does not
// load them again.
var loaded = caddy.NewUsagePool()

// A loadedKey tells classifiers apart: a file that was replaced makes another one.
type loadedKey struct {
	dir                      string
	graph, tokenizer, config string
	inferences               int
}

// A loadedClassifier is a classifier in the pool.
type loadedClassifier struct{ *classifier }

// Destruct does nothing: a turn may still ask a classifier that was given back, and its
// memory is the garbage collector's.
func (loadedClassifier) Destruct() error { return nil }

// Provision loads the classifier, or takes the one that is there, and makes the guard.
func (g *Guard) Provision(ctx caddy.Context) error {
	if err := g.provision(ctx); err != nil {
		return fmt.Errorf("guard onnx %s: %w", g.Dir, err)
	}
	return nil
}

func (g *Guard) provision(ctx caddy.Context) error {
	switch {
	case g.Dir == "":
		return errors.New("give the folder with model.onnx, tokenizer.json and config.json")
	case g.Inferences < 0:
		return errors.New("inferences must be at least 1")
	case g.Inferences == 0:
		g.Inferences = runtime.GOMAXPROCS(0)
	}
	dir, err := filepath.Abs(g.Dir)
	if err != nil {
		return err
	}
	if g.Model == "" {
		g.Model = filepath.Base(dir)
	}
	hashes, err := hashFiles(dir)
	if err != nil {
		return err
	}
	key := loadedKey{dir, hashes[graphName], hashes[tokenizerName], hashes[configName], g.Inferences}
	value, _, err := loaded.LoadOrNew(key, func() (caddy.Destructor, error) {
		c, err := load(dir, hashes, g.Inferences)
		return loadedClassifier{c}, err
	})
	if err != nil {
		return err
	}
	g.loaded = &key
	c, ok := value.(loadedClassifier)
	if !ok {
		return fmt.Errorf("the pool of classifiers holds a %T", value)
	}
	return g.ProvisionGuard(ctx, "onnx", caddymodule.LocalModel{Classifier: c, Files: hashes, Inferences: g.Inferences})
}

// Cleanup lets go of the guard and of the classifier.
func (g *Guard) Cleanup() error {
	if g.loaded != nil {
		_, _ = loaded.Delete(*g.loaded) // Destruct does not fail
	}
	return g.LocalGuard.Cleanup()
}

// UnmarshalCaddyfile sets up the guard from Caddyfile tokens. Syntax:
//
//	onnx <dir> [<name>] {
//	    model      <name>
//	    inferences <count>
//	    timeout    <duration>
//	    asks       prompt|tool_result...
//	    ask        when <low> <high>|always|observe
//	    fail       local|refuse
//	    budget     <share>%
//	    calibration <slope> <intercept>
//	}
func (g *Guard) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	if !d.NextArg() {
		return d.Err("guard onnx needs a folder; if {$NAME} stands there, that environment variable is not set")
	}
	g.Dir = d.Val()
	return g.UnmarshalGuard(d, map[string]func(*caddyfile.Dispenser) error{"inferences": g.parseInferences})
}

func (g *Guard) parseInferences(d *caddyfile.Dispenser) (err error) {
	args := d.RemainingArgs()
	if len(args) != 1 {
		return d.ArgErr()
	}
	if g.Inferences, err = strconv.Atoi(args[0]); err != nil || g.Inferences < 1 {
		return d.Errf("%q is not a whole number of at least 1", args[0])
	}
	return nil
}

// Interface guards
var (
	_ caddymodule.GuardModule = (*Guard)(nil)
	_ caddy.Provisioner       = (*Guard)(nil)
	_ caddy.CleanerUpper      = (*Guard)(nil)
	_ caddyfile.Unmarshaler   = (*Guard)(nil)
)
