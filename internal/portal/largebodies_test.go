package portal

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/credential"
)

// unread is a body of which nothing may be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body of a caller who may not call this is read")
	return 0, io.EOF
}

// TestBodiesAreReadForThoseWhoMayCall calls every route with a large body as everybody whom its row refuses.
func TestBodiesAreReadForThoseWhoMayCall(t *testing.T) {
	x := newSite(t)
	refused := map[who][]string{registrar: {"bob", "carol", "grace"}, administrator: {"alice", "bob", "carol", "grace"}}
	for _, r := range routes {
		if r.Body <= maxBody {
			continue
		}
		people := refused[r.Who]
		if len(people) == 0 {
			t.Errorf("%s takes %d KiB from everybody", r.Operation, r.Body>>10)
		}
		for _, who := range people {
			req := httptest.NewRequestWithContext(t.Context(), r.Method, strings.NewReplacer(samples...).Replace(r.Path), unread{t})
			req.Header.Set("Authorization", "Bearer "+x.token(who, r.Scope))
			req.ContentLength = r.Body
			w := httptest.NewRecorder()
			if x.ServeHTTP(w, req); w.Code != http.StatusForbidden {
				t.Errorf("%s as %s: %d %s", r.Operation, who, w.Code, w.Body)
			}
		}
	}
}

func TestLargeBodiesShareTheRoom(t *testing.T) {
	l := newLargeBodies()
	first, ok := l.take(t.Context(), "a", maxLargeBodies/2)
	if !ok {
		t.Fatal("there is room")
	}
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	if _, ok := l.take(soon(), "a", 1); ok {
		t.Error("one caller has two bodies at once")
	}
	if _, ok := l.take(soon(), "b", maxLargeBodies/2+1); ok {
		t.Error("more is held than there is room for")
	}
	second, ok := l.take(t.Context(), "b", maxLargeBodies/2)
	if !ok {
		t.Fatal("there is room for two halves")
	}
	first()
	third, ok := l.take(t.Context(), "a", maxLargeBodies/2)
	if !ok {
		t.Fatal("what was given back is free")
	}
	second()
	third()
	if !l.room.TryAcquire(maxLargeBodies) || len(l.callers.people) != 0 {
		t.Error("something is held although all have gone")
	}
	for _, r := range routes {
		if r.Body > maxLargeBodies {
			t.Errorf("%s takes more than there is room for", r.Operation)
		}
	}
}

// The place of a body is free while the operation goes on, and after the request is refused.
func TestPlacesOfLargeBodiesAreGivenBack(t *testing.T) {
	x := newSite(t)
	token := x.token("dave", credential.ScopeWorkloads)
	for _, body := range []string{`{"source":"cmdb","items":[]}`, `{"source":`, `{"nothing":1}`} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/workloads/sync", strings.NewReader(body))
		req.ContentLength = -1
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		x.ServeHTTP(w, req)
		if w.Code == http.StatusTooManyRequests || !x.largeBodies.room.TryAcquire(maxLargeBodies) {
			t.Fatalf("%s: %d %s", body, w.Code, w.Body)
		}
		x.largeBodies.room.Release(maxLargeBodies)
	}
}
