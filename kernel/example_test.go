package kernel_test

import (
	"fmt"

	"github.com/caddy-lex/lex/kernel"
)

// One attack pushes the state to the barrier; ordinary turns lead it back.
func Example() {
	k, err := kernel.New(kernel.DefaultPolicy())
	if err != nil {
		panic(err)
	}
	session := k.NewSession()
	attack := kernel.Evidence{Scores: kernel.Scores{Identity: 0.85}}
	for _, prompt := range []kernel.Evidence{{}, attack, {}, {}, {}} {
		turn, err := k.Assess(session, prompt, kernel.Enforce)
		if err != nil {
			panic(err)
		}
		fmt.Printf("M = %.2f %s %s %s\n", turn.M, turn.Band, turn.GovernorMode, turn.Reasons)
		session = turn.Next
	}
	// Output:
	// M = 0.33 OPTIMAL pass []
	// M = 0.08 CRITICAL refuse [semantic_classifier constitutional_floor]
	// M = 0.15 STRESSED pass []
	// M = 0.21 ALERT pass []
	// M = 0.26 OPTIMAL pass []
}

// What the model answered acts on the next turn, once.
func ExampleKernel_Conclude() {
	k, _ := kernel.New(kernel.DefaultPolicy())
	turn, _ := k.Assess(k.NewSession(), kernel.Evidence{}, kernel.Enforce)
	turn, err := k.Conclude(turn, kernel.Output{
		Capitulated: true, Category: kernel.IdentityAdoption, Confidence: 0.9,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(turn.Refused, turn.PrimaryReason(), turn.Next.Carry)
	next, _ := k.Assess(turn.Next, kernel.Evidence{}, kernel.Enforce)
	fmt.Println(next.Sensing.Fired, *next.Sensing.ActivePillar, next.Next.Carry)
	// Output:
	// true capitulation [0 0 0.45]
	// true S [0 0 0]
}

// A receipt can be checked by anyone who has the policy.
func ExampleKernel_Replay() {
	k, _ := kernel.New(kernel.DefaultPolicy())
	turn, _ := k.Assess(k.NewSession(), kernel.Evidence{Scores: kernel.Scores{HarmRequest: 0.4}}, kernel.Enforce)
	r := k.Receipt(turn)
	r.SessionID, r.Turn, r.Timestamp = "demo", 1, 1_700_000_000_000
	if _, err := r.Seal(); err != nil {
		panic(err)
	}
	fmt.Println(r.CheckID(), k.Replay(r))

	r.Severity = 0.1
	fmt.Println(r.CheckID())
	fmt.Println(k.Replay(r))
	// Output:
	// <nil> <nil>
	// receipt id does not match its record
	// receipt does not replay: severity differs
}

// A policy that breaks a rule is refused with the names of its faults.
func ExamplePolicy_Validate() {
	p := kernel.DefaultPolicy()
	p.Tau = 0.2
	fmt.Println(p.Validate())
	// Output:
	// invalid policy: recovery must be over tau (0.2) and under 1/3, not 0.15
	// invalid policy: kappa must be at least 0 and under 1 - 3 tau (tau is 0.2), not 0.4
}
