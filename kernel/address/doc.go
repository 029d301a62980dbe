// Package address reads addresses as the clients that connect to them do.
//
// Who wants a tool to ask the metadata service of a cloud need not write 169.254.169.254. So a
// text is parsed as browsers do (the WHATWG URL standard), to which 2852039166, 0xa9fea9fe and
// fullwidth digits are that address (address.go), and the names that public servers resolve to
// what they spell, such as 10.0.0.1.nip.io, are read. [All] finds the addresses in a text, and
// those within them that a redirecting service is asked to go to (text.go).
//
// What an address means for a tool call is judged by package toolcall.
package address
