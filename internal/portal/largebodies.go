package portal

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/semaphore"

	"github.com/acp-io/acp/internal/portal/openapi"
)

const (
	// maxLargeBodies is the maximum number of bytes of large bodies in memory at the same time. Decoded, they need several times as
	// much. Two full syncs of the largest size fit.
	maxLargeBodies = 64 << 20
	// largeBodyPatience is how long a request with a large body waits for others.
	largeBodyPatience = 8 * time.Second
	// keyBodyPlace is the context key of the function that releases the memory reserved for a large body.
	keyBodyPlace = "bodyPlace"
)

// largeBodies bounds the memory for request bodies that are larger than maxBody: in total, and to one body for each caller, so that
// no caller can occupy all of it by sending slowly.
type largeBodies struct {
	callers turns
	room    *semaphore.Weighted
}

func newLargeBodies() *largeBodies {
	return &largeBodies{callers: turns{atOnce: 1}, room: semaphore.NewWeighted(maxLargeBodies)}
}

// take reserves memory for a body of size bytes, at most maxLargeBodies. It returns false if there was none in time. Otherwise the
// caller must call done when the body is not needed any more.
func (l *largeBodies) take(ctx context.Context, caller string, size int64) (done func(), ok bool) {
	leave, ok := l.callers.take(ctx, caller)
	if !ok {
		return nil, false
	}
	waiting, cancel := context.WithTimeout(ctx, largeBodyPatience)
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
