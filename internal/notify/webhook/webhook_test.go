package webhook

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/webhooksender"
)

const key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="

var at = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

func TestSend(t *testing.T) {
	var got Body
	answer := http.StatusAccepted
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		v, err := standardwebhooks.NewWebhook(key)
		if err == nil {
			err = v.Verify(body, r.Header)
		}
		if err != nil {
			t.Error(err)
		}
		got = Body{}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Error(err)
		}
		if r.Header.Get(standardwebhooks.HeaderWebhookID) != got.ID {
			t.Errorf("got headers %v, want the ID", r.Header)
		}
		w.WriteHeader(answer)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	u, err := webhooksender.ParseURL(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := &Sender{Target: &webhooksender.Target{URL: u, KeyFile: file, Client: webhooksender.NewClient(webhooksender.Timeout), Now: time.Now}}
	p := notify.Notification{ID: "abc", Text: notify.Text{Title: "title", Link: "https://acp.example.com/tickets/T-7"},
		Message: notify.Message{Ticket: 7, At: at, Kind: notify.KindNeeded, Facts: notify.Facts{
			Event:       "submitted",
			Requester:   "王磊",
			RequesterID: "wang",
			Items: []notify.About{
				{Application: "orders", Resource: "cache"},
			},
			Recipients: map[string]notify.Kind{"b": notify.KindNeeded, "a": notify.KindComment},
		}}}
	if err := s.Send(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	want := Body{
		ID:          "abc",
		Type:        "ticket.submitted",
		At:          at,
		Ticket:      "T-7",
		RequesterID: "wang",
		Requester:   "王磊",
		Title:       "title",
		URL:         "https://acp.example.com/tickets/T-7",
		Items:       []notify.About{{Application: "orders", Resource: "cache"}},
		Recipients:  []Recipient{{"a", notify.KindComment}, {"b", notify.KindNeeded}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	p.Message = notify.Message{At: at, Kind: notify.KindDelegation, Facts: notify.Facts{Event: "begun"}}
	if err := s.Send(t.Context(), p); err != nil || got.Type != "delegation.begun" || got.Ticket != "" {
		t.Errorf("delegation: got %+v %v, want no ticket", got, err)
	}
	p.Message = notify.Message{At: at, Kind: notify.KindAccessReview, Facts: notify.Facts{Event: "review-opened"}}
	if err := s.Send(t.Context(), p); err != nil || got.Type != "review.opened" || got.Ticket != "" {
		t.Errorf("access review: got %+v %v, want no ticket", got, err)
	}
	for code, permanent := range map[int]bool{
		http.StatusInternalServerError: false, http.StatusTooManyRequests: false, http.StatusGone: true, http.StatusUnauthorized: false,
	} {
		answer = code
		var problem *notify.Problem
		if err := s.Send(t.Context(), p); !errors.As(err, &problem) || problem.Permanent != permanent {
			t.Errorf("status %d: got %v", code, err)
		}
	}
}
