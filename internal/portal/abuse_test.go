package portal

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// TestSlowRequestsTimeOut checks that slow headers, slow bodies and idle connections end.
func TestSlowRequestsTimeOut(t *testing.T) {
	x := newSite(t)
	srv := &http.Server{}
	x.Configure(srv)
	if srv.ReadHeaderTimeout <= 0 || srv.ReadHeaderTimeout > 10*time.Second || srv.ReadTimeout <= 0 || srv.WriteTimeout <= 0 || srv.IdleTimeout <= 0 ||
		srv.MaxHeaderBytes > 64<<10 {
		t.Errorf("%+v", srv)
	}
	srv.ReadHeaderTimeout, srv.ReadTimeout = 50*time.Millisecond, 100*time.Millisecond // so that the test need not wait
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(srv.Close(), <-done); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	for name, begin := range map[string]string{
		"nothing":     "",
		"half a line": "GET /api/v1/me HT",
		"no end":      "GET /api/v1/me HTTP/1.1\r\nHost: x\r\n",
	} {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, begin); err != nil {
			t.Fatal(err)
		}
		// The server closes the connection; otherwise this would wait until the test times out.
		if _, err := io.ReadAll(c); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: %v", name, err)
		}
		_ = c.Close() // the server has closed it already
	}
}

// TestTextOfCallersIsNotInjected checks that text of callers reaches no header, no log line of its own, and no redirect.
func TestTextOfCallersIsNotInjected(t *testing.T) {
	x := newSite(t)
	b := x.as("alice")
	for _, path := range []string{"/auth/login?returnTo=/%0d%0aX-Evil:%201", "/auth/login?returnTo=//evil.example",
		"/auth/login?returnTo=/%5Cevil.example", "/auth/callback?error=%0d%0aX-Evil:1&state=%0d%0a",
		"/api/v1/people/%0d%0aX-Evil:1", "/api/v1/tickets/T-1%0aevil", "/tickets/%0d%0aX-Evil:1",
		"/assets/..%2f..%2fetc%2fpasswd", "/%2e%2e/%2e%2e/etc/passwd", "/.gitkeep"} {
		a := b.Get(path)
		if a.Header.Get("X-Evil") != "" || strings.Contains(a.Header.Get("Location"), "evil") || strings.Contains(string(a.Body), "root:") {
			t.Errorf("%s: %d %v", path, a.Status, a.Header)
		}
		if to := a.Header.Get("Location"); to != "" && !strings.HasPrefix(to, "/") && !strings.HasPrefix(to, x.provider.URL+"/") {
			t.Errorf("%s leads to %s", path, to)
		}
	}
	made := b.Post("/api/v1/tickets", map[string]any{"reason": "first\nlevel=ERROR msg=forged\x1b[31m", "items": newTicket("app-888", "bobs-cluster")["items"]})
	if made.Status != http.StatusCreated {
		t.Fatalf("%d %s", made.Status, made.Body)
	}
	if a := b.Call("GET", "/api/v1/me", nil, http.Header{"X-Request-Id": {"mine"}}); a.Header.Get("X-Request-Id") == "mine" {
		t.Error("the request id of the caller was used")
	}
}

// TestSecurityHeaders checks the security headers of pages, files, the API and its problems.
func TestSecurityHeaders(t *testing.T) {
	x := newSite(t)
	for _, path := range []string{"/", "/tickets", "/assets/app-1a2b.js", "/api/v1/me", "/api/v1/none", "/auth/login", "/healthz", "/none.js"} {
		h := x.as("").Get(path).Header
		csp := h.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'self'") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") ||
			strings.Contains(csp, "*") ||
			h.Get("X-Content-Type-Options") != "nosniff" ||
			h.Get("X-Frame-Options") != "DENY" ||
			h.Get("X-Request-Id") == "" ||
			h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", path, h)
		}
	}
	for path, status := range map[string]int{"/api/v1/none": 404, "/none.js": 404, "/api/v1/me": 401, "/api/v1/tickets?limit=x": 401} {
		var p problemBody
		if a := x.as("").Get(path); a.Status != status || a.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %v", path, a.Status, a.Header)
		} else if a.Into(t, &p); p.RequestID == "" || p.Code == "" {
			t.Errorf("%s: %s", path, a.Body)
		}
	}
	if a := x.as("").Call("TRACE", "/api/v1/me", nil, nil); a.Status != http.StatusMethodNotAllowed && a.Status != http.StatusForbidden {
		t.Errorf("TRACE: %d", a.Status)
	}
}

