//go:build unix

package redis_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/redis"
	"github.com/caddy-lex/lex/store/storetest"
)

// A process that may open no more files cannot reach the server either, and says why.
func TestNoFileIsLeft(t *testing.T) {
	server := storetest.StartRedis(t)
	var files syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files))
	few := files
	few.Cur = 1
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
	_, err := redis.Open(t.Context(), []string{server}, patient)
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &files))
	if !errors.Is(err, store.ErrUnavailable) || !strings.HasSuffix(err.Error(), "this process has too many files open") {
		t.Errorf("%v", err)
	}
}
