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
	// maxLargeBodies is how many bytes of large bodies the portal holds in memory at the same time; decoded, they take several
	// times as much. Two full syncs of the largest size fit.
	maxLargeBodies = 64 << 20
	// largeBodyPatience is how long a request waits until others of its size are done.
	largeBodyPatience = 8 * time.Second
	// keyBodyPlace holds the function that gives the place of a request's large body back.
	keyBodyPlace = "bodyPlace"
)

// largeBodies bounds how much of request bodies that are larger than maxBody is in memory at once: in total, and one body for
// each caller, so that no caller can occupy the whole room by sending slowly.
type largeBodies struct {
	callers turns
	room    *semaphore.Weighted
}

func newLargeBodies() *largeBodies {
	return &largeBodies{callers: turns{atOnce: 1}, room: semaphore.NewWeighted(maxLargeBodies)}
}

// take waits for room for a body of size bytes, which must not be larger than maxLargeBodies. It returns false if there was
// none in time; otherwise the caller of take calls done when the body is not needed any more.
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

// bodyDecoded gives the place of a large body back as soon as the body is decoded: what an operation does with it may take half
// an hour.
func bodyDecoded(next openapi.StrictHandlerFunc, _ string) openapi.StrictHandlerFunc {
	return func(c *gin.Context, request any) (any, error) {
		if done, ok := c.Get(keyBodyPlace); ok {
			done.(func())()
			c.Request.Body = http.NoBody
		}
		return next(c, request)
	}
}