// TestRateLimits checks the budgets of a person, in all sessions together, of wrong tokens, of user codes, of switches, of
// previews and of comments.
func TestRateLimits(t *testing.T) {
	x := newSite(t)
	x.stopBudgets() // a slow machine would refill them between two requests
	first, second := x.as("alice"), x.as("alice")
	limited := 0
	for i := range 2 * core.BudgetRequests.Burst {
		b := first
		if i%2 == 0 {
			b = second
		}
		if a := b.Get("/api/v1/me/tokens"); a.Status == http.StatusTooManyRequests {
			limited++
			if a.Header.Get("Retry-After") == "" {
				t.Fatal("Retry-After is missing")
			}
		}
	}
	if limited == 0 {
		t.Error("two sessions of a person have separate budgets")
	}
	if a := x.as("bob").Get("/api/v1/me"); a.Status != http.StatusOK {
		t.Errorf("another person is limited, too: %d", a.Status)
	}
	var last portaltest.Answer
	for range core.BudgetWrongTokens.Burst + 1 {
		last = x.as("").Call("GET", "/api/v1/me", nil, http.Header{"Authorization": {"Bearer acp_" + strings.Repeat("B", 52)}})
	}
	if last.Status != http.StatusTooManyRequests {
		t.Errorf("wrong tokens are not limited: %d", last.Status)
	}
	dave := x.as("dave")
	for range core.BudgetUserCodes.Burst + 1 {
		last = dave.Get("/api/v1/auth/device?userCode=BCDF-GHJK")
	}
	if last.Status != http.StatusTooManyRequests {
		t.Errorf("user codes are not limited: %d", last.Status)
	}
	bob := x.as("bob")
	for range core.BudgetSwitches.Burst + 1 {
		last = put(bob, "/resources/bobs-cluster/temporary-audit", map[string]any{"until": time.Now().Add(time.Hour), "reason": "again"})
	}
	if last.Status != http.StatusTooManyRequests {
		t.Errorf("temporary audits, which notify others, are not limited: %d", last.Status)
	}
	erin := x.as("erin")
	previews := func() portaltest.Answer {
		return erin.Post("/api/v1/tickets/preview", newTicket("app-889", "bobs-cluster"))
	}
	if a := previews(); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for range core.BudgetPreviews.Burst {
		// It has the same budget, because both compile the items of a request.
		last = erin.Post("/api/v1/tickets/what-if", map[string]any{"request": newTicket("app-889", "bobs-cluster")})
	}
	if last.Status != http.StatusTooManyRequests {
		t.Errorf("what-ifs are not limited: %d", last.Status)
	}
	if a := previews(); a.Status != http.StatusTooManyRequests {
		t.Errorf("previews are not limited: %d", a.Status)
	}
	frank := x.as("frank")
	for range core.BudgetComments.Burst + 1 {
		last = frank.Post("/api/v1/tickets/T-1/comments", map[string]any{"comment": "again"})
	}
	if last.Status != http.StatusTooManyRequests {
		t.Errorf("comments, which notify others, are not limited: %d", last.Status)
	}
}

// TestConcurrentFlowQueriesAreLimited checks that the queries of one person wait for each other, and not those of others.
func TestConcurrentFlowQueriesAreLimited(t *testing.T) {
	x := newSite(t)
	first, second, other := x.as("alice"), x.as("alice"), x.as("erin")
	asked, answer := make(chan struct{}, 10*core.QueriesPerCaller), make(chan struct{})
	x.flows.held = func(f audit.Filter) {
		if len(f.Subjects) > 0 { // a query of alice
			asked <- struct{}{}
			<-answer
		}
	}
	var all sync.WaitGroup
	for i := range 2 * core.QueriesPerCaller {
		b := []*portaltest.Browser{first, second}[i%2]
		all.Go(func() {
			if a := b.Get("/api/v1/flows?subject=app-888"); a.Status != http.StatusOK {
				t.Errorf("a query that waited: %d", a.Status)
			}
		})
	}
	for range core.QueriesPerCaller {
		<-asked
	}
	if a := other.Get("/api/v1/flows"); a.Status != http.StatusOK {
		t.Errorf("another person is limited, too: %d", a.Status)
	}
	if n := len(asked); n > 0 {
		t.Errorf("%d queries above the limit", n)
	}
	close(answer)
	all.Wait()
}

// TestRequestsAreCountedByRoute checks that requests are counted by route: paths contain ids, so counts by path would be unbounded.
func TestRequestsAreCountedByRoute(t *testing.T) {
	x := newSite(t)
	x.as("alice").Get("/api/v1/tickets/T-4711")
	families, err := x.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := 0.0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if f.GetName() == "acp_portal_requests_total" && labels["method"] == "GET" && labels["route"] == base+"/tickets/:id" && labels["code"] == "404" {
				got += m.GetCounter().GetValue()
			}
		}
	}
	if got != 1 {
		t.Errorf("counted by the route: %v, want 1", got)
	}
}

// TestInterruptedExportFails checks that an export of a ledger that could not be read to its end is recognized as incomplete.
func TestInterruptedExportFails(t *testing.T) {
	x := newSite(t)
	x.as("alice").Post("/api/v1/tickets", newTicket("app-888", "bobs-cluster"))
	dave := x.as("dave")
	whole := dave.Get("/api/v1/ledger/export")
	if lines := strings.Count(
		string(whole.Body), "\n",
	); whole.Status != http.StatusOK || lines < 1 || whole.Header.Get("Content-Type") != "application/x-ndjson" {
		t.Fatalf("%d %s", whole.Status, whole.Body)
	}
	x.broken.Store(true)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, x.base+"/api/v1/ledger/export", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := dave.Client.Do(req)
	if err == nil {
		defer func() { _ = res.Body.Close() }() // what is left is of no interest
		_, err = io.Copy(io.Discard, bufio.NewReader(res.Body))
	}
	if err == nil {
		t.Error("an interrupted export looks complete")
	}
	var verified struct {
		Intact bool
		Lines  int
	}
	y := newSite(t)
	y.as("alice").Post("/api/v1/tickets", newTicket("app-888", "bobs-cluster"))
	if y.as("dave").Post("/api/v1/ledger/verify", map[string]any{}).Into(t, &verified); !verified.Intact || verified.Lines < 1 {
		t.Errorf("%+v", verified)
	}
}
