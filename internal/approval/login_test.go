package approval_test

import (
	"testing"
	"time"

	"github.com/acp-io/acp/internal/approval"
)

// TestSensitiveDecisionsNeedARecentLogin checks which decisions need a recent login, and what counts as one.
func TestSensitiveDecisionsNeedARecentLogin(t *testing.T) {
	const bound = 15 * time.Minute
	for name, tc := range map[string]struct {
		reason             string
		bound              time.Duration
		age                time.Duration // of the login; negative if it is not known
		token, reject, low bool
		raised             bool // in the transaction of the decision
		code               approval.Code
	}{
		"recent":       {reason: "it is not older than the bound", bound: bound, age: bound},
		"old":          {reason: "it is older", bound: bound, age: bound + time.Second, code: approval.CodeLoginTooOld},
		"unknown":      {reason: "it may be older", bound: bound, age: -1, code: approval.CodeLoginTooOld},
		"old, reject":  {reason: "a rejection is a decision", bound: bound, age: bound + time.Second, reject: true, code: approval.CodeLoginTooOld},
		"token":        {reason: "it has no login", bound: bound, age: -1, token: true},
		"off":          {reason: "any login suffices", age: -1},
		"old, low":     {reason: "the resource is not sensitive", bound: bound, age: time.Hour, low: true},
		"old, raised":  {reason: "it is sensitive now", bound: bound, age: time.Hour, low: true, raised: true, code: approval.CodeLoginTooOld},
		"unknown, low": {reason: "the resource is not sensitive", bound: bound, age: -1, low: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.LoginMaxAge = tc.bound
			if tc.low {
				o.setSensitivity(lowSensitivity)
			}
			x := o.submitOne()
			o.Store = changingStore{o.Store, func() {
				if tc.raised {
					o.setSensitivity(highSensitivity)
				}
			}}
			carol := approval.Actor{ID: "carol", Token: tc.token}
			if tc.age >= 0 {
				carol.LoggedIn = o.Now().Add(-tc.age)
			}
			_, err := o.Decide(t.Context(), carol, x.Number, approval.EveryItem, x.Version, !tc.reject, "comment")
			if approval.CodeOf(err) != tc.code || tc.code == "" && err != nil {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.code)
			}
			now, err := o.Store.Get(t.Context(), x.Number)
			if err != nil {
				t.Fatal(err)
			}
			if (now.Version == x.Version) != (tc.code != "") {
				t.Errorf("%s: the ticket went from version %d to %d", tc.reason, x.Version, now.Version)
			}
			results, err := o.DecideMany(
				t.Context(), carol, []approval.Choice{{Ticket: x.Number, Item: approval.EveryItem, Version: now.Version}}, !tc.reject, "comment")
			if err != nil {
				t.Fatal(err)
			}
			if refused := approval.CodeOf(results[0].Err) == approval.CodeLoginTooOld; refused != (tc.code != "") {
				t.Errorf("%s: of several: %v", tc.reason, results[0].Err)
			}
		})
	}
}

// TestReviewsNeedARecentLoginToConfirm checks that break-glass access stays only after a recent login, and can be ended by any reviewer.
func TestReviewsNeedARecentLoginToConfirm(t *testing.T) {
	ask := grant(2 * time.Hour)
	ask.BreakGlass, ask.Reason = true, "the shop is down"
	for name, tc := range map[string]struct {
		reason  string
		confirm bool
		age     time.Duration
		code    approval.Code
	}{
		"confirm, old":    {"the access stays", true, time.Hour, approval.CodeLoginTooOld},
		"confirm, recent": {"the login is recent", true, time.Minute, ""},
		"end, old":        {"it only ends access, which must not wait", false, time.Hour, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := quiet(t, breakGlassPolicy("alice"))
			m.svc.LoginMaxAge = 15 * time.Minute
			x := m.submit("alice", ask)
			m.settle()
			erin := m.actorOf("erin")
			erin.LoggedIn = m.svc.Now().Add(-tc.age)
			_, err := m.svc.Review(t.Context(), erin, x.Number, 0, tc.confirm, "looked at it")
			if approval.CodeOf(err) != tc.code || tc.code == "" && err != nil {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.code)
			}
		})
	}
}
