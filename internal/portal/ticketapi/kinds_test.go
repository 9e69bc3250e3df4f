package ticketapi

import (
	"testing"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// TestKindsOfTheAPI checks that the API has every kind of ticket.
func TestKindsOfTheAPI(t *testing.T) {
	for _, k := range approval.Kinds() {
		if !openapi.TicketKind(k).Valid() {
			t.Errorf("the API has no kind %s", k)
		}
	}
}
