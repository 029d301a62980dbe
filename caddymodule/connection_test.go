package caddymodule

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A client over HTTP/2 that takes nothing more ends its answer as one over HTTP/1 does, whether it
// gives the stream no more room or reads nothing from the connection. A slow one gets all of it.
func TestClientOverHTTP2ThatReadsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		room  uint32 // for the stream
		reads bool
		pause time.Duration // between reads
		cut   time.Duration
	}{
		"no room":       {1 << 10, true, 0, writeTime},
		"reads nothing": {1<<31 - 1, false, 0, writeTime + resetTime},
		"reads slowly":  {1<<31 - 1, true, writeTime / 10, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if !inProcessOfItsOwn(t) {
				return
			}
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				ended := make(chan time.Duration, 1)
				handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					began := time.Now()
					bounded, done := boundConnection(w, r)
					defer done()
					for n := 0; n < 30 || c.cut != 0; n++ {
						if sendNow(bounded, make([]byte, 1<<10)) != nil {
							ended <- time.Since(began)
							return
						}
					}
					ended <- 0
				})
				go new(http2.Server).ServeConn(server, &http2.ServeConnOpts{ //nolint:staticcheck // SA1019: http.Server takes a listener, and what it accepts is in no bubble
					Context: context.WithValue(t.Context(), connectionKey{}, server), Handler: handler,
				})
				var header bytes.Buffer
				encoder := hpack.NewEncoder(&header)
				for _, field := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "lex"}, {":path", "/"}} {
					if err := encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
						t.Fatal(err)
					}
				}
				framer := http2.NewFramer(client, client)
				begun := make(chan struct{})
				var reader sync.WaitGroup
				reader.Go(func() {
					for { // the server greets before it reads
						if _, err := framer.ReadFrame(); err != nil {
							return
						}
						select {
						case <-begun:
							if !c.reads {
								return
							}
							time.Sleep(c.pause)
						default:
						}
					}
				})
				_, err := io.WriteString(client, http2.ClientPreface)
				err = errors.Join(err,
					framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: c.room}),
					framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: header.Bytes(), EndStream: true, EndHeaders: true}))
				if err != nil {
					t.Fatal(err)
				}
				close(begun)
				if after := <-ended; after != c.cut {
					t.Errorf("the answer ended after %v, want %v", after, c.cut)
				}
				client.Close()
				reader.Wait()
			})
		})
	}
}

// inProcessOfItsOwn runs a test once more, in another process, unless it is the one. The server for
// HTTP/2 pools channels, and those of one bubble must not be used in another or outside.
func inProcessOfItsOwn(t *testing.T) bool {
	t.Helper()
	if os.Getenv("LEX_TEST_ALONE") != "" {
		return true
	}
	name := "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
	alone := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run="+name)
	alone.Env = append(os.Environ(), "LEX_TEST_ALONE=1")
	if out, err := alone.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()+" ") {
		t.Errorf("%v: %s", err, out)
	}
	return false
}
