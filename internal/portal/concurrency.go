package portal

import (
	"runtime"
	"slices"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/semaphore"

	"github.com/acp-io/acp/internal/portal/openapi"
)

// inTurn limits the number of brief operations that run at the same time, in the order of their arrival. Sixty concurrent ones
// would share the processors, and all of them would take as long as the last one. Reading the request and writing the response
// are not limited, because slow callers would block others.
func inTurn() openapi.StrictMiddlewareFunc {
	// More than one for each processor, because some operations wait for the database.
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

// brief reports whether an operation, by its name in the generated code, is brief; see the route table.
func brief(operation string) bool {
	return slices.ContainsFunc(routes, func(r route) bool { return r.Brief && exported(r.Operation) == operation })
}

func exported(operation string) string { return string(operation[0]-'a'+'A') + operation[1:] }
