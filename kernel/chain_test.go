package kernel_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

// session returns the sealed receipts of n random turns of one session.
func session(t testing.TB, k *kernel.Kernel, seed uint64, n int) []kernel.Receipt {
	t.Helper()
	r, s, prev := newRandom(seed), k.NewSession(), ""
	receipts := make([]kernel.Receipt, n)
	for i := range receipts {
		turn := take(t, k, s, r.evidence(), kernel.Observe, r.output())
		receipts[i] = link(t, k, turn, prev)
		s, prev = turn.Next, receipts[i].Link()
	}
	return receipts
}

func link(t testing.TB, k *kernel.Kernel, turn kernel.Turn, prev string) kernel.Receipt {
	t.Helper()
	r := k.Receipt(turn)
	r.SessionID, r.Prev = "demo", prev
	return sealed(t, r)
}

func sealed(t testing.TB, r kernel.Receipt) kernel.Receipt {
	t.Helper()
	if _, err := r.Seal(); err != nil {
		t.Fatal(err)
	}
	return r
}

// check adds the receipts and returns the first fault.
func check(k *kernel.Kernel, c *kernel.Chain, receipts []kernel.Receipt) error {
	for _, r := range receipts {
		if err := c.Add(k, r); err != nil {
			return err
		}
	}
	return nil
}

func TestWholeChainsHold(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	sessions := make([][]kernel.Receipt, 8)
	for n := range sessions {
		sessions[n] = session(t, k, uint64(n)+1, 20)
	}
	var mixed []kernel.Receipt
	for i := range sessions[0] {
		for _, s := range sessions {
			mixed = append(mixed, s[i])
		}
	}
	var c kernel.Chain
	if err := check(k, &c, mixed); err != nil {
		t.Fatal(err)
	}
	var last []string
	for _, r := range mixed[len(mixed)-len(sessions):] {
		last = append(last, r.ID)
	}
	if ends := c.Ends(); !slices.Equal(ends, last) {
		t.Errorf("the ends are %v, want %v", ends, last)
	}
}

// Whoever can write to the store can remove, move, repeat and add receipts, and
// seal what they add.
func TestChangedChainsAreFound(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	whole := session(t, k, 3, 12)
	forged := func(change func(*kernel.Receipt)) kernel.Receipt {
		r := whole[5]
		r.Nonce = "0000000000000001"
		change(&r)
		return sealed(t, r)
	}
	fresh := link(t, k, take(t, k, k.NewSession(), kernel.Evidence{}, kernel.Observe, kernel.Output{}), "")
	for name, c := range map[string]struct {
		receipts []kernel.Receipt
		want     string
	}{
		"the first removed":  {whole[1:], "was removed or moved"},
		"one removed":        {slices.Delete(slices.Clone(whole), 4, 5), "was removed or moved"},
		"two swapped":        {slices.Concat(whole[:4], whole[5:6], whole[4:5], whole[6:]), "was removed or moved"},
		"one repeated":       {slices.Insert(slices.Clone(whole), 6, whole[5]), "occurs twice"},
		"a double put in":    {slices.Insert(slices.Clone(whole), 6, forged(func(*kernel.Receipt) {})), "was put in"},
		"one put in between": {slices.Insert(slices.Clone(whole), 6, forged(func(r *kernel.Receipt) { r.Prev = whole[5].Link() })), "does not start from the state"},
		"one replaced":       {slices.Replace(slices.Clone(whole), 5, 6, forged(func(r *kernel.Receipt) { r.Turn = 77 })), "was removed or moved"},
		"of another session": {append(slices.Clone(whole), forged(func(r *kernel.Receipt) { r.Prev, r.SessionID = whole[11].Link(), "other" })), "belongs to another session"},
		"a head made up":     {append([]kernel.Receipt{forged(func(r *kernel.Receipt) { r.Prev = "" })}, whole...), "does not start from the centre"},
		"said to be migrated": {append(slices.Clone(whole[:5]), sealed(t, func() kernel.Receipt {
			r := whole[5]
			r.Migrated = true
			return r
		}())), "does not start from the state"},
		"pretends to branch": {slices.Insert(slices.Clone(whole), 6, forged(func(r *kernel.Receipt) { r.Resent = true })), "was put in"},
		"nothing at all":     {append([]kernel.Receipt{fresh}, whole...), ""},

		"the first repeated at the end": {append(slices.Clone(whole), whole[0]), "occurs twice"},
		"one repeated at the end":       {append(slices.Clone(whole), whole[5]), "put in or repeated"},
		"a double put in at the end":    {append(slices.Clone(whole), forged(func(*kernel.Receipt) {})), "was put in"},
		"another first put in":          {append(slices.Clone(whole), forged(func(r *kernel.Receipt) { r.Prev = whole[0].Link() })), "was put in"},
	} {
		for _, partial := range []bool{false, true} {
			want := c.want
			switch {
			case partial && want == "was removed or moved": // it may be older than the part
				want = ""
			case partial && want == "put in or repeated":
				want = "occurs twice"
			}
			err := check(k, &kernel.Chain{Partial: partial}, c.receipts)
			if want == "" && err != nil || want != "" && (!errors.Is(err, kernel.ErrChain) || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s, partial %v: got %v, want %q", name, partial, err, want)
			}
		}
	}
}

