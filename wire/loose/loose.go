// Package loose reads bodies that no dialect knows. It finds the text in them by their
// header and by their bytes, in any content encoding, charset, form or JSON. A body
// that it cannot read is an error, never an empty text.
package loose

import (
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http" // for DetectContentType alone, which does no I/O
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/wire"
)

// Errors of this package wrap one of these or the error of a decoder.
var (
	ErrNotText  = errors.New("the bytes are not text")
	ErrTooLarge = errors.New("the decoded body is larger than the limit")
	ErrCoding   = errors.New("the bytes are not in the encoding that is named")
	ErrCharset  = errors.New("the charset that is named is not known")
)

// maxCodings is how many content codings a body may have.
const maxCodings = 4

// Decode undoes a Content-Encoding header, the last coding first. The result has
// at most limit bytes.
func Decode(body []byte, codings string, limit int64) ([]byte, error) {
	list := strings.Split(codings, ",")
	if len(list) > maxCodings {
		return nil, ErrNotText
	}
	for _, coding := range slices.Backward(list) {
		var err error
		if body, err = undo(coding, body, limit); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// undo undoes one coding. With an error it returns what was decoded until then.
func undo(coding string, body []byte, limit int64) ([]byte, error) {
	r, err := decoder(strings.ToLower(strings.TrimSpace(coding)), body)
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(r, limit+1))
	if int64(len(plain)) > limit {
		return plain[:limit], ErrTooLarge
	}
	return plain, err
}

func decoder(coding string, body []byte) (io.Reader, error) {
	r := bytes.NewReader(body)
	switch coding {
	case "", "identity":
		return r, nil
	case "gzip", "x-gzip":
		return gzip.NewReader(r)
	case "br":
		return brotli.NewReader(r), nil
	case "zstd":
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
	case "deflate": // the standard means zlib's format, but many send bare DEFLATE
		if z, err := zlib.NewReader(bytes.NewReader(body)); err == nil {
			return z, nil
		}
		return flate.NewReader(r), nil
	}
	return nil, ErrNotText
}

// Body returns the texts of a body with these values of Content-Type and
// Content-Encoding, in every way in which a server may read it, and what has no text, as
// [wire.LooseParts] does. An error means that the body, or a part of it, cannot be read;
// what the other parts hold is returned too. At most limit bytes are decoded.
func Body(contentType, contentEncoding string, body []byte, limit int64) (texts, silent []wire.Part, failed error) {
	ways, lies := readings(body, contentEncoding, limit)
	for _, way := range ways {
		var read parts
		read, failed = inType(contentType, way, limit) // the last way is as the header says
		texts, silent = append(texts, read.texts...), read.silent
	}
	if lies != nil {
		return texts, silent, fmt.Errorf("%w: %w", ErrCoding, lies)
	}
	return texts, silent, failed
}

// parts are what a body holds.
type parts struct{ texts, silent []wire.Part }

func (p *parts) add(more parts) {
	p.texts, p.silent = append(p.texts, more.texts...), append(p.silent, more.silent...)
}

func partsOf(plain []byte) parts {
	texts, silent := wire.LooseParts(plain)
	return parts{texts, silent}
}

// readings returns what servers may take a body for, the bytes themselves first. Many never
// look at Content-Encoding, so a body that is not in the codings that are named, or is text
// before they are undone as well, is read as it is and as far as it was decoded. An error says
// that a coding is not known or could not be undone.
func readings(body []byte, codings string, limit int64) (ways [][]byte, err error) {
	list := strings.Split(codings, ",")
	if len(list) > maxCodings {
		list, err = list[len(list)-maxCodings:], ErrNotText
	}
	if int64(len(body)) > limit {
		body, err = wholeText(body[:limit]), ErrTooLarge
	}
	ways = [][]byte{body}
	for _, coding := range slices.Backward(list) {
		last := ways[len(ways)-1]
		plain, failed := undo(coding, last, limit)
		if failed != nil {
			plain, err = wholeText(plain), failed
		}
		if len(plain) > 0 && !bytes.Equal(plain, last) {
			ways = append(ways, plain)
		}
	}
	if err == nil { // what is packed is not text
		last := len(ways) - 1
		ways = append(slices.DeleteFunc(ways[:last:last], func(way []byte) bool { return !utf8.Valid(way) }), ways[last])
	}
	return ways, err
}

// wholeText takes off the character that a text was cut in.
func wholeText(cut []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(cut); n++ {
		if tail := cut[len(cut)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return cut[:len(cut)-n]
			}
			break
		}
	}
	return cut
}

