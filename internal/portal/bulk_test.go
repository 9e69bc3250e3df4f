package portal

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/credential"
)

// deadlines records the write deadlines that a handler sets.
type deadlines struct {
	*httptest.ResponseRecorder
	last time.Time
}

// SetWriteDeadline implements what http.ResponseController calls.
func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.last = at
	return nil
}

// TestBulkDecisionsOutlastTheWriteTimeout checks that the response to many decisions is not cut off: a browser sends a request again whose
// connection ends without a response, and would get the error that every ticket has changed since.
func TestBulkDecisionsOutlastTheWriteTimeout(t *testing.T) {
	x := newSite(t)
	secret := x.token("dave", credential.ScopeTicketsDecide)
	for path, body := range map[string]any{
		"/api/v1/tickets/decisions":     map[string]any{"decision": "approve", "items": []any{map[string]any{"ticket": "T-1", "version": 1}}},
		"/api/v1/reviews/R-1/decisions": choice(1, 1, "keep"),
	} {
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, x.base+path, bytes.NewReader(data))
		r.RemoteAddr = "127.0.0.1:1"
		r.Header.Set("Authorization", "Bearer "+secret)
		r.Header.Set("Content-Type", "application/json")
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		x.ServeHTTP(w, r)
		if w.Code >= http.StatusInternalServerError || w.Code == http.StatusForbidden || time.Until(w.last) < time.Minute {
			t.Errorf("%s: %d %s, with the deadline %v", path, w.Code, w.Body, w.last)
		}
	}
}
