package audit

import (
	"context"
	"fmt"
	"slices"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// A Source gives receipts to verify, from a file, a store, or a running proxy. It
// belongs to one goroutine.
type Source interface {
	// Each visits the receipts, oldest first. Receipts that are written meanwhile may
	// be left out. An error of visit ends the walk and is returned.
	Each(ctx context.Context, visit Visit) error

	Documents
}

// A Visit takes one receipt of a source. where names the receipt for people. The entry
// has the record, and the id if the source stores the record under one.
type Visit func(ctx context.Context, where string, entry store.Receipt) error

// A SessionSource also knows the sessions of its receipts: their heads, and the
// secrets that commitments are made with. A file does not.
type SessionSource interface {
	// Head makes the check chain of the receipt with the id as far as it is about the
	// head of the session: nil if that is not known.
	Head(ctx context.Context, id string) (Check, error)

	// CompareTexts makes the checks that compare texts with a receipt's
	// commitments. A proxy may add other checks that failed. The error wraps
	// [store.ErrNotFound] where there is no such receipt, and [kernel.ErrReceipt] or
	// [kernel.ErrReceiptID] where it is broken.
	CompareTexts(ctx context.Context, t Texts) ([]Check, error)
}

// A StoreSource reads the receipts of a store that this process has opened.
type StoreSource struct{ store store.Store }

// NewStoreSource returns the source of a store, which stays the caller's to close.
func NewStoreSource(s store.Store) StoreSource { return StoreSource{s} }

var (
	_ Source        = StoreSource{}
	_ SessionSource = StoreSource{}
)

// storePage is how many receipts are listed at a time. A page holds the whole
// records, so it is small.
const storePage = 16

// Each visits the receipts of the store.
func (s StoreSource) Each(ctx context.Context, visit Visit) error {
	list := func(before string) (ids []string, next string, err error) {
		page, err := s.store.Recent(ctx, before, storePage)
		if err != nil {
			return nil, "", fmt.Errorf("listing receipts: %w", err)
		}
		for _, r := range page {
			ids = append(ids, r.ID)
		}
		if len(page) == storePage {
			next = page[len(page)-1].Cursor
		}
		return ids, next, nil
	}
	return OldestFirst(list, func(id string) error {
		entry, err := s.store.Receipt(ctx, id)
		if err != nil {
			return fmt.Errorf("reading %s: %w", id, err)
		}
		return visit(ctx, id, entry)
	})
}

// Document returns a document that the store keeps.
func (s StoreSource) Document(ctx context.Context, hash string) ([]byte, error) {
	return s.store.Document(ctx, hash)
}

// Head looks for the receipt on the way back from its session's head.
func (s StoreSource) Head(ctx context.Context, id string) (Check, error) {
	entry, err := s.store.Receipt(ctx, id)
	if err != nil {
		return Check{}, err
	}
	r, err := kernel.ParseReceipt(entry.JSON)
	if err != nil {
		return failed("chain", err.Error()), nil
	}
	return NewAuditor(s.store).head(ctx, entry, r)
}

// CompareTexts compares texts with a receipt's commitments.
func (s StoreSource) CompareTexts(ctx context.Context, t Texts) ([]Check, error) {
	entry, err := s.store.Receipt(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	r, err := kernel.OpenReceipt(entry.JSON)
	if err != nil {
		return nil, err
	}
	return NewAuditor(s.store).texts(ctx, entry, r, t)
}

// OldestFirst visits the ids of a paged list in reverse: the list goes from the newest
// to the oldest. list returns the page at a place ("" is the newest) and the place of
// the next, older page, "" after the oldest.
//
// The list is read twice: first to learn where the pages begin, then page by page back
// to the newest. So only the place and the length of each page are held in memory. The
// newest page is kept from the first reading, because it changes when receipts are
// written. It is an error if an older page changed in between, or if the list comes
// back to a page.
func OldestFirst(list func(place string) (ids []string, next string, err error), visit func(id string) error) error {
	newest, next, err := list("")
	if err != nil {
		return err
	}
	type page struct {
		place string
		ids   int
	}
	var pages []page
	for known := map[string]bool{}; next != ""; {
		place := next
		if known[place] {
			return fmt.Errorf("listing receipts: the list is a cycle: it comes back to %s", place)
		}
		known[place] = true
		var ids []string
		if ids, next, err = list(place); err != nil {
			return err
		}
		pages = append(pages, page{place, len(ids)})
	}
	for _, p := range slices.Backward(pages) {
		ids, _, err := list(p.place)
		if err != nil {
			return err
		}
		if len(ids) != p.ids {
			return fmt.Errorf("listing receipts: the list changed while it was read: %s had %d receipts and has %d", p.place, p.ids, len(ids))
		}
		if err := visitBackward(ids, visit); err != nil {
			return err
		}
	}
	return visitBackward(newest, visit)
}

func visitBackward(ids []string, visit func(id string) error) error {
	for _, id := range slices.Backward(ids) {
		if err := visit(id); err != nil {
			return err
		}
	}
	return nil
}
