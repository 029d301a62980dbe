// Package wire reads and writes the APIs of language models: bytes in, values
// out. It does no I/O, knows no time and keeps no state beyond a stream.
//
// # Dialects
//
// A [Dialect] is one API. Its [Reader] takes a request or an answer apart into
// a list of parts, each with the path of its value, who speaks ([Role]), what
// it is ([Kind]) and its text. Its [Writer] makes refusals and errors that the
// API's official clients take for ordinary answers and errors. A body is never
// encoded again from what was read: it is forwarded byte for byte as it came,
// except that [Apply] and [Redact] may replace the values of some parts in place.
//
// # Tool calls
//
// A dialect reads the calls of an answer, whole or in pieces ([CallDelta]), as the clients
// of the API do; a [CallGatherer] puts pieces together, and fails where clients would
// differ. A [CallEditor] and a [StreamCallEditor] take blocked calls out of an answer, in
// the files that end in _calls and _edit. All edits of bytes are changes (changes.go).
//
// # One reading
//
// A governor that reads a body differently from the server behind it inspects
// one text and forwards another. Therefore a body must leave no choice: valid
// JSON in UTF-8, one value, no member twice, none that differs from a known one
// by case only, no lone surrogate, no NUL. Everything else is [ErrInvalid].
// [CheckJSON] is the part of this that holds for any JSON from a stranger. A body
// that belongs to no dialect can still be read for its texts ([LooseParts]).
//
// # Closed world
//
// A dialect writes down every member that it knows as a table of schemas. The
// rest is not ignored: it becomes a part of kind [Unknown], so that a receipt
// can say what nobody looked at. Parts that cannot be read as text (images,
// token ids) are listed too, without text.
//
// # Streams
//
// A [Splitter] cuts a stream into frames that keep their exact bytes, by the dialect's
// [Framing]. A dialect's [EventReader] reads a frame into an [Event], without parsing it if
// only its text differs from the frame before (template.go). [HoldBack] keeps the newest
// frames until enough text behind them was inspected. None of them depends on how the
// network cut the stream. Where a stream has to end in words of ours, the
// dialect's [StreamWriter] knows how, because it has followed what the client got.
//
// Start reading at dialect.go, then walk.go for how a schema takes a body apart,
// and openai_chat_schema.go for a schema.
package wire
