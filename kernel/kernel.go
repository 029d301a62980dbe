package kernel

import "fmt"

// Kernel is a validated policy and its hash. It is immutable and safe for
// concurrent use.
type Kernel struct {
	policy Policy
	hash   string
}

// New returns the kernel of a policy, or an error that wraps [ErrPolicy].
func New(p Policy) (*Kernel, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return &Kernel{policy: p, hash: p.Hash()}, nil
}

// Policy returns the kernel's policy.
func (k *Kernel) Policy() Policy { return k.policy }

// PolicyHash returns the hash of the kernel's policy ([Policy.Hash]).
func (k *Kernel) PolicyHash() string { return k.hash }

// NewSession returns the session before its first turn: state and weights at
// the centre of the simplex, nothing else.
func (k *Kernel) NewSession() Session {
	centre := Point{1.0 / 3, 1.0 / 3, 1.0 / 3}
	return Session{X: centre, Z: centre, Policy: k.hash}
}

// Assess takes one step from the session under the evidence of a prompt and
// decides on it. The same arguments give the same bits on every platform. A
// session of another policy is first brought into this policy's range, which
// Turn.Migrated notes. An argument that is not finite or out of its range is an
// error that wraps [ErrInput].
//
// The turn is complete for a prompt that is not answered; [Kernel.Conclude]
// adds what the answer showed.
func (k *Kernel) Assess(s Session, e Evidence, m Mode) (Turn, error) {
	migrated, err := k.admit(&s)
	if err != nil {
		return Turn{}, fmt.Errorf("assessing a turn: %w", err)
	}
	if err := checkEvidence(&e); err != nil {
		return Turn{}, fmt.Errorf("assessing a turn: %w", err)
	}
	if m != Enforce && m != Observe {
		return Turn{}, fmt.Errorf("assessing a turn: %w: mode", ErrInput)
	}
	t := Turn{Mode: m, Before: s, Migrated: migrated, Evidence: e}
	t.Next.Policy = k.hash
	k.classify(&t)
	if e.Repeated || e.Unassessed {
		k.keepState(&t)
	} else {
		k.pressure(&t)
		k.step(&t, k.relaxation(&t))
		k.carryEffect(&t)
		if k.severe(&t) {
			t.MFloor = k.floorMargin(&t)
		}
	}
	k.decide(&t)
	t.Next.Carry = k.nextCarry(&t)
	return t, nil
}

// Conclude adds the evidence of the model's answer to an assessed turn: it may
// add a reason to refuse, and leaves pressure for the next turn. Everything that
// Assess computed stays as it is, and concluding a concluded turn again replaces
// what the first time added. Evidence out of its range is an error that wraps
// [ErrInput].
func (k *Kernel) Conclude(t Turn, o Output) (Turn, error) {
	if err := checkOutput(&o); err != nil {
		return Turn{}, fmt.Errorf("concluding a turn: %w", err)
	}
	if o == t.Output {
		return t, nil // nothing that Assess did not take for granted
	}
	t.Output = o
	k.decide(&t)
	t.Next.Carry = k.nextCarry(&t)
	return t, nil
}
