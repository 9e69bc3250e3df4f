package core

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/acp-io/acp/internal/approval"
)

// Caller returns the caller of a request. guard ensures that there is one.
func Caller(ctx context.Context) approval.Actor {
	if c, ok := ctx.(*gin.Context); ok {
		if a := caller(c); a != nil {
			return *a
		}
	}
	return approval.Actor{}
}

// SetCaller sets the caller of a request, as the authentication does.
func SetCaller(c *gin.Context, a approval.Actor) { c.Set(keyCaller, &a) }

// RequestContext returns the context of the HTTP request. gin reuses its own context for other requests, so it must not outlive its handler.
func RequestContext(ctx context.Context) context.Context {
	if c, ok := ctx.(*gin.Context); ok {
		return c.Request.Context()
	}
	return ctx
}

func requestOf(ctx context.Context) *http.Request { return GinContext(ctx).Request }

// BulkTimeout is the time for the response to a request that decides many tickets or lines, each in a transaction of its own.
const BulkTimeout = 5 * time.Minute

// ExtendWriteDeadline extends the write deadline of a slow response.
func ExtendWriteDeadline(ctx context.Context, d time.Duration) error {
	err := http.NewResponseController(GinContext(ctx).Writer).SetWriteDeadline(time.Now().Add(d))
	if errors.Is(err, http.ErrNotSupported) { // a test's writer
		return nil
	}
	return err
}

// GinContext returns gin's context of a request, or nil outside of one.
func GinContext(ctx context.Context) *gin.Context {
	c, _ := ctx.(*gin.Context)
	return c
}
