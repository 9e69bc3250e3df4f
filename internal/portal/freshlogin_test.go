package portal

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// sensitive is a site in which decisions about what is sensitive need a login that is at most 15 minutes old.
func sensitive(t *testing.T) *site {
	t.Helper()
	x := newSite(t)
	x.Tickets.LoginMaxAge = 15 * time.Minute
	x.loggedInAt(func() any { return x.now().Unix() })
	return x
}

// loggedInAt makes the provider report a time of the login; none if it is nil.
func (x *site) loggedInAt(at func() any) {
	x.provider.Claims = func(c map[string]any) {
		c["auth_time"] = at()
		if c["auth_time"] == nil {
			delete(c, "auth_time")
		}
		c["exp"] = x.now().Add(time.Hour).Unix()
	}
}

// request submits a request of Alice for a highly sensitive resource, and returns the paths of the ticket and its version. Its first step
// waits for Carol.
func (x *site) request(t *testing.T, resource string) (id string, version int64) {
	t.Helper()
	var created struct {
		ID      string
		Version int64
	}
	a := x.as("alice").Post("/api/v1/tickets", newTicket("app-888", resource))
	if a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	a.Into(t, &created)
	return created.ID, created.Version
}

func decideAs(b *portaltest.Browser, id string, version int64) (status int, code string) {
	b.T.Helper()
	a := b.Post("/api/v1/tickets/"+id+"/decision", map[string]any{"decision": "approve", "version": version})
	var p problemBody
	if a.Status >= http.StatusBadRequest {
		a.Into(b.T, &p)
	}
	return a.Status, p.Code
}

// freshLogin logs a person in again in a browser that has a session, and returns the query of the address at the provider, and the address
// to which the portal redirects at last.
func (x *site) freshLogin(t *testing.T, b *portaltest.Browser, who, returnTo string) (query url.Values, to *url.URL) {
	t.Helper()
	start := b.Get("/auth/login?" + url.Values{"fresh": {"true"}, "returnTo": {returnTo}}.Encode())
	if start.Status != http.StatusFound {
		t.Fatalf("%d %s", start.Status, start.Body)
	}
	back := mustParse(t, x.provider.Login(t, start.Header.Get("Location"), who))
	done := b.Get(back.RequestURI())
	return mustParse(t, start.Header.Get("Location")).Query(), mustParse(t, done.Header.Get("Location"))
}

// TestSensitiveDecisionAfterAFreshLogin checks the way of a person whose session is too old to decide a sensitive request.
func TestSensitiveDecisionAfterAFreshLogin(t *testing.T) {
	x := sensitive(t)
	id, version := x.request(t, "ledger-db-cache")
	other, otherVersion := x.request(t, "bobs-cluster")
	carol := x.as("carol")
	x.advance(16 * time.Minute)
	if status, code := decideAs(carol, id, version); status != http.StatusForbidden || code != "login-too-old" {
		t.Fatalf("an old login: %d %s", status, code)
	}
	if status, code := decideAs(carol, other, otherVersion); status != http.StatusOK {
		t.Errorf("what is not sensitive needs no new login: %d %s", status, code)
	}
	if query := mustParse(t, x.as("").Get("/auth/login").Header.Get("Location")).Query(); query.Has("max_age") || query.Has("prompt") {
		t.Errorf("an ordinary login asks for a new authentication: %v", query)
	}
	before := carol.Client.Jar.Cookies(mustParse(t, x.base))[0].Value
	query, to := x.freshLogin(t, carol, "carol", "/tickets/"+id)
	if query.Get("max_age") != "0" || query.Get("prompt") != "login" || query.Get("code_challenge") == "" {
		t.Errorf("the portal asked the provider for %v", query)
	}
	if to.Path != "/tickets/"+id {
		t.Errorf("after the login: %s", to)
	}
	if carol.Client.Jar.Cookies(mustParse(t, x.base))[0].Value == before {
		t.Error("the session has its token of before the login")
	}
	if status, code := decideAs(carol, id, version); status != http.StatusOK {
		t.Errorf("after a fresh login: %d %s", status, code)
	}
}

