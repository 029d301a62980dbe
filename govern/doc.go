// Package govern takes one turn of a conversation with a language model from the
// request to its receipt. It knows neither HTTP nor Caddy: its caller reads the
// request, asks the model and answers the client.
//
// # The phases
//
// Each phase is a type, and the only way to a type is through the one before it,
// so a wrong order does not compile:
//
//	Governor.Open      reads the session                      → Opened
//	Opened.Read…       takes the request's texts apart        → Input
//	Opened.Assess      scores them and decides on the prompt  → Assessed
//	Assessed.Judge     weighs the model's answer              → Judged
//	Judged.Commit      makes the turn durable                 → Receipt
//
// A turn without an answer to judge gets to Commit by [Assessed.NotJudged], and a
// tool call that is asked about by itself by [Opened.RecordToolCall]. All phases of a
// turn write into one [Coverage], which says what of the request and of the answer was
// inspected, by which detector, and what was not.
//
// # Tool calls
//
// [Assessed.Judge] asks the interceptor (package kernel/toolcall) about each tool call of
// an answer, and [Judged.Commit] the kernel, because the state that the turn leaves may
// change until then. Commit hands the [Decisions] to its caller, which takes the blocked
// calls out of what leaves, and writes the receipts of the calls with that of the turn
// (calls.go). What tools returned is read in requests and in answers (toolresult.go), and
// a provider that keeps the conversation is told of the calls that the client never got
// (provided.go).
//
// A streamed answer leaves through a [Gate], which keeps text back until it is
// checked.
//
// # Sessions
//
// The caller names a session, or a [Conversation] that the call resends identifies
// it, or the answer of the provider that the call goes on from. The texts that a session
// keeps are encrypted under its own secret, so erasing the secret erases the texts.
//
// # Concurrency
//
// A [Governor] is safe for concurrent use. The phases of one turn belong to one
// goroutine at a time. A Gate is safe for concurrent use.
package govern
