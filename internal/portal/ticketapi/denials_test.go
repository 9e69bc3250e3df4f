package ticketapi

import (
	"testing"
	"time"

	"github.com/acp-io/acp/internal/portal/openapi"
)

// TestRefusalsAreJoined checks that there is one row for each access that can be requested, from all members that refused it.
func TestRefusalsAreJoined(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	row := func(app, resource string, port int, decision openapi.Decision, count int64, seen time.Time) openapi.DeniedConnection {
		protocol := "TCP"
		return openapi.DeniedConnection{Application: openapi.CatalogRef{Name: app}, Resource: openapi.CatalogRef{Name: resource}, Port: &port,
			Protocol: &protocol, Decision: &decision, Count: count, LastSeen: seen}
	}
	var list []openapi.DeniedConnection
	for _, x := range []openapi.DeniedConnection{
		row("a", "r", 6379, openapi.DecisionDefaultDenied, 3, at),
		row("a", "r", 6379, openapi.DecisionDefaultDenied, 4, at.Add(time.Minute)), // another member
		row("a", "r", 6379, openapi.DecisionDefaultDenied, 5, at.Add(-time.Hour)),
		row("a", "r", 6379, openapi.DecisionDenied, 1, at),        // a deny is another matter
		row("a", "r", 9121, openapi.DecisionDefaultDenied, 1, at), // another port
		row("a", "q", 6379, openapi.DecisionDefaultDenied, 1, at),
		row("b", "r", 6379, openapi.DecisionDefaultDenied, 1, at),
	} {
		list = joined(list, x)
	}
	if len(list) != 5 || list[0].Count != 12 || !list[0].LastSeen.Equal(at.Add(time.Minute)) {
		t.Errorf("%d rows, the first with %d, last seen %s", len(list), list[0].Count, list[0].LastSeen)
	}
}
