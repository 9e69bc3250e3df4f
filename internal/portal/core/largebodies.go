package core

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/semaphore"

	"github.com/acp-io/acp/internal/portal/openapi"
)

const (
	// MaxLargeBodies is the maximum number of bytes of large bodies in memory at the same time. Decoded, they need several times as
	// much. Two full syncs of the largest size fit.
	MaxLargeBodies = 64 << 20
	// largeBodyWait is how long a request with a large body waits for others.
	largeBodyWait = 8 * time.Second
	// keyBodyPlace is the context key of the function that releases the memory reserved for a large body.
	keyBodyPlace = "bodyPlace"
)

// largeBodies bounds the memory for request bodies that are larger than MaxBody: in total, and to one body for each caller, so that
// no caller can occupy all of it by sending slowly.
type largeBodies struct {
	callers callerLimit
	room    *semaphore.Weighted
}

func newLargeBodies() *largeBodies {
	return &largeBodies{callers: callerLimit{perCaller: 1}, room: semaphore.NewWeighted(MaxLargeBodies)}
}

// reserve reserves memory for a body of size bytes, at most MaxLargeBodies. It returns false if there was none in time. Otherwise the
// caller must call done when the body is not needed any more.
func (l *largeBodies) reserve(ctx context.Context, caller string, size int64) (done func(), ok bool) {
	leave, ok := l.callers.acquire(ctx, caller)
	if !ok {
		return nil, false
	}
	waiting, cancel := context.WithTimeout(ctx, largeBodyWait)
	defer cancel()
	if err := l.room.Acquire(waiting, size); err != nil {
		leave()
		return nil, false
	}
	return func() { l.room.Release(size); leave() }, true
}

// bodyDecoded releases the memory of a large body as soon as the body is decoded, because the operation may take half an hour.
func bodyDecoded(next openapi.StrictHandlerFunc, _ string) openapi.StrictHandlerFunc {
	return func(c *gin.Context, request any) (any, error) {
		if done, ok := c.Get(keyBodyPlace); ok {
			done.(func())()
			c.Request.Body = http.NoBody
		}
		return next(c, request)
	}
}
