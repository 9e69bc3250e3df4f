package core

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gin-gonic/gin"
)

// Brief operations run a few at a time and in the order in which they arrived; a caller who leaves while waiting gives the place
// up, and others never wait.
func TestBriefOperationsRunInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		middleware, places := limitBrief(map[string]bool{"ListTickets": true, "Search": true}), 4*runtime.GOMAXPROCS(0)
		begun, answered := &noted{}, &noted{}
		end := make(chan struct{})
		work := func(c *gin.Context, request any) (any, error) {
			begun.add(fmt.Sprint(request))
			<-end
			return request, nil
		}
		call := func(ctx context.Context, operation, name string) {
			c := &gin.Context{Request: httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)}
			go func() {
				if _, err := middleware(work, operation)(c, name); err == nil {
					answered.add(name)
				}
			}()
			synctest.Wait()
		}
		for i := range places {
			call(t.Context(), "ListTickets", fmt.Sprint("early ", i))
		}
		impatient, leave := context.WithCancel(t.Context())
		call(impatient, "Search", "impatient")
		call(t.Context(), "Search", "late")
		call(t.Context(), "ListTickets", "later")
		call(t.Context(), "CreateTicket", "another operation")
		if got := begun.get(); len(got) != places+1 || got[places] != "another operation" {
			t.Fatalf("with %d places these begin: %q", places, got)
		}
		leave()
		synctest.Wait()
		for range places + 3 { // one after the other, so that the order shows
			end <- struct{}{}
			synctest.Wait()
		}
		if got := begun.get()[places+1:]; fmt.Sprint(got) != "[late later]" {
			t.Errorf("then these begin: %q", got)
		}
		if got := answered.get(); len(got) != places+3 {
			t.Errorf("answered: %q", got)
		}
	})
}

type noted struct {
	mu  sync.Mutex
	all []string
}

func (n *noted) add(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, name)
}

func (n *noted) get() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}
