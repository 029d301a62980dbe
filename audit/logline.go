package audit

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// A line of a log has one form, so that the bytes of the record stand in it as they are
// stored and are found without an encoder: {"seq":1,"log_prev":"…","receipt":{…}}.
const (
	seqMember     = `{"seq":`
	logPrevMember = `,"log_prev":"`
	receiptMember = `","receipt":`
)

// AppendLogLine appends a receipt as a line of JSON, with its place in the log. The record
// is written byte for byte. A damaged one that is not JSON on one line is null, and a
// damaged link is empty: a line of the log stays a line, and verifying it shows the fault.
func AppendLogLine(line []byte, entry store.Receipt) []byte {
	line = strconv.AppendUint(append(line, seqMember...), entry.Seq, 10)
	line = append(line, logPrevMember...)
	if kernel.IsHex256(entry.LogPrev) {
		line = append(line, entry.LogPrev...)
	}
	line = append(line, receiptMember...)
	if isOneLine(entry.JSON) {
		line = append(line, entry.JSON...)
	} else {
		line = append(line, "null"...)
	}
	return append(line, "}\n"...)
}

// isGone reports whether the record is that of a place without one, in a store or on a line.
func isGone(record []byte) bool { return len(record) == 0 || string(record) == "null" }

func isOneLine(record []byte) bool {
	return !bytes.ContainsAny(record, "\r\n") && jsontext.Value(record).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// ParseLogLine reads a line that [AppendLogLine] wrote, without its end. The receipt has
// the record and the place, and shares its memory with line. known says that the line has
// that form; record and link are not looked at.
func ParseLogLine(line []byte) (entry store.Receipt, known bool) {
	rest, isLine := bytes.CutPrefix(line, []byte(seqMember))
	seq, rest, hasLink := bytes.Cut(rest, []byte(logPrevMember))
	link, rest, hasRecord := bytes.Cut(rest, []byte(receiptMember))
	record, ended := bytes.CutSuffix(rest, []byte("}"))
	number, err := strconv.ParseUint(string(seq), 10, 64)
	if !isLine || !hasLink || !hasRecord || !ended || err != nil || number == 0 {
		return store.Receipt{}, false
	}
	return store.Receipt{Seq: number, LogPrev: string(link), JSON: record}, true
}