// inType returns what bytes with this value of Content-Type hold.
func inType(contentType string, body []byte, limit int64) (parts, error) {
	media, params, _ := mime.ParseMediaType(contentType)
	var all parts
	if named := boundaries(contentType, body); len(named) > 0 {
		var failed error
		for _, boundary := range named {
			read, err := formParts(body, boundary, limit)
			all.add(read)
			if err != nil {
				failed = err
			}
		}
		return all, failed
	}
	if media == "application/x-www-form-urlencoded" {
		return queryParts(string(body)), nil
	}
	ways, err := inCharsets(body, params["charset"])
	for _, plain := range ways {
		read := partsOf(plain)
		all.texts, all.silent = append(all.texts, read.texts...), read.silent
	}
	return all, err
}

// boundaries returns the boundaries between the fields of a form, or between the parts of another
// body of several, that the header names and the body has. There is one, unless the header is not
// as the standard says: then some servers take the first for it and others the last.
func boundaries(contentType string, body []byte) (all []string) {
	media, params, err := mime.ParseMediaType(contentType)
	switch {
	case err == nil && strings.HasPrefix(media, "multipart/"):
		all = []string{params["boundary"]}
	case err != nil && strings.HasPrefix(strings.ToLower(strings.TrimSpace(contentType)), "multipart/"):
		found := boundaryParam.FindAllStringSubmatch(contentType, -1)
		for i, groups := range found {
			if i == 0 || i == len(found)-1 {
				all = append(all, cmp.Or(groups[1], groups[2]))
			}
		}
	}
	return slices.DeleteFunc(slices.Compact(all), func(boundary string) bool {
		return boundary == "" || !bytes.Contains(body, []byte("--"+boundary))
	})
}

// boundaryParam is the parameter of a Content-Type that names a boundary.
var boundaryParam = regexp.MustCompile(`(?i)boundary\s*=\s*(?:"([^"]+)"|([^\s;,"]+))`)

// formParts reads the fields of a form, and its files if they are text. It also reads what
// stands before the first field, behind the last one and in their headers: some servers
// show all of it to a model.
//
// What is no form after all is read as it is: many servers are more lenient.
func formParts(body []byte, boundary string, limit int64) (all parts, failed error) {
	whole := body
	before, after := aroundFields(body, "--"+boundary)
	add := func(text []byte) {
		ways, err := inCharsets(text, "")
		if err != nil {
			failed = err
		}
		for _, plain := range ways {
			if len(bytes.TrimSpace(plain)) > 0 {
				all.add(partsOf(plain))
			}
		}
	}
	add(before)
	form := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) {
			add(after)
			return all, failed
		}
		if err != nil {
			add(whole)
			return all, err
		}
		for _, text := range headerTexts(part.Header) {
			add([]byte(text))
		}
		body, err := io.ReadAll(io.LimitReader(part, limit+1))
		if err != nil {
			add(whole)
			return all, err
		}
		if limit -= int64(len(body)); limit < 0 {
			return all, ErrTooLarge
		}
		kind := part.Header.Get("Content-Type")
		if strings.HasPrefix(strings.ToLower(kind), "multipart/") {
			failed = ErrNotText // no API nests forms
			continue
		}
		field, err := inType(kind, body, limit)
		if err != nil {
			failed = err
		}
		if isText := part.FormName() != "" && part.FileName() == "" && kind == ""; isText && err != nil && len(field.texts) == 0 {
			field = partsOf(bytes.ToValidUTF8(body, []byte("\uFFFD"))) // servers read it, whatever it is
		}
		all.add(field)
	}
}