// TestDelegationsNeedARecentLogin checks that an old session names no delegate, who would decide what is sensitive with a login of their own.
func TestDelegationsNeedARecentLogin(t *testing.T) {
	x := sensitive(t)
	id, version := x.request(t, "ledger-db-cache")
	carol := x.as("carol")
	x.advance(16 * time.Minute)
	delegate := func() (status int, code string) {
		a := carol.Post("/api/v1/delegations",
			map[string]any{"to": "bob", "start": x.now().UTC(), "end": x.now().Add(time.Hour).UTC(), "reason": "away"})
		var p problemBody
		if a.Status >= http.StatusBadRequest {
			a.Into(t, &p)
		}
		return a.Status, p.Code
	}
	if status, code := delegate(); status != http.StatusForbidden || code != "login-too-old" {
		t.Errorf("a delegation with an old login: %d %s", status, code)
	}
	if status, _ := decideAs(x.as("bob"), id, version); status == http.StatusOK {
		t.Error("a delegate of an old session has decided")
	}
	x.freshLogin(t, carol, "carol", "/delegations")
	if status, code := delegate(); status != http.StatusCreated {
		t.Errorf("a delegation after a fresh login: %d %s", status, code)
	}
}

// TestLoginsThatAreNotFresh checks that a login counts as new only if the provider's token proves that it is.
func TestLoginsThatAreNotFresh(t *testing.T) {
	x := sensitive(t)
	id, version := x.request(t, "ledger-db-cache")
	carol := x.as("carol")
	x.advance(16 * time.Minute)
	for name, tc := range map[string]struct {
		reason, want string
		claim        func() any
	}{
		"absent":   {"the provider does not say when", core.LoginNotFresh, func() any { return nil }},
		"old":      {"the provider used its own session", core.LoginNotFresh, func() any { return x.now().Add(-2 * time.Minute).Unix() }},
		"text":     {"not a time", core.LoginInvalid, func() any { return "now" }},
		"to come":  {"it would stay recent", core.LoginInvalid, func() any { return x.now().Add(time.Hour).Unix() }},
		"zero":     {"not a time", core.LoginInvalid, func() any { return 0 }},
		"too much": {"not a time", core.LoginInvalid, func() any { return 1e300 }},
	} {
		t.Run(name, func(t *testing.T) {
			x.loggedInAt(tc.claim)
			_, to := x.freshLogin(t, carol, "carol", "/tickets/"+id)
			if to.Path != "/login" || to.Query().Get("error") != tc.want || to.Query().Get("returnTo") != "/tickets/"+id {
				t.Errorf("%s: %s, want the code %s", tc.reason, to, tc.want)
			}
			if !loggedIn(carol) {
				t.Errorf("%s: the session of before has ended", tc.reason)
			}
			if status, code := decideAs(carol, id, version); status != http.StatusForbidden || code != "login-too-old" {
				t.Errorf("%s: %d %s", tc.reason, status, code)
			}
		})
	}
}

// TestOrdinaryLoginsDoNotProveAnything checks that a login through the provider's own session has the age of that session.
func TestOrdinaryLoginsDoNotProveAnything(t *testing.T) {
	x := sensitive(t)
	id, version := x.request(t, "ledger-db-cache")
	for name, claim := range map[string]func() any{
		"absent": func() any { return nil },
		"old":    func() any { return x.now().Add(-16 * time.Minute).Unix() },
	} {
		x.loggedInAt(claim)
		if status, code := decideAs(x.as("carol"), id, version); status != http.StatusForbidden || code != "login-too-old" {
			t.Errorf("%s: %d %s", name, status, code)
		}
	}
	x.Tickets.LoginMaxAge = 0
	if status, code := decideAs(x.as("carol"), id, version); status != http.StatusOK {
		t.Errorf("without a bound: %d %s", status, code)
	}
}

