package audit

import (
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// A Check is the outcome of one check of a receipt.
type Check struct {
	// Name is one of the names in the package comment, or stored, which compares the
	// record with the one that the archive keeps.
	Name string `json:"name"`
	// OK is nil if the check could not be made, which says nothing about the receipt.
	OK *bool `json:"ok"`
	// Detail describes the finding for people.
	Detail string `json:"detail"`
}

// Passed reports whether the check was made and found nothing wrong.
func (c Check) Passed() bool { return c.OK != nil && *c.OK }

// Failed reports whether the check was made and found a fault.
func (c Check) Failed() bool { return c.OK != nil && !*c.OK }

func passed(name, detail string) Check  { return Check{name, new(true), detail} }
func failed(name, detail string) Check  { return Check{name, new(false), detail} }
func unknown(name, detail string) Check { return Check{name, nil, detail} }

// A Report is the result of verifying one receipt. Its JSON is the answer of
// POST /audits/verify.
type Report struct {
	// Valid says that no check failed.
	Valid bool `json:"valid"`
	// Checks in the order in which they were made. A receipt whose id is wrong gets no
	// further checks.
	Checks []Check `json:"checks"`
	// Fault is the name and detail of the first check that failed.
	Fault *string `json:"fault"`

	// Entry is the receipt as the archive keeps it. It is empty for a record whose id
	// is wrong. For a record that the archive does not keep it has no session.
	Entry store.Receipt `json:"-"`

	receipt kernel.Receipt
}

func newReport(entry store.Receipt) *Report {
	return &Report{Valid: true, Checks: []Check{}, Entry: entry}
}

func (r *Report) add(c Check) {
	r.Checks = append(r.Checks, c)
	if c.Failed() && r.Fault == nil {
		r.Fault, r.Valid = new(c.Name+": "+c.Detail), false
	}
}
