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
// A turn without an answer to judge goes from [Assessed.NotJudged] to Commit, and
// a tool call from [Opened.RecordToolCall]. All phases of a turn write into one
// [Coverage]: what of the request and of the answer was inspected, by which
// detector, and what was not.
//
// A streamed answer leaves through a [Gate], which keeps back as much text as a
// check still may have to stop.
//
// # Sessions
//
// A session is named by the caller, or it is known again by the conversation that
// the call resends ([Conversation]). What it keeps is sealed under its own secret:
// erasing the secret erases the texts.
//
// # Concurrency
//
// A [Governor] is safe for concurrent use. The phases of one turn belong to one
// goroutine at a time. A Gate is safe for concurrent use.
package govern
