package portal

import (
	"runtime"
	"slices"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/semaphore"

	"github.com/acp-io/acp/internal/portal/openapi"
)

// inTurn lets only a few of the brief operations work at a time, first come first served. Sixty at once would share the
// processors, and each would be as late as the last of them; so the first are early, and the last no later. What comes before
// and after, reading a slow caller's request and writing to him, holds no place.
func inTurn() openapi.StrictMiddlewareFunc {
	// Enough that those who wait for the database leave nobody idle.
	places := semaphore.NewWeighted(int64(4 * runtime.GOMAXPROCS(0)))
	return func(next openapi.StrictHandlerFunc, operation string) openapi.StrictHandlerFunc {
		if !brief(operation) {
			return next
		}
		return func(c *gin.Context, request any) (any, error) {
			if err := places.Acquire(c.Request.Context(), 1); err != nil {
				return nil, err // the caller is gone
			}
			defer places.Release(1)
			return next(c, request)
		}
	}
}

// brief reports whether an operation, as the generated code names it, is.
func brief(operation string) bool {
	return slices.ContainsFunc(routes, func(r route) bool { return r.Brief && exported(r.Operation) == operation })
}

func exported(operation string) string { return string(operation[0]-'a'+'A') + operation[1:] }
