package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-lex/lex/console"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

func reportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "report (--url <proxy> | --store <store> | <file>...) [--from <time>] [--to <time>] [--last <duration>] [--json]",
		Short: "Says what the mode enforce refuses, or would have refused",
		Long: `
Reads receipts from a running proxy, a store or files, as "caddy lex verify" does,
and counts by route and by reason what was refused and blocked, and what would have
been if the mode had not been observe.

What would have been refused is certain for the first turn or tool call of each
conversation: until then enforce changes nothing. What follows in the same
conversation is conditional, because its words might never have been said after a
refusal.

--from and --to take a time (2026-01-31T08:00:00Z) or a day (2026-01-31, in UTC);
--last takes a duration such as 24h or 7d. Receipts from --from on and before --to
are counted, as if enforce had begun at --from.

A receipt that cannot be read is counted as unreadable, and the exit status is then 1.
The report does not verify receipts; "caddy lex verify" does.`,
	}
	sourceFlags(cmd)
	cmd.Flags().String("from", "", "Count receipts from this time on")
	cmd.Flags().String("to", "", "Count receipts before this time")
	cmd.Flags().String("last", "", "Count the receipts of this long until now")
	cmd.Flags().Bool("json", false, "Write one JSON object")
	run(reportReceipts, cmd)
	return cmd
}

func reportReceipts(cmd *cobra.Command, fl caddycmd.Flags) error {
	within, err := spanOf(fl, time.Now())
	if err != nil {
		return err
	}
	source, shut, err := openSource(cmd.Context(), fl)
	if err != nil {
		return err
	}
	c := newModeReport(within)
	err = source.Each(cmd.Context(), c.visit)
	if err := errors.Join(err, shut()); err != nil {
		return err
	}
	c.finish()
	if err := c.write(cmd.OutOrStdout(), fl.Bool("json")); err != nil {
		return err
	}
	if c.Unreadable > 0 {
		return fmt.Errorf("%d receipts could not be read; \"caddy lex verify\" names them", c.Unreadable)
	}
	return nil
}

// A span is the time from one moment on and before another, in Unix milliseconds.
type span struct{ from, to int64 }

// spanOf reads --from, --to and --last.
func spanOf(fl caddycmd.Flags, now time.Time) (span, error) {
	s := span{math.MinInt64, math.MaxInt64}
	from, to, last := fl.String("from"), fl.String("to"), fl.String("last")
	if last != "" {
		d, err := caddy.ParseDuration(last)
		switch {
		case from != "" || to != "":
			return s, errors.New("give --last, or --from and --to")
		case err != nil || d <= 0:
			return s, errors.New("--last: give a duration such as 24h or 7d")
		}
		return span{now.Add(-d).UnixMilli(), math.MaxInt64}, nil
	}
	err := errors.Join(setTime("--from", from, &s.from), setTime("--to", to, &s.to))
	if err == nil && s.from >= s.to {
		err = errors.New("--from is not before --to")
	}
	return s, err
}

// setTime reads a time or a day, unless there is none.
func setTime(flag, text string, to *int64) error {
	if text == "" {
		return nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		if t, err = time.Parse(time.DateOnly, text); err != nil {
			return fmt.Errorf("%s: give a time such as 2026-01-31T08:00:00Z, or a day such as 2026-01-31", flag)
		}
	}
	*to = t.UnixMilli()
	return nil
}

// A modeReport says what enforce refused, and what it would have refused in observe.
// --json writes it.
type modeReport struct {
	// From and To are when the first and the last of the receipts were made, in Unix
	// milliseconds; null if there are none.
	From       *int64        `json:"from"`
	To         *int64        `json:"to"`
	Receipts   int           `json:"receipts"`
	Unreadable int           `json:"unreadable"`
	Routes     []*routeRow   `json:"routes"`
	Refusals   []*refusalRow `json:"refusals"`
	Blocks     []*blockRow   `json:"blocks"`
	within     span
	routes     map[routeName]*routeRow
	refusals   map[kernel.Reason]*refusalRow
	blocks     map[blockName]*blockRow

	// changed has the receipts after which a conversation would have been another one
	// under enforce, because of them or of one before them. Only receipts that another may
	// follow are kept: one for each such conversation, and all of a conversation that the
	// client resends, which may branch at each.
	changed map[[idBytes]byte]struct{}
}

