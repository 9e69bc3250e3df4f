package portal

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/acp-io/acp/internal/portal/portaltest"
)

// listen opens the event stream of a person. The returned function waits for the next event of a kind and returns its data, "" at the end.
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

// TestEventsAreLimitedToVisibleObjects checks that an event stream contains only events of objects that the person may see, and ends with the
// portal.
func TestEventsAreLimitedToVisibleObjects(t *testing.T) {
	x := newSite(t)
	carol, erin := listen(t, x.as("carol")), listen(t, x.as("erin"))
	x.as("alice").Post("/api/v1/tickets", newTicket("app-888", "bobs-cluster"))
	x.as("erin").Post("/api/v1/tickets", newTicket("app-889", "bobs-cluster"))
	if got := carol("ticket"); got != `{"id":"T-1","state":"pending","version":1}` {
		t.Errorf("the event of an approver: %s", got)
	}
	if got := erin("ticket"); !strings.Contains(got, "T-2") {
		t.Errorf("the event of a person who is not concerned by T-1: %s", got)
	}
	x.Hub.Resource(portaltest.BobsCluster)
	if got := erin("resource"); got != `{"id":"bobs-cluster"}` {
		t.Errorf("resource: %s", got)
	}
	x.end()
	if got := erin("ticket"); got != "" {
		t.Errorf("the stream goes on after the portal has ended: %s", got)
	}
}

// TestInboxEvent checks that the event about a changed inbox has no content.
func TestInboxEvent(t *testing.T) {
	x := newSite(t)
	next := listen(t, x.as("bob"))
	x.Hub.Inbox("bob")
	if data := next("inbox"); data != "{}" {
		t.Errorf("the event has the data %q", data)
	}
}
