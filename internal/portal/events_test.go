package portal

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/acp-io/acp/internal/portal/portaltest"
)

// listen opens a person's event stream and returns the next event of a kind on demand; "" at its end.
func listen(t *testing.T, b *portaltest.Browser) func(kind string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.Base+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := b.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() }) // ended by the portal or the test
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("%d %s", res.StatusCode, got)
	}
	lines := bufio.NewScanner(res.Body)
	next := func(kind string) string {
		for lines.Scan() {
			if lines.Text() == "event: "+kind && lines.Scan() {
				return strings.TrimPrefix(lines.Text(), "data: ")
			}
		}
		return ""
	}
	next("ping") // subscribed
	return next
}

func TestEventsAreForThoseWhoMaySee(t *testing.T) {
	x := newSite(t)
	carol, erin := listen(t, x.as("carol")), listen(t, x.as("erin"))
	x.as("alice").Post("/api/v1/tickets", newTicket("app-888", "bobs-cluster"))
	x.as("erin").Post("/api/v1/tickets", newTicket("app-889", "bobs-cluster"))
	if got := carol("ticket"); got != `{"id":"T-1","state":"pending","version":1}` {
		t.Errorf("an approver is told: %s", got)
	}
	if got := erin("ticket"); !strings.Contains(got, "T-2") {
		t.Errorf("a stranger is told of her own ticket only: %s", got)
	}
	x.Hub.Resource(portaltest.BobsCluster)
	if got := erin("resource"); got != `{"id":"bobs-cluster"}` {
		t.Errorf("resource: %s", got)
	}
	x.end()
	if got := erin("ticket"); got != "" {
		t.Errorf("streams end when the portal does: %s", got)
	}
}

// TestInboxEventOfAStream: the page reads its inbox again.
func TestInboxEventOfAStream(t *testing.T) {
	x := newSite(t)
	next := listen(t, x.as("bob"))
	x.Hub.Inbox("bob")
	if data := next("inbox"); data != "{}" {
		t.Errorf("the page reads its inbox again, and hears nothing else: %q", data)
	}
}