// idBytes are enough of an id to know it by: it has 32 digits.
const idBytes = 32

// A counterfactual counts what only the mode observe let pass.
type counterfactual struct {
	// Certain is the first of each conversation, before which enforce changes nothing.
	Certain int `json:"certain"`
	// Conditional is everything after that, which might never have been said.
	Conditional int `json:"conditional"`
}

func (c *counterfactual) add(conditional bool) {
	if conditional {
		c.Conditional++
	} else {
		c.Certain++
	}
}

type routeName struct {
	Endpoint string `json:"endpoint"`
	Dialect  string `json:"dialect"`
}

// A routeRow counts what came by one endpoint in one dialect.
type routeRow struct {
	routeName
	Turns       int            `json:"turns"`
	Refused     int            `json:"refused"`
	WouldRefuse counterfactual `json:"would_refuse"`
	// Corrected turns pass, and the governor corrects the state of their session; in the
	// mode observe it would have.
	Corrected    int `json:"corrected"`
	WouldCorrect int `json:"would_correct"`
	// Unassessed turns had nothing that a detector could read; Uninspected ones had parts
	// that none read. On NoVerdict ones a detector failed, whether others read the parts or
	// not.
	Unassessed  int            `json:"unassessed"`
	Uninspected int            `json:"uninspected"`
	NoVerdict   int            `json:"no_verdict"`
	Calls       int            `json:"tool_calls"`
	Blocked     int            `json:"blocked"`
	WouldBlock  counterfactual `json:"would_block"`
}

// A refusalRow counts turns by the reason that decides, the first of several.
type refusalRow struct {
	Reason      kernel.Reason  `json:"reason"`
	Refused     int            `json:"refused"`
	WouldRefuse counterfactual `json:"would_refuse"`
}

// A blockName is why a tool call is denied. The other member is "".
type blockName struct {
	Invariant string `json:"invariant"`
	Rule      string `json:"rule"`
}

// String names the invariant or the operator's rule.
func (n blockName) String() string {
	if n.Invariant == "" {
		return "rule " + n.Rule
	}
	return n.Invariant
}

type blockRow struct {
	blockName
	Blocked    int            `json:"blocked"`
	WouldBlock counterfactual `json:"would_block"`
}

func newModeReport(within span) *modeReport {
	return &modeReport{
		within: within, routes: make(map[routeName]*routeRow), refusals: make(map[kernel.Reason]*refusalRow),
		blocks: make(map[blockName]*blockRow), changed: make(map[[idBytes]byte]struct{}),
	}
}

// visit counts one receipt.
func (c *modeReport) visit(_ context.Context, _ string, entry store.Receipt) error {
	r, err := kernel.OpenReceipt(entry.JSON)
	switch {
	case err != nil:
		c.Unreadable++ // its time is not known either
	case r.Timestamp >= c.within.from && r.Timestamp < c.within.to:
		c.count(&r)
	}
	return nil
}

func (c *modeReport) count(r *kernel.Receipt) {
	c.Receipts++
	if c.From == nil {
		c.From, c.To = new(r.Timestamp), new(r.Timestamp)
	}
	*c.From, *c.To = min(*c.From, r.Timestamp), max(*c.To, r.Timestamp)

	conditional := c.follow(r)
	route := rowOf(c.routes, routeName{r.Endpoint, r.Dialect}, func(n routeName) *routeRow { return &routeRow{routeName: n} })
	if r.Tool == "" {
		c.countTurn(route, r, conditional)
	} else {
		c.countCall(route, r, conditional)
	}
}

// follow reports whether enforce would have changed the conversation before the receipt,
// and notes whether it would have after it.
func (c *modeReport) follow(r *kernel.Receipt) (conditional bool) {
	prev := shortID(r.Prev)
	if r.Prev != "" {
		_, conditional = c.changed[prev]
	}
	if conditional && !r.Resent { // nothing else follows it
		delete(c.changed, prev)
	}
	if conditional || r.WouldRefuse {
		c.changed[shortID(r.ID)] = struct{}{}
	}
	return conditional
}

// shortID is an id, or the id of a link, without its prefix.
func shortID(link string) (short [idBytes]byte) {
	id := kernel.IDOf(link)
	copy(short[:], id[min(len(kernel.PrefixText), len(id)):])
	return short
}

