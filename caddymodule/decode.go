package caddymodule

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/wire"
)

// The bounds of a governance request.
const (
	maxGovernBody = 128 << 10 // bytes
	maxPrompt     = 8000      // Unicode code points, of the prompt or of one message
	maxMessages   = 100
	maxSessionID  = 128 // characters
	maxTurn       = 100_000
)

// governRequest is the validated body of POST /lex/govern.
type governRequest struct {
	Prompt       string
	Messages     []wire.Message // the whole conversation, of which Prompt is the end; nil without one
	SessionID    string
	Turn         int
	IdentityMode string
}

// decodeGovern reads and checks a body in the interface's order: size, JSON,
// prompt or messages, session_id, turn, identity_mode.
func decodeGovern(w http.ResponseWriter, r *http.Request, policy *Policy) (governRequest, *apiError) {
	body, apiErr := readBody(w, r, maxGovernBody)
	if apiErr != nil {
		return governRequest{}, apiErr
	}
	members, apiErr := decodeObject(body, "prompt", "messages", "session_id", "turn", "identity_mode")
	if apiErr != nil {
		return governRequest{}, apiErr
	}
	req := governRequest{Turn: 1, IdentityMode: policy.Identity}
	checks := []func(*governRequest, map[string]gjson.Result) *apiError{
		(*governRequest).readPrompt, (*governRequest).readSession, (*governRequest).readTurn,
	}
	for _, check := range checks {
		if apiErr := check(&req, members); apiErr != nil {
			return governRequest{}, apiErr
		}
	}
	return req, req.readIdentity(members, policy.IdentityModes)
}

// Each bodyPart of a body must arrive within bodyTime: a client that sends a byte
// now and then must not hold a request, and what it sent, for ever.
const (
	bodyTime = 30 * time.Second
	bodyPart = 1 << 20
)

// bodyAtOnce is how much memory the header of a call can make us take at once: enough for
// the body of most calls.
const bodyAtOnce = 16 << 10

// readBody reads a body of at most limit bytes. Beyond bodyAtOnce it takes memory as
// the bytes arrive, whatever the header announces. Errors of SetReadDeadline are dropped:
// only the writers of tests know no deadlines.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, *apiError) {
	connection := http.NewResponseController(w)
	announced := int(min(max(r.ContentLength, 0), bodyAtOnce))
	from := &endingReader{Reader: http.MaxBytesReader(w, r.Body, limit), ended: r.ContentLength == 0}
	body, apiErr := readParts(from, announced, func() { _ = connection.SetReadDeadline(time.Now().Add(bodyTime)) })
	switch {
	case r.ProtoMajor == 1 && apiErr != nil: // otherwise net/http waits for the rest before it answers
		w.Header().Set("Connection", "close")
	case r.ProtoMajor > 1 && apiErr == nil:
		_ = connection.SetReadDeadline(time.Time{})
	}
	return body, apiErr
}

// An endingReader knows whether it came to the end. From there on net/http waits in HTTP/1 for
// the client to leave, with no deadline. One that is set after that would end the request when
// it is over, and so would the removal of ours: Caddy puts the one of its option read_body in
// place of it.
type endingReader struct {
	io.Reader
	ended bool
}

func (r *endingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.ended = r.ended || errors.Is(err, io.EOF)
	return n, err //nolint:wrapcheck // an end has to stay io.EOF
}

func readParts(from *endingReader, announced int, beforeEach func()) ([]byte, *apiError) {
	var body bytes.Buffer
	body.Grow(announced + bytes.MinRead) // where ReadFrom looks for the end
	var err error
	for err == nil {
		if !from.ended {
			beforeEach()
		}
		_, err = io.CopyN(&body, from, bodyPart)
	}
	var tooLarge *http.MaxBytesError // our limit, or the one of Caddy's request_body
	switch {
	case errors.As(err, &tooLarge):
		return nil, errBodyTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errBodyTimeout
	case !errors.Is(err, io.EOF): // among them io.ErrUnexpectedEOF
		return nil, errBodyRead
	}
	return body.Bytes(), nil
}

// settleBody returns the request as it is once the first byte of its body came or none will.
// Over HTTP/3 no request says that it has no body: a GET, or the preflight of a browser,
// would be taken for a call with an empty one. (Behind the end no deadline is set in
// HTTP/1; see endingReader.)
func settleBody(w http.ResponseWriter, r *http.Request) *http.Request {
	if r.ContentLength >= 0 || r.Method == http.MethodPost || upgrades(r) {
		return r
	}
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(time.Now().Add(bodyTime))
	first := make([]byte, 1)
	n, err := io.ReadFull(r.Body, first)
	if err == nil || r.ProtoMajor > 1 {
		_ = connection.SetReadDeadline(time.Time{})
	}
	settled := r.WithContext(r.Context())
	if errors.Is(err, io.EOF) {
		settled.Body, settled.ContentLength, settled.TransferEncoding, settled.Trailer = http.NoBody, 0, nil, nil
		return settled
	}
	settled.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(first[:n]), r.Body), r.Body} // which repeats its error
	return settled
}

