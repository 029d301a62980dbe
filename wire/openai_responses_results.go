package wire

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// The results that stand for those of blocked calls
// (https://platform.openai.com/docs/api-reference/responses/create).

// textResult makes results that are text.
func textResult(kind, idMember string) func(id, note string) any {
	return func(id, note string) any { return map[string]string{"type": kind, idMember: id, "output": note} }
}

func failedCommand(id, note string) any {
	failed := map[string]any{"stdout": "", "stderr": note, "outcome": map[string]any{"type": "exit", "exit_code": 1}}
	return map[string]any{"type": "shell_call_output", "call_id": id, "output": []any{failed}}
}

func failedPatch(id, note string) any {
	return map[string]string{"type": "apply_patch_call_output", "call_id": id, "status": "failed", "output": note}
}

// nothingFound has no place for the note.
func nothingFound(id, _ string) any {
	return map[string]any{"type": "tool_search_output", "call_id": id, "execution": "client", "status": "completed", "tools": []any{}}
}

func notApproved(id, note string) any {
	return map[string]any{"type": "mcp_approval_response", "approval_request_id": id, "approve": false, "reason": note}
}

// AnswerCalls implements [CallAnswerer]. Results are added where the call goes on from what
// the provider keeps, because it answers 400 to a call of its own without one. In a body
// that brings the history itself no blocked call stands, but there may be the reasoning
// that led to it. The provider answers 400 to that, too ("reasoning was provided without
// its required following item"), so reasoning right before a message of ours is left out
// as a whole, and so is a reference to it. A reference to the message in the place of a
// call becomes its note. Errors wrap [ErrInvalid] or [ErrCalls].
func (responses) AnswerCalls(body []byte, blocked []BlockedCall) ([]byte, error) {
	root, err := parse(body)
	if err != nil {
		return nil, err
	}
	if err := checkResponses(root); err != nil {
		return nil, err
	}
	input := gjson.GetBytes(body, "input")
	var results []byte
	if conversation := root.Get("conversation"); root.Get("previous_response_id").Str != "" || conversation.Str != "" || conversation.IsObject() {
		if results, err = missingResults(input, blocked); err != nil {
			return nil, err
		}
	}
	edits := replayed(input, blocked)
	if len(results) > 0 {
		edits = append(edits, insertResults(body, input, results))
	}
	return edits.apply(body), nil
}

// missingResults are results for the calls that an input has none for, with a comma
// between them.
func missingResults(input gjson.Result, blocked []BlockedCall) ([]byte, error) {
	has := make(map[string]bool)
	if input.IsArray() {
		input.ForEach(func(_, item gjson.Result) bool {
			if kind := item.Get("type").Str; strings.HasSuffix(kind, "_output") || kind == "mcp_approval_response" {
				for _, member := range []string{"call_id", "id", "approval_request_id"} {
					has[item.Get(member).Str] = true
				}
			}
			return true
		})
	}
	var results [][]byte
	for _, b := range blocked {
		kind, id := responsesCallType(b.Key)
		if id == "" || has[id] {
			continue
		}
		result := responsesCalls[kind].result
		if result == nil {
			return nil, cannotEdit("its results have no place for a note")
		}
		has[id] = true
		results = append(results, encode(result(id, b.Note)))
	}
	return bytes.Join(results, []byte{','}), nil
}

// insertResults puts results before the items that the client adds.
func insertResults(body []byte, input gjson.Result, results []byte) change {
	switch from, to := input.Index, input.Index+len(input.Raw); {
	case input.Type == gjson.String:
		return change{from, to, "[" + string(results) + `,{"role":"user","content":` + input.Raw + "}]"}
	case input.IsArray() && input.Get("0").Exists():
		return change{from + 1, from + 1, string(results) + ","}
	case input.Exists():
		return change{from, to, "[" + string(results) + "]"}
	}
	start := bytes.IndexByte(body, '{') + 1 // other members follow: the call goes on from something
	return change{start, start, `"input":[` + string(results) + "],"}
}

// replayed corrects a history that the client brings. It leaves out the reasoning whose
// calls were blocked: clients that read a stream have it already when the call comes. And
// it says what the messages in the place of calls say, where the client only refers to
// them: the provider does not know them.
func replayed(input gjson.Result, blocked []BlockedCall) changes {
	if !input.IsArray() {
		return nil
	}
	items := input.Array()
	kept := make([]string, 0, len(items))
	notes := make(map[string]string)
	for _, b := range blocked {
		notes[responsesOwnItem+messageID(b.Key)] = b.Note
	}
	for i, item := range items {
		next := i
		for next < len(items) && isReasoningItem(items[next]) {
			next++
		}
		if next > i && next < len(items) && isOurMessage(items[next], blocked) {
			continue
		}
		if note := notes[item.Get("id").Str]; note != "" && !item.Get("content").Exists() {
			kept = append(kept, string(encode(map[string]string{"type": "message", "role": "assistant", "content": note})))
			continue
		}
		kept = append(kept, item.Raw)
	}
	return replaceItems(items, kept)
}

// isReasoningItem reports whether an item is reasoning, or refers to it.
func isReasoningItem(item gjson.Result) bool {
	kind := item.Get("type").Str
	return kind == "reasoning" || (kind == "item_reference" || kind == "") && strings.HasPrefix(item.Get("id").Str, "rs_")
}

// isOurMessage reports whether an item is a message that we wrote, by its id or, because
// some clients leave ids out, by its text.
func isOurMessage(item gjson.Result, blocked []BlockedCall) bool {
	if strings.HasPrefix(item.Get("id").Str, responsesOwnItem) {
		return true
	}
	if item.Get("role").Str != "assistant" {
		return false
	}
	var w walk
	responsesMessage(&w, item)
	said := joinText(w.parts, Text, RefusalText)
	return slices.ContainsFunc(blocked, func(b BlockedCall) bool { return b.Note == said })
}

// replaceItems puts other values in the places of a list's items, in their order. There
// may be fewer, but not none. What stands between the items stays.
func replaceItems(items []gjson.Result, with []string) (e changes) {
	for i, value := range with {
		if at := items[i]; at.Raw != value {
			e.replace(at, value)
		}
	}
	if n := len(with); n > 0 && n < len(items) {
		last, end := items[n-1], items[len(items)-1]
		e.put(endOf(last), endOf(end), "")
	}
	return e
}

// Interface guard
var _ CallAnswerer = responses{}
