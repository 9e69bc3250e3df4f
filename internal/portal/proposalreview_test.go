package portal

import (
	"net/http"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/portal/portaltest"
)

type reviewedProposal struct {
	Until time.Time
	Lines []struct {
		Subject        struct{ ID string }
		State          string
		NewSinceReview *bool
		CanNotify      bool
		Notice         *struct {
			By           struct{ ID string }
			Reason       string
			Recipients   int
			RepeatableAt time.Time
		}
	}
	Review *struct {
		By         struct{ ID string }
		NextReview *time.Time
		Due        bool
	}
}

// TestProposalReview checks who may record a review, and which clients are new afterwards.
func TestProposalReview(t *testing.T) {
	x := newSite(t)
	x.audited()
	const path = "/api/v1/resources/bobs-cluster/proposal"
	read := func() (p reviewedProposal) {
		t.Helper()
		if a := x.as("bob").Get(path); a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Body)
		} else {
			a.Into(t, &p)
		}
		return p
	}
	for _, l := range read().Lines {
		if l.NewSinceReview != nil {
			t.Errorf("without a review there is nothing new: %+v", l)
		}
	}
	next := x.now().Add(10 * time.Minute)
	for who, want := range map[string]int{"alice": 403, "erin": 403, "grace": 403, "carol": 403, "bob": 200, "dave": 200} {
		if a := put(x.as(who), "/resources/bobs-cluster/proposal/review", map[string]any{"reviewed": true, "nextReview": next}); a.Status != want {
			t.Errorf("%s: %d %s", who, a.Status, a.Body)
		}
	}
	for name, body := range map[string]any{
		"not reviewed": map[string]any{"reviewed": false},
		"past":         map[string]any{"reviewed": true, "nextReview": x.now().Add(-time.Hour)},
		"unknown":      map[string]any{"reviewed": true, "x": 1},
	} {
		if a := put(
			x.as("bob"),
			"/resources/bobs-cluster/proposal/review",
			body,
		); a.Status != http.StatusUnprocessableEntity &&
			a.Status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
	p := read()
	if p.Review == nil || p.Review.NextReview == nil || p.Review.Due {
		t.Fatalf("%+v", p.Review)
	}
	for _, l := range p.Lines {
		if l.NewSinceReview == nil || *l.NewSinceReview {
			t.Errorf("%s was seen before the review", l.Subject.ID)
		}
	}
	x.advance(20 * time.Minute)
	if !read().Review.Due {
		t.Error("the date of the next review has passed")
	}
	home := func(who string) int {
		var h struct {
			ProposalReviewsDue []struct{ Resource struct{ ID string } }
		}
		x.as(who).Get("/api/v1/home").Into(t, &h)
		return len(h.ProposalReviewsDue)
	}
	if home("bob") != 1 || home("alice") != 0 || home("dave") != 0 {
		t.Errorf("due reviews at home: %d of the owner, %d of another person, %d of security", home("bob"), home("alice"), home("dave"))
	}
	if a := put(
		x.as("bob"),
		"/resources/bobs-cluster/proposal/review",
		map[string]any{"reviewed": true, "until": x.now().Add(-7 * 24 * time.Hour)},
	); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if p := read(); p.Review.NextReview != nil || p.Review.Due || home("bob") != 0 {
		t.Errorf("the date was removed: %+v", p.Review)
	}
}

// TestClientNotices checks who may notify the owners of a client, and about which clients.
func TestClientNotices(t *testing.T) {
	x := newSite(t)
	x.audited()
	const path = "/api/v1/resources/bobs-cluster/proposal"
	tell := func(who, application, reason string) portaltest.Answer {
		return x.as(who).Post(path+"/notices", map[string]any{"application": application, "reason": reason})
	}
	for _, tc := range []struct {
		reason, who, application, comment string
		want                              int
	}{
		{"the application's owner", "erin", "app-889", "r", 403},
		{"another person", "alice", "app-889", "r", 403},
		{"an auditor", "grace", "app-889", "r", 403},
		{"a statement allows the client", "bob", "app-888", "r", 409},
		{"no such application", "bob", "none", "r", 409},
		{"a resource is no application", "bob", "bobs-cluster", "r", 409},
		{"without a reason", "bob", "app-889", " ", 422},
		{"the resource's owner", "bob", "app-889", "We do not know it", 201},
		{"again in the same week", "dave", "app-889", "We do not know it", 409},
	} {
		if a := tell(tc.who, tc.application, tc.comment); a.Status != tc.want {
			t.Errorf("%s: %d, want %d: %s", tc.reason, a.Status, tc.want, a.Body)
		}
	}
	if a := x.as("bob").
		Post("/api/v1/resources/none/proposal/notices", map[string]any{"application": "app-889", "reason": "r"}); a.Status != http.StatusNotFound {
		t.Errorf("no such resource: %d %s", a.Status, a.Body)
	}
	var p reviewedProposal
	x.as("bob").Get(path).Into(t, &p)
	for _, l := range p.Lines {
		told := l.Notice != nil && l.Notice.By.ID == "bob" && l.Notice.Reason == "We do not know it" && l.Notice.Recipients > 0 &&
			l.Notice.RepeatableAt.After(x.now())
		if l.CanNotify || told != (l.Subject.ID == "app-889") {
			t.Errorf("%+v", l)
		}
	}
	x.flows.err = errUnavailable
	if a := tell("bob", "app-889", "r"); a.Status != http.StatusServiceUnavailable {
		t.Errorf("without the flow store: %d %s", a.Status, a.Body)
	}
}