// aroundFields returns what stands before the first delimiter of a form and behind the last.
func aroundFields(body []byte, delimiter string) (before, after []byte) {
	for line := range bytes.Lines(body) {
		rest, ok := bytes.CutPrefix(line, []byte(delimiter))
		if ok && (bytes.HasPrefix(rest, []byte("--")) || len(bytes.TrimSpace(rest)) == 0) {
			break
		}
		before = body[:len(before)+len(line)]
	}
	end := delimiter + "--"
	if behind, ok := bytes.CutPrefix(body, []byte(end)); ok {
		return before, behind
	}
	_, after, _ = bytes.Cut(body, []byte("\n"+end))
	return before, after
}

// headerTexts returns what the headers of a field say besides what every field has: the
// parameters of its usual headers, such as its name, a kind of content that is longer than
// kinds are, and all of the other headers.
func headerTexts(header textproto.MIMEHeader) (texts []string) {
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
			if value == "" && slices.Contains(usualHeaders, name) {
				continue
			}
			first, params, err := mime.ParseMediaType(value)
			if err != nil || !slices.Contains(usualHeaders, name) {
				texts = append(texts, name+": "+value)
				continue
			}
			if len(strings.FieldsFunc(first, func(c rune) bool { return strings.ContainsRune("/.-+_", c) })) > wordsOfKind {
				texts = append(texts, first)
			}
			for _, param := range slices.Sorted(maps.Keys(params)) {
				if !slices.Contains(usualParams, param) {
					texts = append(texts, param)
				}
				texts = append(texts, params[param])
			}
		}
	}
	return texts
}

// wordsOfKind is of how many words the longest kinds of content are.
const wordsOfKind = 6

// The names that stand in the headers of ordinary fields.
var (
	usualHeaders = []string{"Content-Disposition", "Content-Length", "Content-Transfer-Encoding", "Content-Type"}
	usualParams  = []string{"boundary", "charset", "filename", "name"}
)

// queryParts reads the names and values of a URL-encoded form. A field with wrong
// escapes is read as it is.
func queryParts(line string) (all parts) {
	for pair := range strings.SplitSeq(line, "&") {
		for field := range strings.SplitSeq(pair, "=") {
			if text, err := url.QueryUnescape(field); err == nil {
				field = text
			}
			all.add(partsOf([]byte(strings.ToValidUTF8(field, "\uFFFD"))))
		}
	}
	return all
}

// inCharsets returns what servers may read in a text: in the charset that is named or that its
// NULs show, and in UTF-8, if it is that as well. Seven-bit charsets such as ISO-2022-JP always
// are, and so are two ASCII characters for each of UTF-16. An error says that there is a way
// to read it that nobody here knows.
func inCharsets(body []byte, charset string) (ways [][]byte, err error) {
	plain, err := UTF8(body, charset)
	if err == nil {
		ways = append(ways, plain)
	}
	if !utf8.Valid(body) || err != nil && bytes.ContainsFunc(body, func(c rune) bool { return c != 0 && isControl(c) }) {
		if text, ok := leniently(body, charset); ok && err != nil {
			ways = append(ways, text)
		}
		return ways, err // it is no text in UTF-8
	}
	if !bytes.Equal(plain, bytes.ReplaceAll(body, []byte{0}, nil)) { // as UTF-16 and UTF-32 write Latin letters
		ways = append(ways, body)
	}
	if charset == "" || ReadsAsUTF8(charset) {
		return ways, err
	}
	from, unknown := htmlindex.Get(charset)
	if unknown != nil || from == encoding.Replacement {
		return ways, ErrCharset
	}
	named, failed := from.NewDecoder().Bytes(body)
	if failed != nil {
		return ways, ErrCharset
	}
	if !bytes.Equal(named, body) && !bytes.Equal(named, plain) {
		ways = append(ways, named)
	}
	return ways, err
}

