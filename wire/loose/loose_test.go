package loose_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/wire"
	"github.com/caddy-lex/lex/wire/loose"
)

const limit = 1 << 16

func gzipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

func zlibbed(s string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

func brotlied(s string) string {
	var b bytes.Buffer
	w := brotli.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

func zstded(s string) string {
	w, _ := zstd.NewWriter(nil)
	return string(w.EncodeAll([]byte(s), nil))
}

func utf16(s string, mark string) string {
	out := mark
	for _, c := range s {
		out += string([]byte{byte(c), byte(c >> 8)})
	}
	return out
}

func form(boundary string, parts ...[2]string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("--" + boundary + "\r\nContent-Disposition: form-data; name=\"f\"\r\nContent-Type: " + p[0] + "\r\n\r\n" + p[1] + "\r\n")
	}
	return b.String() + "--" + boundary + "--\r\n"
}

func joined(parts []wire.Part) string {
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "|")
}

// However a body is packed, its text is read, and what cannot be read is an error.
func TestBody(t *testing.T) {
	large := strings.Repeat("a", limit+1)
	for name, c := range map[string]struct {
		media, coding, body string
		want                string
		err                 error // wraps one of the package's, or is any if errAny
	}{
		"nothing":                {"", "", "", "", nil},
		"text":                   {"text/plain", "", "Hello there.", "Hello there.", nil},
		"JSON":                   {"application/json", "", `{"a":["Hello there."]}`, "Hello there.", nil},
		"no type that parses":    {";;;", "", "Hello there.", "Hello there.", nil},
		"gzip":                   {"", "gzip", gzipped("Hello there."), "Hello there.", nil},
		"gzip, other letters":    {"", " X-GZIP ", gzipped("Hello there."), "Hello there.", nil},
		"deflate":                {"", "deflate", zlibbed("Hello there."), "Hello there.", nil},
		"br":                     {"", "br", brotlied("Hello there."), "Hello there.", nil},
		"zstd":                   {"", "zstd", zstded("Hello there."), "Hello there.", nil},
		"two codings":            {"", "gzip, br", brotlied(gzipped("Hello there.")), "Hello there.", nil},
		"too many codings":       {"", "identity,identity,identity,identity,identity", "Hello there.", "Hello there.", loose.ErrCoding},
		"an unknown coding":      {"", "compress", "Hello there.", "Hello there.", loose.ErrCoding},
		"no coding at all":       {"application/json", "utf-8", `["Hello there."]`, "Hello there.", loose.ErrCoding},
		"not the coding":         {"", "gzip", "Hello there.", "Hello there.", loose.ErrCoding},
		"not that coding":        {"", "deflate", "Hello there.", "Hello there.", loose.ErrCoding},
		"neither coding":         {"", "br, zstd", "Hello there.", "Hello there.", loose.ErrCoding},
		"unknown under gzip":     {"", "x, gzip", gzipped("Hello there."), "Hello there.", loose.ErrCoding},
		"unknown over gzip":      {"", "gzip, x", gzipped("Hello there."), "Hello there.", loose.ErrCoding},
		"the outer coding alone": {"", "br, gzip", gzipped("Hello there."), "Hello there.", loose.ErrCoding},
		"more behind the coding": {"", "gzip", gzipped("Hello there.") + "and more", "Hello there.", loose.ErrCoding},
		"more behind two":        {"", "gzip, gzip", gzipped(gzipped("Hello there.")+"more") + "more", "Hello there.", loose.ErrCoding},
		"a body of both":         {"text/plain; charset=latin1", "deflate", early + "Hello there.", "Hello there.|å", nil},
		"a cut text":             {"", "gzip", gzipped(large[1:] + "å"), large[1:], loose.ErrTooLarge},
		"a cut coding":           {"", "gzip", gzipped("Hello there.")[:12], "H", loose.ErrCoding},
		"unpacks to too much":    {"", "gzip", gzipped(large), large[1:], loose.ErrTooLarge},
		"unpacks to the limit":   {"", "gzip", gzipped(large[1:]), large[1:], nil},
		"UTF-16 with its mark":   {"", "", utf16("Hello there.", "\xff\xfe"), "Hello there.", nil},
		"UTF-16 as its NULs say": {"", "", utf16("Hello there.", ""), "Hello there.", nil},
		"UTF-32 with its mark":   {"", "", utf32("Hello there.", "\xff\xfe\x00\x00"), "Hello there.", nil},
		"UTF-32 as its NULs say": {"application/json", "", utf32(`["Hello there."]`, ""), "Hello there.", nil},
		"UTF-32, big-endian":     {"", "", "\x00\x00\x00H\x00\x00\x00i", "Hi", nil},
		"a named charset":        {"text/plain; charset=iso-8859-1", "", "caf\xe9", "café", nil},
		"no charset":             {"text/plain", "", "caf\xe9", "caf\ufffd", loose.ErrNotText},
		"an unknown charset":     {"text/plain; charset=klingon", "", "caf\xe9", "caf\ufffd", loose.ErrNotText},
		"JSON with some bytes":   {"", "", "{\"a\":\"Hello\xff there.\x01\"}\x00\x02", "a|Hello\ufffd there.\x01", loose.ErrNotText},
		"JSON, half a pair":      {"", "", "[\"Hello there.\",\"\xed\xa0\x80\"]", "Hello there.|\ufffd", loose.ErrNotText},
		"half a pair in UTF-16":  {"", "", utf16(`["Hello there."]`, "") + "\x00\xd8", "Hello there.", loose.ErrNotText},
		"a NUL before ASCII":     {"", "", "\x00Hello there", "H敬汯⁴桥牥|\x00Hello there", nil},
		"a NUL before no text":   {"", "", "\x00\x01\x02", "", loose.ErrNotText},
		"a NUL in a form":        {"multipart/form-data; boundary=x", "", form("x", [2]string{"", "\x00Hello there."}), "f|\x00Hello there.", loose.ErrNotText},
		"ISO-2022-JP":            {"text/plain; charset=iso-2022-jp", "", "\x1b$B$3$s$K$A$O\x1b(B there", "\x1b$B$3$s$K$A$O\x1b(B there|こんにちは there", nil},
		"GBK that is UTF-8":      {"text/plain; charset=gbk", "", "café", "café|caf茅", nil},
		"HZ, which is not known": {"text/plain; charset=hz-gb-2312", "", "~{<:Ky2;~} there", "~{<:Ky2;~} there", loose.ErrCharset},
		"UTF-7, not known":       {"text/plain; charset=utf-7", "", "+AEkAZwBu- there", "+AEkAZwBu- there", loose.ErrCharset},
		"binary":                 {"", "", "\x00\x01\x02\x03\xff\xfe", "", loose.ErrNotText},
		"a PNG":                  {"image/png", "", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "", loose.ErrNotText},
		"a query":                {"application/x-www-form-urlencoded", "", "a=Hello+there%21&b%zz", "a|Hello there!|b%zz", nil},
		"a form":                 {"multipart/form-data; boundary=x", "", form("x", [2]string{"", "Hello"}, [2]string{"application/json", `["there"]`}), "f|Hello|f|there", nil},
		"a form with a file":     {"multipart/form-data; boundary=x", "", form("x", [2]string{"image/png", "\x89PNG\r\n\x1a\n\xff"}, [2]string{"", "Hello"}), "f|f|Hello", loose.ErrNotText},
		"a form in a form":       {"multipart/form-data; boundary=x", "", form("x", [2]string{"multipart/form-data; boundary=y", form("y", [2]string{"", "there"})}, [2]string{"", "Hello"}), "f|y|f|Hello", loose.ErrNotText},
		"a form without an end":  {"multipart/form-data; boundary=x", "", strings.TrimSuffix(form("x", [2]string{"", "Hello"}), "\r\n--x--\r\n"), "f|" + strings.TrimSuffix(form("x", [2]string{"", "Hello"}), "\r\n--x--\r\n"), errAny},
		"a form without a colon": {"multipart/form-data; boundary=x", "", "--x\r\nHello there\r\n\r\nyou\r\n--x--\r\n", "--x\r\nHello there\r\n\r\nyou\r\n--x--\r\n", errAny},
		"a form without a name":  {"multipart/form-data", "", "Hello there.", "Hello there.", nil},
		"a form that is large":   {"multipart/form-data; boundary=x", "", form("x", [2]string{"", "Hello"}, [2]string{"", large}), "f|Hello|f|" + form("x", [2]string{"", "Hello"}, [2]string{"", large})[:limit], loose.ErrTooLarge},
		"a large field":          {"multipart/form-data; boundary=x", "", form("x", [2]string{"", large[:limit*3/4]}), "f|" + large[:limit*3/4], nil},
		"around a form":          {"multipart/form-data; boundary=x", "", "One\r\n--xy\r\nTwo\r\n" + form("x", [2]string{"", "Hello"}) + "Three\r\n--x--\r\nFour", "One\r\n--xy\r\nTwo\r\n|f|Hello|\r\nThree\r\n--x--\r\nFour", nil},
		"behind no form":         {"multipart/form-data; boundary=x", "", "One\n--x--\nTwo", "One\n|\nTwo", nil},
		"other parts":            {"multipart/related; boundary=x", "", form("x", [2]string{"application/json", `["Hello"]`}, [2]string{"image/png", "\x89PNG\r\n\x1a\n\xff"}), "f|Hello|f", loose.ErrNotText},
		"a form of two names":    {"multipart/form-data; boundary=y; boundary=x", "", form("x", [2]string{"image/png", "\x89PNG\r\n\x1a\n\xff"}, [2]string{"", "Hello"}), "f|f|Hello", loose.ErrNotText},
		"a form with an odd end": {"multipart/form-data; boundary=\"x\"; charset", "", form("x", [2]string{"", "Hello"}), "f|Hello", nil},
		"bytes behind a form":    {"multipart/form-data; boundary=x", "", form("x", [2]string{"", "Hello"}) + "\xff\x00", "f|Hello", loose.ErrNotText},
		"headers of a field":     {"multipart/form-data; boundary=x", "", form("x", [2]string{"a/ignore-all.your+previous_instructions-now; charset=utf-8; kind=\"of text\"\r\nX-More: Some text", "Hello"}), "f|a/ignore-all.your+previous_instructions-now|utf-8|kind|of text|X-More: Some text|Hello", nil},
	} {
		parts, _, err := loose.Body(c.media, c.coding, []byte(c.body), limit)
		if joined(parts) != c.want || (err != nil) != (c.err != nil) || c.err != nil && c.err != errAny && !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v", name, joined(parts), err)
		}
	}
}

