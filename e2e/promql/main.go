// Command promql evaluates the queries of alert rules and of a Grafana dashboard on two
// scrapes of a server, a minute apart, as Prometheus would. It prints a line of JSON for
// each query. It is a module of its own, so that the product does not depend on Prometheus.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// A verdict is what became of a query.
type verdict struct {
	From      string   `json:"from"` // the alert or the panel
	Query     string   `json:"query"`
	Results   int      `json:"results"`
	Unmatched []string `json:"unmatched"` // selectors that no series has
	Error     string   `json:"error"`
	// For alerts: whether the rule fires on the scrapes, once its wait is over.
	Alert bool `json:"alert"`
}

// A query is one that a person or a rule asks.
type query struct {
	from, text string
	alert      bool
}

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: promql <rules> <dashboard> <scrape> <later scrape>")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3:5]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(rules, dashboard string, scrapes []string) error {
	alerts, err := ruleQueries(rules)
	if err != nil {
		return err
	}
	panels, err := panelQueries(dashboard)
	if err != nil {
		return err
	}
	now := time.Now().Truncate(time.Second)
	data, err := load(scrapes, now)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for _, q := range append(alerts, panels...) {
		if err := out.Encode(evaluate(q, data, now)); err != nil {
			return err
		}
	}
	return nil
}

func newParser() parser.Parser { return parser.NewParser(parser.Options{}) }

// ruleQueries checks a file of rules as promtool does, and returns their expressions.
func ruleQueries(file string) ([]query, error) {
	groups, errs := rulefmt.ParseFile(file, false, model.UTF8Validation, newParser(), slog.Default())
	if len(errs) > 0 {
		return nil, fmt.Errorf("%v", errs)
	}
	var all []query
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			all = append(all, query{r.Alert, r.Expr, true})
		}
	}
	return all, nil
}

// variable is one of Grafana's, which it replaces before it asks.
var variable = regexp.MustCompile(`\$(__rate_interval|__interval|__range)\b`)

// panelQueries returns the queries of a dashboard.
func panelQueries(file string) ([]query, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		return nil, err
	}
	var all []query
	for _, p := range dashboard.Panels {
		for _, t := range p.Targets {
			expr := strings.ReplaceAll(variable.ReplaceAllString(t.Expr, "5m"), "$instance", ".*")
			all = append(all, query{p.Title, expr, false})
		}
	}
	return all, nil
}

// A series has the values of the scrapes in which it is.
type series struct {
	labels  labels.Labels
	samples chunks.SampleSlice
}

type memory map[string]*series

// load reads scrapes, of which the last was taken now and those before it a minute apart.
func load(files []string, now time.Time) (memory, error) {
	data := make(memory)
	for i, file := range files {
		at := now.Add(-time.Duration(len(files)-1-i) * time.Minute)
		text, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer text.Close()
		textParser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := textParser.TextToMetricFamilies(text)
		if err != nil {
			return nil, err
		}
		for _, f := range families {
			samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: model.TimeFromUnixNano(at.UnixNano())}, f)
			if err != nil {
				return nil, err
			}
			for _, s := range samples {
				data.add(s)
			}
		}
		data.add(&model.Sample{Metric: model.Metric{model.MetricNameLabel: "up"}, Value: 1, Timestamp: model.TimeFromUnixNano(at.UnixNano())})
	}
	return data, nil
}

// add adds a sample, with the labels that Prometheus adds.
func (m memory) add(s *model.Sample) {
	b := labels.NewBuilder(labels.EmptyLabels())
	b.Set("job", "lex").Set("instance", "lex:8090")
	for name, value := range s.Metric {
		b.Set(string(name), string(value))
	}
	l := b.Labels()
	one := m[l.String()]
	if one == nil {
		one = &series{labels: l}
		m[l.String()] = one
	}
	one.samples = append(one.samples, sample{int64(s.Timestamp), float64(s.Value)})
}

// Querier returns the storage itself, which is all of it.
func (m memory) Querier(int64, int64) (storage.Querier, error) { return querier{m}, nil }

type querier struct{ memory }

// Select returns the series that match.
func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	return &set{found: q.matching(matchers)}
}

func (m memory) matching(matchers []*labels.Matcher) (found []*series) {
	for _, s := range m {
		matches := true
		for _, matcher := range matchers {
			matches = matches && matcher.Matches(s.labels.Get(matcher.Name))
		}
		if matches {
			found = append(found, s)
		}
	}
	return found
}

// LabelValues is not asked for by queries.
func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// LabelNames is not asked for by queries.
func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// Close does nothing.
func (querier) Close() error { return nil }

// A set goes through series.
type set struct {
	found []*series
	at    *series
}

func (s *set) Next() bool {
	if len(s.found) == 0 {
		return false
	}
	s.at, s.found = s.found[0], s.found[1:]
	return true
}

func (s *set) At() storage.Series              { return storage.NewListSeries(s.at.labels, s.at.samples) }
func (*set) Err() error                        { return nil }
func (*set) Warnings() annotations.Annotations { return nil }

// A sample is a number at a time in milliseconds.
type sample struct {
	t int64
	f float64
}

func (s sample) T() int64                    { return s.t }
func (sample) ST() int64                     { return 0 }
func (s sample) F() float64                  { return s.f }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }

// evaluate asks a query.
func evaluate(q query, data memory, now time.Time) verdict {
	v := verdict{From: q.from, Query: q.text, Alert: q.alert}
	expr, err := newParser().ParseExpr(q.text)
	if err != nil {
		v.Error = err.Error()
		return v
	}
	for _, selector := range parser.ExtractSelectors(expr) {
		if len(data.matching(selector)) == 0 {
			v.Unmatched = append(v.Unmatched, fmt.Sprint(selector))
		}
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})
	asked, err := engine.NewInstantQuery(context.Background(), data, nil, q.text, now)
	if err != nil {
		v.Error = err.Error()
		return v
	}
	defer asked.Close()
	got := asked.Exec(context.Background())
	if got.Err != nil {
		v.Error = got.Err.Error()
		return v
	}
	if vector, err := got.Vector(); err == nil {
		v.Results = len(vector)
	}
	return v
}