// Each fault is told once: what follows it hangs together again.
func TestChainGoesOnAfterAFault(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	whole := session(t, k, 4, 10)
	var c kernel.Chain
	faults := 0
	for _, r := range slices.Delete(slices.Clone(whole), 3, 4) {
		if c.Add(k, r) != nil {
			faults++
		}
	}
	if faults != 1 {
		t.Errorf("%d faults for one removed receipt", faults)
	}
	partial := kernel.Chain{Partial: true}
	if err := check(k, &partial, whole[4:]); err != nil {
		t.Errorf("the end of a chain: %v", err)
	}
}

// A client that goes back in its own history makes a branch, and only where the
// history is all that names the session.
func TestResentHistoryBranches(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	whole := session(t, k, 5, 4)
	prev := ""
	for i := range whole {
		whole[i].Resent, whole[i].Prev = true, prev
		whole[i] = sealed(t, whole[i])
		prev = whole[i].Link()
	}
	branch := whole[2]
	branch.Nonce = "0000000000000002"
	branch = sealed(t, branch)
	var c kernel.Chain
	if err := check(k, &c, append(whole, branch)); err != nil {
		t.Fatal(err)
	}
	if ends := c.Ends(); !slices.Equal(ends, []string{whole[3].ID, branch.ID}) {
		t.Errorf("the ends are %v", ends)
	}
}

// A link names the predecessor by its whole hash. Two records that share an id, which
// has half of the digits, are told apart, and receipts that were written before links
// had all digits still stand in their chain.
func TestLinksHoldTheWholeHash(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	whole := session(t, k, 6, 3)
	next := func(prev string) []kernel.Receipt {
		r := whole[2]
		r.Prev = prev
		return []kernel.Receipt{whole[0], whole[1], sealed(t, r)}
	}
	id := whole[1].ID
	for prev, want := range map[string]string{
		whole[1].Link():              "",
		id:                           "",
		id + strings.Repeat("0", 32): "follows another record than the " + id,
		id + whole[1].Link()[36:67]:  "follows another record than the " + id,
	} {
		err := check(k, new(kernel.Chain), next(prev))
		if (err == nil) != (want == "") || err != nil && (!errors.Is(err, kernel.ErrChain) || !strings.Contains(err.Error(), want)) {
			t.Errorf("after %s: %v", prev, err)
		}
	}
	// What is wrong with a record is its own fault and not its successor's.
	broken := whole[1]
	broken.Model = "another"
	text := mustJSON(t, broken)
	if broken, err := kernel.OpenReceipt(text); !errors.Is(err, kernel.ErrReceiptID) || check(k, new(kernel.Chain), []kernel.Receipt{whole[0], broken, whole[2]}) != nil {
		t.Errorf("a changed record: %v", err)
	}
}

// After a change of policy the session starts from the projection of its state.
func TestChainAcrossPolicies(t *testing.T) {
	old := newKernel(t, kernel.DefaultPolicy())
	p := kernel.DefaultPolicy()
	p.Tau, p.Recovery = 0.14, 0.2
	k := newKernel(t, p)
	pressed := take(t, old, old.NewSession(), scores(0.95, 0, 0, 0, 0, 0), kernel.Observe, kernel.Output{})
	first := link(t, old, pressed, "")
	second := link(t, k, take(t, k, pressed.Next, kernel.Evidence{}, kernel.Observe, kernel.Output{}), first.Link())
	var c kernel.Chain
	if err := errors.Join(c.Add(old, first), c.Add(k, second)); err != nil || !second.Migrated {
		t.Fatalf("migrated %v: %v", second.Migrated, err)
	}
	other := second
	other.X = first.State
	if err := errors.Join((&kernel.Chain{Partial: true}).Add(k, other), check(old, &c, nil)); err != nil {
		t.Fatal(err)
	}
	var d kernel.Chain
	if err := errors.Join(d.Add(old, first), d.Add(k, sealed(t, other))); !errors.Is(err, kernel.ErrChain) {
		t.Errorf("a state that was not projected: %v", err)
	}
}
