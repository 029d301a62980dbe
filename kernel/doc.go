// Package kernel decides on the turns of a conversation with a language model.
// It is a pure function: from the session's state and the evidence of one turn
// to the decision, the next state and the record of both. It does no I/O and
// knows neither clock nor chance, so the same arguments give the same bits on
// every platform, and a recorded turn can be replayed and compared exactly.
//
// # The state
//
// A session has a state x = (C, R, S), a point of the open probability simplex:
// every component is positive and they sum to 1. [Continuity], [Reciprocity] and
// [Sovereignty] say how the constitution of the exchange stands; an attack
// presses on some of them, and what it presses down the others gain, so the
// state shows where a session leans. The margin M(x) = min x_i says how far it
// leans, from 1/3 at the centre to 0 at the edge. A second point z of the
// simplex holds the weights: where the state relaxes to.
//
// # One step
//
// Evidence becomes a pressure p, p_i >= 0 ([Evidence], [PressureTable]). Then
//
//  1. drift: raw_i is proportional to x_i^(1-rho) z_i^rho e^(-eta p_i). This is
//     an entropic mirror step: a weighted geometric mean of where the state is
//     and where it rests, pushed down by pressure. In a severe turn rho is 0: it
//     only presses;
//  2. governor: state = argmin KL(y || raw) over {y_i >= tau, sum y_i = 1}, the
//     information projection on the barrier set. It differs from raw exactly
//     when min raw < tau: the governor fired. The minimiser is y_i = max(tau,
//     s raw_i) with one s <= 1, found by cases, without iteration;
//  3. weights: z moves by the fraction beta towards w, which leans towards the
//     pillars under pressure by at most kappa.
//
// # The energy
//
// V_z(x) = -sum z_i ln x_i is the weighted log-barrier: it grows without bound
// towards every edge. It is least at x = z, and its excess over that minimum,
//
//	V(x) = sum z_i ln(z_i/x_i) = KL(z || x) >= 0,
//
// is the Lyapunov function that delta_V, lyapunov_V and stability_ratio report.
// Since z moves between turns, delta_V uses the turn's own z, and z_shift says
// what the change of z then does: the sum of both is what V did.
//
// # What is proved
//
// For every valid [Policy], every state with min x >= tau, every z in its range
// and every pressure (the tests check each line on a million random steps at the
// edges of all of these):
//
//   - Invariance: min state >= tau, and the state sums to 1.
//   - Rest: without pressure raw_i >= min(x_i, z_i) >= tau; the governor does
//     not fire.
//   - Contraction: without pressure V(raw) <= (1-rho) V(x).
//   - Input-to-state stability (Sontag): V(raw) <= (1-rho) V(x) + eta sum z_i
//     (p_i - min p).
//   - Every correction descends: V(raw) - V(state) >= KL(state || raw) >=
//     ||state - raw||², the governor_effort squared.
//   - Barrier: h_i(x) = x_i - floor is a discrete-time control barrier function:
//     h_i(state) >= (1-g) h_i(x), g = 1 - (tau-floor)/(1-2 tau-floor), 0.962 by
//     default. No faster rate is claimed.
//   - Monotone and continuous: the state is continuous in p, and raising one p_i
//     never raises raw_i nor state_i.
//   - Across turns: z_shift <= beta (KL(w || state) - V(state)); and with u the
//     centre, W = KL(u || x) + (2 rho/beta) KL(u || z) falls on each turn
//     without pressure at least by the factor max(1-rho, 1-beta/2). By default
//     ALERT is back within 3 and OPTIMAL within 6 such turns, from anywhere.
//   - Symmetry: permuting the pillars permutes the result.
//
// The proof is short. Let a_i = x_i^(1-rho) z_i^rho and N = sum a_i; by Hölder N
// <= 1. Without pressure raw = a/N, so raw_i >= a_i >= min(x_i, z_i): rest. And
// V(raw) = sum z_i ln z_i - sum z_i ln a_i + ln N = (1-rho) V(x) + ln N <= (1-rho)
// V(x): contraction. With pressure the same line gains eta sum z_i p_i, and N
// becomes sum a_i e^(-eta p_i) <= e^(-eta min p): stability. The set {y_i >= tau}
// is convex and holds z, because every weight stays at (1-kappa)/3 > tau or
// above; so the Pythagorean inequality of the information projection (Csiszár)
// reads KL(z || raw) >= KL(z || state) + KL(state || raw), and Pinsker bounds
// the last term by the effort: every correction descends. No component of x
// exceeds 1 - 2 tau and none of the state is under tau, which gives the barrier's
// rate. KL is convex in its first argument, which bounds z_shift, and in its
// second, so KL(u || z') <= (1-beta) KL(u || z); the line of the contraction with
// u for z gives KL(u || x') <= (1-rho) KL(u || x) + rho KL(u || z); their sum,
// the former weighted by 2 rho/beta, is the bound on W.
//
// # What is not guaranteed
//
// The theorems are about the state, not about the model. The state sums up the
// pressure that the detectors saw in a session; it is not a probability of harm,
// and a text that no detector understands moves nothing. Only differences of
// pressure move a point of the simplex: equal pressure on several pillars shows
// less than pressure on one, so the margin is not monotone in the number of
// attacks. That is why a refusal looks at the severity itself and never at the
// state alone. The barrier's rate is a bound on one step; it is nearly 1, so one
// strong turn can take a state from the centre to tau. And the bits are the same
// only for this arithmetic: an implementation with other elementary functions
// agrees to about 1e-9 and cannot replay exactly.
//
// # Where to start
//
// [New] makes a [Kernel] of a [Policy]. [Kernel.Assess] takes a [Session] and the
// [Evidence] of a prompt to a [Turn], [Kernel.Conclude] adds what the answer
// showed, and [Kernel.Receipt] makes the record. Read kernel.go first, then
// step.go for the mathematics below, decide.go for the decisions, and verify.go,
// replay.go and chain.go for the audit.
//
// # Signals and decisions
//
// The severity joins the two highest scores. Its sum over the session is watched
// by two one-sided CUSUMs (Page), a fast and a slow [Chart], which find a slow drip
// of turns each of which would pass alone. Decisions are a list of reasons by
// priority ([Reason]); the mode [Observe] computes them and acts on none.
//
// Asking again does not help: the session that a refused turn leaves refuses the same
// evidence. An alarm leaves its chart at the alarm level, a refused turn leaves the
// pressure that acted on it, and the floor judges a margin that adaptation cannot lift:
// of the session it knows only the component x_i that the turn presses most, it falls
// with x_i, and a severe turn leaves no larger x_i.
//
// # Receipts
//
// A [Receipt] holds the inputs and the outputs of one step in canonical JSON,
// under an id that is its hash, chained to the session's previous one.
// [OpenReceipt] finds any change of the record that did not come with a new id,
// [Kernel.Replay] any output that does not follow from the inputs, and [Chain] any
// receipt that does not go on from the one before it. A hash proves integrity, not
// origin: who can rewrite a session from some receipt to its head leaves one that
// verifies. Texts stand in a receipt only as
// commitments ([Commit]). A decided tool call has a receipt of the same form. The
// state of the session may deny a call, and a call that breaks an invariant may
// bring evidence and then takes a step; every other leaves the session as it is
// ([Kernel.RecordToolCall]).
//
// # Arithmetic
//
// Only + - * / and the square root are used, which IEEE 754 rounds exactly, with
// every product that meets a sum rounded by a conversion so that no compiler
// fuses the two, and an exponential and a logarithm built from these (exp.go).
// A test reads the source and refuses anything else.
//
// # Sources
//
//   - A. D. Ames, S. Coogan, M. Egerstedt, G. Notomista, K. Sreenath, P. Tabuada:
//     Control Barrier Functions: Theory and Applications. ECC 2019.
//   - A. Agrawal, K. Sreenath: Discrete Control Barrier Functions for
//     Safety-Critical Control of Discrete Systems. RSS 2017.
//   - I. Csiszár: I-Divergence Geometry of Probability Distributions and
//     Minimization Problems. Annals of Probability 3, 1975.
//   - E. D. Sontag: Smooth Stabilization Implies Coprime Factorization. IEEE
//     Transactions on Automatic Control 34, 1989 (input-to-state stability).
//   - E. S. Page: Continuous Inspection Schemes. Biometrika 41, 1954 (CUSUM).
//   - A. Beck, M. Teboulle: Mirror Descent and Nonlinear Projected Subgradient
//     Methods for Convex Optimization. Operations Research Letters 31, 2003.
//   - RFC 8785 (canonical JSON), RFC 2104 (HMAC).
package kernel
