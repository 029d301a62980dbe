package caddymodule_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddy-lex/lex/store"
)

// If another turn of the session is committed first, the decisions are taken again, and the
// answer is edited again as if it were the first time.
func TestCallsAreEditedAgainAfterAConflict(t *testing.T) {
	for _, api := range callingAPIs {
		contentType, body := api.answer(weather, wipe, second)
		s := newSite(t, `{}`, answering(contentType, body))
		var tries atomic.Int32
		s.meddle(func(ctx context.Context, change store.Change, commit func(context.Context, store.Change) error) error {
			if tries.Add(1) < 3 {
				return store.ErrConflict
			}
			return commit(ctx, change)
		})
		got := s.post(api.path, api.question).Body.String()
		if strings.Contains(got, "rm -rf") || !strings.Contains(got, weather.name) || !strings.Contains(got, second.name) || strings.Count(got, "destructive_command") == 0 {
			t.Errorf("%s: %s", api.name, got)
		}
		if n := len(s.calls()); n != 3 {
			t.Errorf("%s: %d receipts of calls", api.name, n)
		}
	}
}

// A client that seems to have left may still read, for example over a connection that it has
// closed in its own direction only. No call leaves that was not decided for it.
func TestNoCallLeavesToAClientThatIsGone(t *testing.T) {
	for _, api := range callingAPIs {
		contentType, body := api.answer(weather, wipe)
		ctx, leave := context.WithCancel(t.Context())
		s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
			defer leave()
			return answering(contentType, body)(w, r)
		})
		r := httptest.NewRequest(http.MethodPost, "http://site.test"+api.path, strings.NewReader(api.question)).WithContext(ctx)
		w := httptest.NewRecorder()
		s.serve(w, r)
		if got := w.Body.String(); strings.Contains(got, "rm -rf") {
			t.Errorf("%s: %s", api.name, got)
		}
	}
}

// A body that cannot be unpacked may hold calls.
func TestCallsInABodyThatCannotBeUnpacked(t *testing.T) {
	for _, api := range callingAPIs {
		contentType, body := api.answer(wipe)
		_, packed := gzipped(body)
		for name, answer := range map[string][2]string{
			"unknown": {"compress", body}, "cut": {"gzip", packed[:len(packed)-4]}, "not packed": {"gzip", body}, "wrong order": {"br, gzip", packed},
		} {
			s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
				w.Header().Set("Content-Encoding", answer[0])
				return answering(contentType, answer[1])(w, r)
			})
			got := s.post(api.path, api.question).Body.String()
			if strings.Contains(got, "rm -rf") || strings.Contains(got, answer[1]) {
				t.Errorf("%s, %s: %q", api.name, name, got)
			}
			if n := len(s.turns()); n != 1 {
				t.Errorf("%s, %s: %d receipts", api.name, name, n)
			}
		}
	}
}

// What upstream's headers say of the bytes of an answer does not stand over an edited one.
func TestEditedAnswersHaveNoDigestOfUpstream(t *testing.T) {
	names := []string{"Etag", "Digest", "Content-Digest", "Repr-Digest", "Content-Md5"}
	for _, api := range callingAPIs {
		for _, calls := range [][]askedFor{{weather}, {weather, wipe}} {
			contentType, body := api.answer(calls...)
			s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
				for _, name := range names {
					w.Header().Set(name, "upstream")
				}
				return answering(contentType, body)(w, r)
			})
			w := s.post(api.path, api.question)
			for _, name := range names {
				if edited := len(calls) > 1 && !strings.Contains(api.name, "stream") && api.name != "gemini array"; (w.Header().Get(name) == "") != edited {
					t.Errorf("%s, %d calls: %s: %q", api.name, len(calls), name, w.Header().Get(name))
				}
			}
		}
	}
}

var _ = io.Discard