// TestTokensNeedARecentLogin checks that an old session does not give itself a token, which outlives it and decides without a login, and that a token
// decides as before.
func TestTokensNeedARecentLogin(t *testing.T) {
	x := sensitive(t)
	id, version := x.request(t, "ledger-db-cache")
	carol := x.as("carol")
	create := func(scope string) portaltest.Answer {
		return carol.Post("/api/v1/me/tokens", map[string]any{"name": "mine", "scopes": []string{scope}, "expiresInSeconds": 3600})
	}
	device := func(deny bool) portaltest.Answer {
		var d deviceStart
		x.as("").Call(http.MethodPost, "/api/v1/auth/device", map[string]any{"client": "x"}, nil).Into(t, &d)
		return carol.Post("/api/v1/auth/device/approve", map[string]any{"userCode": d.UserCode, "deny": deny})
	}
	var created struct{ Secret string }
	if a := create("tickets:decide"); a.Status != http.StatusCreated {
		t.Fatalf("after a recent login: %d %s", a.Status, a.Body)
	} else {
		a.Into(t, &created)
	}
	if a := device(false); a.Status != http.StatusNoContent {
		t.Errorf("the login of a command line, after a recent login: %d %s", a.Status, a.Body)
	}
	x.advance(16 * time.Minute)
	for _, scope := range []string{"tickets:decide", "workloads:write", "read"} {
		var p problemBody
		if a := create(scope); a.Status != http.StatusForbidden {
			t.Errorf("a token with the scope %s, after an old login: %d %s", scope, a.Status, a.Body)
		} else if a.Into(t, &p); p.Code != "login-too-old" {
			t.Errorf("a token with the scope %s, after an old login: %+v", scope, p)
		}
	}
	if a := device(false); a.Status != http.StatusForbidden {
		t.Errorf("the login of a command line, after an old login: %d %s", a.Status, a.Body)
	}
	if a := device(true); a.Status != http.StatusNoContent {
		t.Errorf("to refuse the login of a command line needs no new login: %d %s", a.Status, a.Body)
	}
	a := x.as("").Call(http.MethodPost, "/api/v1/tickets/"+id+"/decision", map[string]any{"decision": "approve", "version": version},
		http.Header{"Authorization": {"Bearer " + created.Secret}})
	if a.Status != http.StatusOK {
		t.Errorf("a token has no login that could be old: %d %s", a.Status, a.Body)
	}
}

// TestCatalogChangesNeedARecentLogin checks that an old session does not change who decides, which would get around the rule for decisions:
// neither itself, nor by a token, and that it can read the catalog.
func TestCatalogChangesNeedARecentLogin(t *testing.T) {
	x := sensitive(t)
	dave := x.as("dave")
	put := func() portaltest.Answer { return dave.Post("/api/v1/catalog/entities", storageResource("mine", nil)) }
	token := func() portaltest.Answer {
		return dave.Post("/api/v1/me/tokens", map[string]any{"name": "mine", "scopes": []string{"catalog:write"}, "expiresInSeconds": 3600})
	}
	x.advance(16 * time.Minute)
	for name, a := range map[string]portaltest.Answer{
		"entity": put(), "token": token(), "upload": dave.Post("/api/v1/catalog/sources/hr/apply", map[string]any{"token": "x"}),
		"removal": dave.Call(http.MethodDelete, "/api/v1/catalog/entities/person/bob", map[string]any{"reason": "x"}, http.Header{"X-Acp-Request": {"1"}}),
		"SCIM":    dave.Post("/scim/v2/Groups", map[string]any{"displayName": "mine"}),
	} {
		var p problemBody
		if a.Status != http.StatusForbidden {
			t.Errorf("%s with an old login: %d %s", name, a.Status, a.Body)
		} else if a.Into(t, &p); p.Code != "login-too-old" {
			t.Errorf("%s with an old login: %+v", name, p)
		}
	}
	if a := dave.Get("/api/v1/catalog/entities"); a.Status != http.StatusOK {
		t.Errorf("an old session reads: %d %s", a.Status, a.Body)
	}
	x.freshLogin(t, dave, "dave", "/catalog")
	if a := put(); a.Status != http.StatusOK {
		t.Errorf("after a fresh login: %d %s", a.Status, a.Body)
	}
	if a := token(); a.Status != http.StatusCreated {
		t.Errorf("a token after a fresh login: %d %s", a.Status, a.Body)
	}
}