func (c *modeReport) countTurn(route *routeRow, r *kernel.Receipt, conditional bool) {
	route.Turns++
	switch {
	case r.Unassessed:
		route.Unassessed++
	case console.GapOf(r) != console.GapNone:
		route.Uninspected++
	}
	if len(console.NoVerdictsOf(r)) > 0 {
		route.NoVerdict++
	}
	if len(r.Reasons) == 0 {
		switch {
		case r.GovernorMode == kernel.GovernorCorrect:
			route.Corrected++
		case r.Intervened:
			route.WouldCorrect++
		}
		return
	}
	reason := rowOf(c.refusals, r.Reasons[0], func(n kernel.Reason) *refusalRow { return &refusalRow{Reason: n} })
	if r.Refused {
		route.Refused++
		reason.Refused++
		return
	}
	route.WouldRefuse.add(conditional)
	reason.WouldRefuse.add(conditional)
}

func (c *modeReport) countCall(route *routeRow, r *kernel.Receipt, conditional bool) {
	route.Calls++
	if !r.Refused && !r.WouldRefuse {
		return
	}
	name := blockName{Invariant: r.Invariant}
	if name.Invariant == "" {
		name.Rule = r.Rule
	}
	why := rowOf(c.blocks, name, func(n blockName) *blockRow { return &blockRow{blockName: n} })
	if r.Refused {
		route.Blocked++
		why.Blocked++
		return
	}
	route.WouldBlock.add(conditional)
	why.WouldBlock.add(conditional)
}

// rowOf returns the row with a name, a new one if there is none.
func rowOf[N comparable, R any](rows map[N]*R, name N, empty func(N) *R) *R {
	if rows[name] == nil {
		rows[name] = empty(name)
	}
	return rows[name]
}

// finish puts the rows in the order of their names, invariants before rules.
func (c *modeReport) finish() {
	c.Routes = slices.SortedFunc(maps.Values(c.routes), func(a, b *routeRow) int {
		return cmp.Or(cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Dialect, b.Dialect))
	})
	c.Refusals = slices.SortedFunc(maps.Values(c.refusals), func(a, b *refusalRow) int {
		return cmp.Compare(a.Reason, b.Reason)
	})
	c.Blocks = slices.SortedFunc(maps.Values(c.blocks), func(a, b *blockRow) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Invariant, b.Invariant))
	})
}

func (c *modeReport) write(out io.Writer, asJSON bool) error {
	if asJSON {
		return printJSON(out, c)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "%d receipts", c.Receipts)
	if c.From != nil {
		_, _ = fmt.Fprintf(w, ", %s to %s", utc(*c.From), utc(*c.To))
	}
	if c.Unreadable > 0 {
		_, _ = fmt.Fprintf(w, ", and %d unreadable", c.Unreadable)
	}
	_, _ = fmt.Fprintln(w, "\n\nendpoint\tdialect\tturns\trefused\twould refuse*\tcorrected\twould correct\tunassessed\tuninspected\tno verdict\ttool calls\tblocked\twould block*")
	for _, r := range c.Routes {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", r.Endpoint, r.Dialect, r.Turns, r.Refused, r.WouldRefuse, r.Corrected, r.WouldCorrect, r.Unassessed, r.Uninspected, r.NoVerdict, r.Calls, r.Blocked, r.WouldBlock)
	}
	_, _ = fmt.Fprintln(w, "\nreason\trefused\twould refuse*")
	for _, r := range c.Refusals {
		_, _ = fmt.Fprintf(w, "%s\t%d\t%s\n", r.Reason, r.Refused, r.WouldRefuse)
	}
	_, _ = fmt.Fprintln(w, "\ntool calls\tblocked\twould block*")
	for _, r := range c.Blocks {
		_, _ = fmt.Fprintf(w, "%s\t%d\t%s\n", r.blockName, r.Blocked, r.WouldBlock)
	}
	_, _ = fmt.Fprintln(w, "\n* certain, the first of each conversation, + conditional, which might never have been said after it")
	return w.Flush() // also an error of the lines before
}

// String returns both counts, the certain one first.
func (c counterfactual) String() string { return fmt.Sprintf("%d + %d", c.Certain, c.Conditional) }

func utc(milliseconds int64) string {
	return time.UnixMilli(milliseconds).UTC().Format(time.RFC3339)
}