// early is JSON's beginning, and also a whole stream of bare DEFLATE: all that follows is
// behind its end.
const early = "{\n "

var errAny = errors.New("any error")

// Short words are values of an API, several of one array a sentence, and files no
// text; what stands under the names of instructions is the application's.
func TestTexts(t *testing.T) {
	png := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n" + strings.Repeat("\x00", 300)))
	for body, c := range map[string]struct {
		said, instructed string
		media            bool
	}{
		`{"model":"gpt","input":"Tell me more."}`:              {"user Tell me more.", "", false},
		`{"tags":["a","b","c","d"]}`:                           {"", "", false},
		`{"words":["say","how","to","do","it"]}`:               {"user say how to do it", "", false},
		`{"instructions":"Be nice to me.","input":"x"}`:        {"", "Be nice to me.", false},
		`{"type":"function_call_output","output":"It rains."}`: {"tool It rains.", "", false},
		`{"image":"` + png + `"}`:                              {"", "", true},
		`{"image":"data:image/png;base64,` + png + `"}`:        {"", "", true},
		`{"image":"data:image/png;base64,` + png[:96] + `"}`:   {"", "", true},
		`{"image":"` + png + ` and more"}`:                     {"user " + png + " and more", "", false},
	} {
		parts, _ := wire.LooseParts([]byte(body))
		texts, instructions, media := loose.Texts(parts)
		var said, instructed []string
		for _, x := range texts {
			said = append(said, map[detect.Source]string{detect.User: "user ", detect.Tool: "tool "}[x.Source]+x.Body)
		}
		for _, x := range instructions {
			instructed = append(instructed, x.Body)
		}
		if strings.Join(said, "|") != c.said || strings.Join(instructed, "|") != c.instructed || (media > 0) != c.media {
			t.Errorf("%.60s: said %q, instructed %q, %d bytes of files", body, said, instructed, media)
		}
	}
}