// leniently returns what many servers read in a text of which some bytes are none: they put a
// mark in the place of these, and some let half of a surrogate pair pass. What begins as a file
// of a known kind does is no text at all, unless it begins as JSON does.
func leniently(body []byte, charset string) (text []byte, ok bool) {
	plain, _, err := decode(body, charset)
	if err != nil {
		return nil, false
	}
	text = bytes.ToValidUTF8(plain, []byte("\uFFFD"))
	head := bytes.TrimLeft(text, "\uFEFF \t\r\n")
	return text, len(head) > 0 && strings.IndexByte(`{["`, head[0]) >= 0 || !isBinary(body)
}

// ReadsAsUTF8 reports whether a text in a charset says nothing that its bytes do not say in UTF-8.
// In Latin-1 nothing can be hidden that UTF-8 does not show.
func ReadsAsUTF8(charset string) bool {
	return slices.Contains([]string{"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin1"}, strings.ToLower(charset))
}

// UTF8 converts a text from the charset that is named, or that its byte order mark
// shows. Without either the text must be UTF-8, or UTF-16 or UTF-32 in Latin script,
// which its NULs show.
func UTF8(body []byte, charset string) ([]byte, error) {
	plain, guessed, err := decode(body, charset)
	switch {
	case err != nil, !utf8.Valid(plain), guessed && bytes.ContainsFunc(plain, isControl), bytes.IndexByte(plain, 0) >= 0 && isBinary(plain):
		return nil, ErrNotText
	}
	return plain, nil
}

// decode decodes a text as [UTF8] does, whatever comes of it. guessed says that only its NULs
// show its charset.
func decode(body []byte, charset string) (plain []byte, guessed bool, err error) {
	var from encoding.Encoding
	switch {
	case bytes.HasPrefix(body, []byte("\xff\xfe\x00\x00")), bytes.HasPrefix(body, []byte("\x00\x00\xfe\xff")):
		from = utf32.UTF32(utf32.BigEndian, utf32.UseBOM)
	case len(body) > 3 && body[3] != 0 && bytes.HasPrefix(body, []byte("\x00\x00\x00")):
		from, guessed = utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), true
	case len(body) > 3 && body[0] != 0 && bytes.HasPrefix(body[1:], []byte("\x00\x00\x00")):
		from, guessed = utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), true
	case bytes.HasPrefix(body, []byte("\xff\xfe")), bytes.HasPrefix(body, []byte("\xfe\xff")):
		from = unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	case len(body) > 1 && body[0] == 0 && body[1] != 0:
		from, guessed = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), true
	case len(body) > 1 && body[0] != 0 && body[1] == 0:
		from, guessed = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), true
	case !utf8.Valid(body) && charset != "":
		from, _ = htmlindex.Get(charset)
	}
	if from == nil {
		return body, false, nil
	}
	plain, err = from.NewDecoder().Bytes(body)
	return plain, guessed, err
}

// isControl reports whether a character never occurs in text.
func isControl(c rune) bool {
	return c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == utf8.RuneError
}

// isBinary reports whether the bytes begin a file of a known kind that is not text.
func isBinary(head []byte) bool {
	return !strings.HasPrefix(http.DetectContentType(head), "text/")
}

