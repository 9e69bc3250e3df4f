package portal

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/portal/core"
)

// unread is a body that fails the test when it is read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body of a caller without the permission was read")
	return 0, io.EOF
}

// TestBodiesAreReadOnlyForAllowedCallers calls every route with a large body as each role that its row refuses.
func TestBodiesAreReadOnlyForAllowedCallers(t *testing.T) {
	x := newSite(t)
	refused := map[core.Callers][]string{core.Registrar: {"bob", "carol", "grace"}, core.Administrator: {"alice", "bob", "carol", "grace"},
		core.CatalogEditor: {"alice", "bob", "carol", "grace"}}
	for _, r := range routes {
		if r.Body <= core.MaxBody {
			continue
		}
		if r.Body > core.MaxLargeBodies {
			t.Errorf("%s accepts more than all bodies together may have", r.Operation)
		}
		people := refused[r.Who]
		if len(people) == 0 {
			t.Errorf("%s accepts %d KiB from everybody", r.Operation, r.Body>>10)
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

// TestSlotsOfLargeBodiesAreReleased checks that the slot of a body is released before the operation runs, and after a refusal.
func TestSlotsOfLargeBodiesAreReleased(t *testing.T) {
	x := newSite(t)
	token := x.token("dave", credential.ScopeWorkloads)
	bodies := []string{`{"source":"cmdb","items":[]}`, `{"source":`, `{"nothing":1}`}
	for _, body := range slices.Concat(bodies, bodies) {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/workloads/sync", strings.NewReader(body))
		req.ContentLength = -1
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		x.ServeHTTP(w, req)
		if w.Code == http.StatusTooManyRequests { // a caller has one slot, which the body before would still use
			t.Fatalf("%s: %d %s", body, w.Code, w.Body)
		}
	}
}