// decodeObject checks that body is one JSON object in valid UTF-8 with no
// duplicate names, and returns its members; a member whose name is one of
// known in another case is refused, since readers differ on whether it counts.
func decodeObject(body []byte, known ...string) (map[string]gjson.Result, *apiError) {
	if wire.CheckJSON(body) != nil {
		return nil, errInvalidJSON
	}
	object := gjson.ParseBytes(body)
	if !object.IsObject() {
		return nil, errInvalidJSON
	}
	return members(object, known...)
}

// members returns the members of an object, none of which is a known name in
// another case.
func members(object gjson.Result, known ...string) (map[string]gjson.Result, *apiError) {
	found := make(map[string]gjson.Result)
	variant := false
	object.ForEach(func(key, value gjson.Result) bool {
		for _, name := range known {
			variant = variant || (key.Str != name && strings.EqualFold(key.Str, name))
		}
		found[key.Str] = value
		return true
	})
	if variant {
		return nil, errInvalidJSON
	}
	return found, nil
}

// readPrompt reads the prompt, or the conversation that stands in its place.
func (q *governRequest) readPrompt(m map[string]gjson.Result) (apiErr *apiError) {
	switch {
	case !given(m["messages"]):
		q.Prompt, apiErr = promptText(m["prompt"], errMissingPrompt, errPromptTooLong)
	case given(m["prompt"]):
		apiErr = errInvalidMessages.withMessage("Give either prompt or messages.")
	default:
		apiErr = q.readMessages(m["messages"])
	}
	return apiErr
}

// given reports whether a member is there: null counts as absent.
func given(v gjson.Result) bool { return v.Exists() && v.Type != gjson.Null }

func promptText(v gjson.Result, missing, tooLong *apiError) (string, *apiError) {
	text, apiErr := requiredString(v, missing)
	if apiErr == nil && utf8.RuneCountInString(text) > maxPrompt {
		apiErr = tooLong
	}
	return text, apiErr
}

// messageRoles are the roles that a message may have.
var messageRoles = []string{string(wire.System), string(wire.User), string(wire.Assistant)}

// readMessages reads a conversation that ends with the user's prompt.
func (q *governRequest) readMessages(v gjson.Result) *apiError {
	if n := v.Get("#").Int(); !v.IsArray() || n < 1 || n > maxMessages {
		return errInvalidMessages
	}
	for _, element := range v.Array() {
		if !element.IsObject() {
			return errInvalidMessages
		}
		m, apiErr := members(element, "role", "content")
		if apiErr != nil {
			return apiErr
		}
		role := m["role"]
		if role.Type != gjson.String || !slices.Contains(messageRoles, role.Str) {
			return errInvalidMessages
		}
		text, apiErr := promptText(m["content"],
			errMissingPrompt.withMessage("The content of each message is required and must not be blank."),
			errPromptTooLong.withMessage("The content of a message exceeds 8000 characters."))
		if apiErr != nil {
			return apiErr
		}
		q.Messages = append(q.Messages, wire.Message{Role: wire.Role(role.Str), Text: text})
	}
	last := q.Messages[len(q.Messages)-1]
	if last.Role != wire.User {
		return errInvalidMessages
	}
	q.Prompt = last.Text
	return nil
}

func (q *governRequest) readSession(m map[string]gjson.Result) *apiError {
	id, apiErr := requiredString(m["session_id"], errMissingSession)
	if apiErr == nil && !validSessionID(id) {
		apiErr = errInvalidSession
	}
	q.SessionID = id
	return apiErr
}

// requiredString reads a string that must be there and not be blank.
func requiredString(v gjson.Result, missing *apiError) (string, *apiError) {
	switch {
	case !given(v):
		return "", missing
	case v.Type != gjson.String:
		return "", errInvalidType
	case strings.TrimSpace(v.Str) == "":
		return "", missing
	}
	return v.Str, nil
}

func validSessionID(id string) bool {
	return utf8.ValidString(id) && utf8.RuneCountInString(id) <= maxSessionID &&
		!strings.ContainsFunc(id, unicode.IsControl) && strings.TrimSpace(id) != ""
}

// readTurn accepts only the JSON form of an integer: 2.0 and "2" are refused.
func (q *governRequest) readTurn(m map[string]gjson.Result) *apiError {
	v, ok := m["turn"]
	if !ok || v.Type == gjson.Null {
		return nil
	}
	n, ok := integer(v)
	if !ok || n < 1 || n > maxTurn {
		return errInvalidTurn
	}
	q.Turn = n
	return nil
}

// integer reads a number that is written as one, without fraction or exponent.
func integer(v gjson.Result) (int, bool) {
	n, err := strconv.Atoi(v.Raw)
	return n, v.Type == gjson.Number && err == nil
}

// readIdentity accepts the modes that the policy allows.
func (q *governRequest) readIdentity(m map[string]gjson.Result, allowed []string) *apiError {
	v, ok := m["identity_mode"]
	if !ok || v.Type == gjson.Null {
		return nil
	}
	for _, mode := range allowed {
		if v.Type == gjson.String && v.Str == mode {
			q.IdentityMode = mode
			return nil
		}
	}
	return errInvalidIdentity.withMessage("identity_mode must be one of " + strings.Join(allowed, ", ") + ".")
}
