package redis

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"

	client "github.com/redis/go-redis/v9"
)

// quietLog is the client's own log without the line that it writes for every
// failed attempt to connect. In an outage that is a line per request, with the
// server's address, and it says nothing that the returned error does not say.
type quietLog struct{ *log.Logger }

// Printf writes all other lines where the client would have written them.
func (l quietLog) Printf(_ context.Context, format string, args ...any) {
	if strings.Contains(format, "failed to dial") {
		return
	}
	_ = l.Output(2, fmt.Sprintf(format, args...))
}

// quieten sets the log, which the client has one of for the whole process.
var quieten = sync.OnceFunc(func() {
	client.SetLogger(quietLog{log.New(os.Stderr, "redis: ", log.LstdFlags)})
})