// Texts turns loosely read parts into texts to assess, and separates the
// application's instructions from the other texts. Files in base64 are not texts;
// media is the number of their bytes.
//
// A single short word of ASCII ("prompt", "system", "user") is often a value of the API, and too
// short to judge, so it is left out. Other scripts write whole sentences without a space. The words of one array are read as a sentence.
func Texts(parts []wire.Part) (texts, instructions []detect.Text, media int) {
	var words []string
	for i, p := range parts {
		word := len(p.Text) < leastPhrase && strings.IndexFunc(p.Text, func(c rune) bool { return c <= ' ' || c >= utf8.RuneSelf }) < 0
		switch {
		case isFile(p.Text):
			media += p.Bytes
		case word:
			words = append(words, p.Text)
			if last := i+1 == len(parts) || parts[i+1].Message != p.Message; last || p.Message == 0 {
				if len(words) >= leastSentence {
					texts = append(texts, detect.Text{Source: SourceOf(p), Body: strings.Join(words, " ")})
				}
				words = nil
			}
		case p.Role == wire.System || p.Role == wire.Definition:
			instructions = append(instructions, detect.Text{Source: detect.System, Body: p.Text})
		default:
			texts = append(texts, detect.Text{Source: SourceOf(p), Body: p.Text})
		}
	}
	return texts, instructions, media
}

// Rest returns the texts of a body that none of its parts holds: what the dialect that the
// parts are read in keeps from its models, and another server may not. Files that the body
// names and none of the parts stands for are among them, without text.
func Rest(body []byte, held []wire.Part) (rest []wire.Part) {
	known := make(map[string]int)
	for _, p := range held {
		if known[p.Text]++; !strings.Contains(p.Text, "\n") {
			continue
		}
		for line := range strings.SplitSeq(p.Text, "\n") { // texts that were gathered
			known[line]++
		}
	}
	all, silent := wire.LooseParts(body)
	said, instructions, _ := Texts(slices.DeleteFunc(all, func(p wire.Part) bool {
		known[p.Text]--
		return known[p.Text] >= 0
	}))
	add := func(texts []detect.Text, role wire.Role) {
		for _, t := range texts {
			path := "rest." + strconv.Itoa(len(rest))
			rest = append(rest, wire.Part{Path: path, Role: role, Kind: wire.Text, Text: t.Body, Bytes: len(t.Body)})
		}
	}
	add(said, wire.Other)
	add(instructions, wire.Definition)
	listed := make(map[wire.Kind]int)
	for _, p := range held {
		if p.Text == "" {
			listed[p.Kind]++
		}
	}
	for _, p := range silent {
		if listed[p.Kind]--; listed[p.Kind] < 0 {
			p.Path, p.Role = "rest."+strconv.Itoa(len(rest)), wire.Other
			rest = append(rest, p)
		}
	}
	return rest
}

// leastPhrase is the length, in bytes, from which a string without a space is read
// alone.
const leastPhrase = 24

// leastSentence is how many words of one array make a sentence. Fewer words are often
// a list of categories.
const leastSentence = 5

// leastFile is the least length of a file in base64, in characters, that no data: URL
// says to be one. The first fileHead characters show its kind.
const (
	leastFile = 256
	fileHead  = 64
)

// isFile reports whether the whole text is a file of a known binary kind in base64,
// with or without the beginning of a data: URL.
func isFile(s string) bool {
	least := leastFile
	if strings.HasPrefix(s, "data:") {
		_, s, _ = strings.Cut(s, ";base64,")
		least = fileHead
	}
	if len(s) < least || strings.IndexFunc(s, notBase64) >= 0 {
		return false
	}
	head, err := base64.StdEncoding.DecodeString(s[:fileHead])
	if err != nil {
		head, err = base64.URLEncoding.DecodeString(s[:fileHead])
	}
	kind := http.DetectContentType(head)
	return err == nil && kind != "application/octet-stream" && !strings.HasPrefix(kind, "text/")
}

func notBase64(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("+/-_=\r\n", c)
}

// SourceOf returns the source that a detector reads a part's text as: a user's words, what an
// application put beside them, or what a tool says, and documents are read like results of tools. A document is what the user's message quotes.
// Anything else of that kind, such as the summary of a conversation that the model wrote
// and the client sends back, can be the client's own words.
func SourceOf(p wire.Part) detect.Source {
	if p.Context {
		return detect.Context
	}
	if p.Role == wire.Tool || p.Role == wire.User && p.Kind == wire.Document {
		return detect.Tool
	}
	return detect.User
}
