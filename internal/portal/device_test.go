package portal

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/portal/portaltest"
)

type deviceStart struct {
	DeviceCode, UserCode, VerificationURI, VerificationURIComplete string
	ExpiresIn, Interval                                            int
}

// TestCommandLineLogin checks the device authorization grant (RFC 8628) over HTTP, from a command line and a browser.
func TestCommandLineLogin(t *testing.T) {
	x := newSite(t)
	program, alice := x.as(""), x.as("alice")
	post := func(path string, body any) portaltest.Answer {
		t.Helper()
		return program.Call(http.MethodPost, "/api/v1/auth/device"+path, body, nil) // no cookie, no header
	}
	begin := func() (d deviceStart) {
		t.Helper()
		post("", map[string]any{"client": "kubectl-acp on laptop"}).Into(t, &d)
		return d
	}
	poll := func(d deviceStart) (int, string, string) {
		t.Helper()
		x.advance(time.Duration(d.Interval+1) * time.Second)
		var got struct{ Token, Code string }
		a := post("/token", map[string]any{"deviceCode": d.DeviceCode})
		a.Into(t, &got)
		return a.Status, got.Code, got.Token
	}
	var bare deviceStart
	if post("", nil).Into(t, &bare); bare.UserCode == "" {
		t.Error("a request without a client id was refused")
	}
	d := begin()
	if d.VerificationURI != x.base+"/device" || !strings.Contains(d.VerificationURIComplete, d.UserCode) || d.ExpiresIn != 600 || d.Interval != 5 {
		t.Errorf("%+v", d)
	}
	if status, code, _ := poll(d); status != http.StatusBadRequest || code != "authorization-pending" {
		t.Errorf("before the approval: %d %s", status, code)
	}
	var shown struct {
		Client, Address string
		Scopes          []string
		TokenSeconds    int
	}
	alice.Get("/api/v1/auth/device?userCode="+strings.ToLower(d.UserCode)).Into(t, &shown)
	if shown.Client != "kubectl-acp on laptop" || shown.Address != "127.0.0.1" || slices.Contains(shown.Scopes, "catalog:write") || len(shown.Scopes) == 0 ||
		shown.TokenSeconds == 0 {
		t.Errorf("the page shows %+v", shown)
	}
	if a := program.Call(
		http.MethodPost,
		"/api/v1/auth/device/approve",
		map[string]any{"userCode": d.UserCode},
		http.Header{"X-Acp-Request": {"1"}},
	); a.Status != http.StatusUnauthorized {
		t.Errorf("the command line approved itself: %d", a.Status)
	}
	if a := alice.Call(
		http.MethodPost,
		"/api/v1/auth/device/approve",
		map[string]any{"userCode": d.UserCode},
		http.Header{"Origin": {"https://evil.example"}},
	); a.Status != http.StatusForbidden {
		t.Errorf("another site's page approved it: %d", a.Status)
	}
	if a := alice.Post("/api/v1/auth/device/approve", map[string]any{"userCode": d.UserCode}); a.Status != http.StatusNoContent {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	status, _, secret := poll(d)
	if status != http.StatusOK {
		t.Fatalf("after the approval: %d", status)
	}
	bearer := http.Header{"Authorization": {"Bearer " + secret}}
	if a := program.Call(http.MethodPost, "/api/v1/tickets", newTicket("app-888", "bobs-cluster"), bearer); a.Status != http.StatusCreated {
		t.Errorf("a request with the token: %d %s", a.Status, a.Body)
	}
	if status, code, _ := poll(d); code != "expired-code" {
		t.Errorf("a second token: %d %s", status, code)
	}
	if a := program.Call(http.MethodPost, "/api/v1/auth/device", nil, nil); a.Status != http.StatusOK {
		t.Errorf("a request without a client id: %d %s", a.Status, a.Body)
	}
	no := begin()
	alice.Post("/api/v1/auth/device/approve", map[string]any{"userCode": no.UserCode, "deny": true})
	if status, code, _ := poll(no); status != http.StatusForbidden || code != "forbidden" {
		t.Errorf("after the rejection: %d %s", status, code)
	}
	late := begin()
	x.advance(11 * time.Minute)
	if a := alice.Post("/api/v1/auth/device/approve", map[string]any{"userCode": late.UserCode}); a.Status != http.StatusNotFound {
		t.Errorf("after the expiry: %d %s", a.Status, a.Body)
	}
	var list struct {
		Items []struct{ ID, Name, LastUsedAt string }
	}
	alice.Get("/api/v1/me/tokens").Into(t, &list)
	if len(list.Items) != 1 || !strings.Contains(list.Items[0].Name, "laptop") || list.Items[0].LastUsedAt == "" {
		t.Fatalf("the tokens of alice are %+v", list)
	}
	if a := program.Call(http.MethodDelete, "/api/v1/me/tokens/"+list.Items[0].ID, nil, bearer); a.Status != http.StatusForbidden {
		t.Errorf("a token revoked a token by its id: %d", a.Status)
	}
	if a := program.Call(http.MethodDelete, "/api/v1/me/tokens/current", nil, bearer); a.Status != http.StatusNoContent {
		t.Errorf("logout: %d %s", a.Status, a.Body)
	}
	if a := program.Call(http.MethodGet, "/api/v1/me", nil, bearer); a.Status != http.StatusUnauthorized {
		t.Errorf("the token after the logout: %d", a.Status)
	}
}
