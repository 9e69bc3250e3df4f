package core

import (
	"runtime"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/semaphore"

	"github.com/acp-io/acp/internal/portal/openapi"
)

// limitBrief limits the number of brief operations that run at the same time, in the order of their arrival. Sixty concurrent ones
// would share the processors, and all of them would take as long as the last one. Reading the request and writing the response
// are not limited, because slow callers would block others.
func limitBrief(brief map[string]bool) openapi.StrictMiddlewareFunc {
	// More than one for each processor, because some operations wait for the database.
	places := semaphore.NewWeighted(int64(4 * runtime.GOMAXPROCS(0)))
	return func(next openapi.StrictHandlerFunc, operation string) openapi.StrictHandlerFunc {
		if !brief[operation] {
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

// briefOperations returns the brief operations of a table, by their names in the generated code.
func briefOperations(table []Route) map[string]bool {
	out := map[string]bool{}
	for _, r := range table {
		if r.Brief {
			out[generatedName(r.Operation)] = true
		}
	}
	return out
}

func generatedName(operation string) string { return string(operation[0]-'a'+'A') + operation[1:] }