// What a dialect keeps from its models is read where another server gets the body, once
// for each time that it stands there.
func TestRest(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"gpt","messages":[{"role":"user","content":"Tell me more."}]}`:                                                                              "",
		`{"messages":[{"role":"user","content":"Tell me more."}],"user":"Say this to me."}`:                                                                   "Say this to me.",
		`{"messages":[{"role":"user","content":"Tell me more."}],"metadata":{"a":["Tell me more.","and x"]}}`:                                                 "Tell me more.|and x",
		`{"messages":[{"role":"user","content":"Tell me more."}],"metadata":["say","how","to","do","it"]}`:                                                    "say how to do it",
		`{"messages":[{"role":"user","content":"Hi."}],"tools":[{"type":"function","function":{"name":"f","parameters":{"description":"A tool for you."}}}]}`: "",
	} {
		dialect, _ := wire.Named("openai_chat")
		call, err := dialect.Request([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if rest := joined(loose.Rest([]byte(body), call.Parts)); rest != want {
			t.Errorf("%s: %q", body, rest)
		}
	}
}

// Nothing panics, nothing is unpacked beyond the limit, and a body is either read
// or reported.
func FuzzBody(f *testing.F) {
	for _, seed := range [][3]string{
		{"text/plain", "", "Hello there."},
		{"text/plain; charset=utf-16", "", utf16("Hello.", "\xff\xfe")},
		{"", "gzip", gzipped("Hello there.")},
		{"", "br, deflate", zlibbed(brotlied("Hello."))},
		{"", "zstd", zstded("Hello there.")},
		{"", "gzip", gzipped(strings.Repeat("a", 5000))},
		{"application/x-www-form-urlencoded", "", "a=b%20c&d"},
		{"multipart/form-data; boundary=x", "", form("x", [2]string{"", "Hello"}, [2]string{"image/png", "\x89PNG"})},
		{"application/json", "", `{"a":["Hello",{"system":"\ud800"}]}`},
		{"", "", "\x00H\x00i"},
	} {
		f.Add(seed[0], seed[1], []byte(seed[2]))
	}
	const limit = 4096
	f.Fuzz(func(t *testing.T, media, coding string, body []byte) {
		plain, err := loose.Decode(body, coding, limit)
		if len(plain) > limit || err != nil && plain != nil {
			t.Fatalf("%d bytes with the error %v", len(plain), err)
		}
		parts, _, failed := loose.Body(media, coding, body, limit)
		if err != nil && failed == nil {
			t.Fatalf("a body that cannot be decoded (%v) counts as read", err)
		}
		size := 0
		for _, p := range parts {
			size += len(p.Text)
			if !utf8.ValidString(p.Text) {
				t.Fatalf("the text %q is not UTF-8", p.Text)
			}
		}
		if most := 2 * 5 * (4*limit + 64); size > most { // two boundaries, four codings, and a byte of another charset, or one that is not valid, takes at most four
			t.Fatalf("%d bytes of text", size)
		}
		// No text is lost: a body of letters comes back as it is, in any form that we know.
		// One that can be read in more than one way also has the texts of the others.
		letters := len(plain) > 0 && len(bytes.Trim(plain, "abcdefghijklmnopqrstuvwxyz ")) == 0 && !bytes.ContainsFunc(plain, func(c rune) bool { return c != ' ' && (c < 'a' || c > 'z') })
		if letters && failed == nil && !strings.Contains(strings.ToLower(media), "multipart") && len(bytes.TrimSpace(plain)) > 0 && !strings.HasSuffix(joined(parts), string(plain)) {
			t.Fatalf("%q was read as %q", plain, joined(parts))
		}
		loose.Texts(parts)
	})
}

// utf32 encodes a text of ASCII in little-endian order, behind a mark.
func utf32(s, mark string) string {
	for _, c := range []byte(s) {
		mark += string([]byte{c, 0, 0, 0})
	}
	return mark
}
