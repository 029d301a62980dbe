package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/caddymodule"
	"github.com/caddy-lex/lex/evaluation"
	"github.com/caddy-lex/lex/kernel/detect"
)

// A decider is what "caddy lex bench --compare" compares with.
type decider interface {
	// name says what decides.
	name() string
	// refuses reports whether a prompt is refused. A reason says why there is no decision on
	// it that counts; "" if there is one.
	refuses(ctx context.Context, p prompt, degraded *degradation) (refused bool, reason string, err error)
}

// openDecider reads verdicts, if the name of the file ends in .jsonl, or a configuration,
// with the adapter that is named.
func openDecider(name, adapter string) (decider, error) {
	if strings.HasSuffix(name, ".jsonl") {
		return readVerdicts(name)
	}
	app, err := dryRunApp(name, adapter, promptOptions...)
	if err != nil {
		return nil, err
	}
	return secondApp{app}, nil
}

// compare adds a record and both decisions on it.
func (b *benchmark) compare(ctx context.Context, p prompt, kind evaluation.Kind, refused bool) error {
	other, reason, err := b.other.refuses(ctx, p, &b.degraded)
	if err != nil {
		return err
	}
	if reason != "" {
		b.leftOut[reason]++
		return nil
	}
	b.pairs = append(b.pairs, evaluation.Pair{Kind: kind, Label: p.Label, Source: p.Source, Language: p.Lang, A: refused, B: other})
	return nil
}

// A secondApp decides by another configuration.
type secondApp struct{ *caddymodule.App }

func (a secondApp) name() string { return describe(a.App) }

func (a secondApp) refuses(ctx context.Context, p prompt, degraded *degradation) (refused bool, reason string, err error) {
	d, err := decide(ctx, a.App, p, speakerOf(p.Channel))
	if degraded.leavesOut(d.failed) {
		reason = leftOutDegraded
	}
	return d.Refused, reason, err
}

// describe names the policy and the detector of a configuration.
func describe(app *caddymodule.App) string {
	return app.Governor().Version + ", detector " + detect.Default().Version()
}

// verdicts are decisions of another version or another program, by the id of the record.
type verdicts struct {
	file string
	byID map[string]verdict
}

type verdict struct{ refused, degraded bool }

// readVerdicts reads JSON lines as "caddy lex assess" writes them. Its errors quote nothing
// of a line.
func readVerdicts(name string) (*verdicts, error) {
	file, err := os.Open(name) //nolint:gosec // G304: the user of the command names the file
	if err != nil {
		return nil, fmt.Errorf("reading the verdicts: %w", err)
	}
	defer file.Close()
	v := &verdicts{name, make(map[string]verdict)}
	err = audit.EachLine(file, func(n int, line []byte) error {
		if err := v.add(line); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the verdicts of %s: %w", name, err)
	}
	return v, nil
}

func (v *verdicts) add(line []byte) error {
	var one struct {
		ID       jsontext.Value `json:"id"`
		Refused  *bool          `json:"refused"`
		Degraded bool           `json:"detection_degraded"` // assess writes it, others need not
	}
	err := json.Unmarshal(line, &one)
	id := idOf(one.ID)
	if err != nil || one.Refused == nil || id == "" {
		return errors.New("it is not a JSON object with an id and refused, which is true or false")
	}
	now := verdict{*one.Refused, one.Degraded}
	if before, there := v.byID[id]; there && before != now {
		return errors.New("another line has the same id and another verdict")
	}
	v.byID[id] = now
	return nil
}

func (v *verdicts) name() string { return v.file }

func (v *verdicts) refuses(_ context.Context, p prompt, degraded *degradation) (refused bool, reason string, err error) {
	one, known := v.byID[idOf(p.ID)]
	switch {
	case !known:
		reason = "without a verdict"
	case one.degraded:
		degraded.add(v.file + ": detection_degraded")
		reason = leftOutDegraded
	}
	return one.refused, reason, nil
}

// idOf returns an id in one spelling, since programs escape differently; "" if it is neither
// a string nor a number.
func idOf(id jsontext.Value) string {
	if kind := id.Kind(); kind != '"' && kind != '0' || id.Canonicalize() != nil {
		return ""
	}
	return string(id)
}