// TestOpeningResourcesNeedsARecentLogin checks that an old session lets nobody connect: neither by a temporary audit, nor by a downgrade, nor by the
// rollback of waves, nor by a guard that opens what it stops or does not watch, nor by an address that has the access of an application, nor by a token.
// It can end temporary audits and downgrades, halt waves, and preview a source of workloads.
func TestOpeningResourcesNeedsARecentLogin(t *testing.T) {
	x := sensitive(t)
	x.halted()
	dave := x.as("dave")
	until := x.now().Add(time.Hour)
	change := func(method, path string, body map[string]any) portaltest.Answer {
		return dave.Call(method, "/api/v1"+path, body, http.Header{"X-Acp-Request": {"1"}})
	}
	machine := map[string]any{"id": "vm-1", "subject": portaltest.App888, "addresses": []string{"198.51.100.7"}}
	preview := "of an earlier preview"
	calls := map[string]func() portaltest.Answer{
		"temporary audit": func() portaltest.Answer {
			return change(http.MethodPut, "/resources/bobs-cluster/temporary-audit", map[string]any{"until": until, "reason": "a job is cut off"})
		},
		"downgrade": func() portaltest.Answer {
			return change(http.MethodPost, "/downgrade", map[string]any{"scope": "class", "class": "redis", "until": until, "reason": "an outage"})
		},
		"rollback of a resource": func() portaltest.Answer {
			return change(http.MethodPut, "/rollout/bobs-cluster/waves", map[string]any{"action": "rollback", "reason": "a job is cut off"})
		},
		"rollback of a class": func() portaltest.Answer {
			return change(http.MethodPut, "/classes/redis/waves", map[string]any{"action": "rollback", "reason": "a job is cut off"})
		},
		"guard": func() portaltest.Answer {
			return change(http.MethodPut, "/rollout/bobs-cluster/guard", map[string]any{"reopens": true, "limit": 0, "reason": "an outage is worse"})
		},
		"address": func() portaltest.Answer {
			return change(http.MethodPost, "/workloads", map[string]any{"items": []any{machine}})
		},
		"source of addresses": func() portaltest.Answer {
			return change(http.MethodPost, "/workloads/sync", map[string]any{"source": "cmdb", "items": []any{}, "token": preview})
		},
		"token": func() portaltest.Answer {
			return change(http.MethodPost, "/me/tokens", map[string]any{"name": "mine", "scopes": []string{"rollout:write"}, "expiresInSeconds": 3600})
		},
	}
	x.advance(16 * time.Minute)
	for name, call := range calls {
		var p problemBody
		if a := call(); a.Status != http.StatusForbidden {
			t.Errorf("%s with an old login: %d %s", name, a.Status, a.Body)
		} else if a.Into(t, &p); p.Code != "login-too-old" {
			t.Errorf("%s with an old login: %+v", name, p)
		}
	}
	for name, path := range map[string]string{"temporary audit": "/resources/bobs-cluster/temporary-audit", "downgrade": "/downgrade"} {
		a := change(http.MethodDelete, path, map[string]any{"scope": "all", "reason": "it is over"})
		if a.Status == http.StatusForbidden {
			t.Errorf("the end of a %s with an old login: %d %s", name, a.Status, a.Body)
		}
	}
	if a := change(http.MethodPut, "/rollout/bobs-cluster/waves", map[string]any{"action": "pause", "reason": "a job is cut off"}); a.Status != http.StatusOK {
		t.Errorf("a pause of waves with an old login: %d %s", a.Status, a.Body)
	}
	var shown struct{ Token string }
	if a := change(http.MethodPost, "/workloads/sync", map[string]any{"source": "cmdb", "items": []any{machine}}); a.Status != http.StatusOK {
		t.Errorf("the preview of a source with an old login: %d %s", a.Status, a.Body)
	} else {
		a.Into(t, &shown)
	}
	preview = shown.Token
	x.freshLogin(t, dave, "dave", "/fleet")
	for name, call := range calls {
		if a := call(); a.Status >= http.StatusMultipleChoices && a.Status != http.StatusConflict {
			t.Errorf("%s after a fresh login: %d %s", name, a.Status, a.Body)
		}
	}
}
