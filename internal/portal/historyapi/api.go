// Package historyapi implements the operations about the past: who could reach a resource at an instant, when an application could reach it,
// and which modes it had. It must not import other features.
package historyapi

import (
	"context"
	"net/http"
	"time"

	"github.com/acp-io/acp/internal/accesshistory"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/views"
)

// API implements the operations.
type API struct {
	*views.Data
	Ledger ledger.Reader
}

// records reads the records about a resource that queries about instants from since on need.
func (a *API) records(ctx context.Context, e catalog.Entity, since time.Time) (*accesshistory.Records, error) {
	in, err := a.Input()
	if err != nil {
		return nil, err
	}
	snapshot, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	reader := accesshistory.Reader{Tickets: a.Tickets.Store, Ledger: a.Ledger}
	return reader.Read(core.RequestContext(ctx), e, in, snapshot, since, a.Now())
}

// past returns an instant of a query; it is invalid if it is in the future.
func (a *API) past(at time.Time) (time.Time, error) {
	if at.After(a.Now()) {
		m := message.HistoryInstantFuture()
		return at, &core.Problem{Status: http.StatusBadRequest, Code: "invalid", Message: m, Fields: []approval.Field{{Path: "at", Code: "range", Message: m}}}
	}
	return at.UTC(), nil
}

// gapMessage returns what a gap says. Callers who may not see every row do not see the names of objects.
func gapMessage(g accesshistory.Gap, named bool) message.Message {
	switch g.Kind {
	case accesshistory.GapBeforeRecords:
		if g.At.IsZero() {
			return message.HistoryGapNoRecords()
		}
		return message.HistoryGapBeforeRecords(g.At)
	case accesshistory.GapUnread:
		return message.HistoryGapUnread(g.At)
	case accesshistory.GapRestored:
		return message.HistoryGapRestored(g.At)
	case accesshistory.GapPolicy:
		if !named {
			return message.HistoryGapPolicies(g.At)
		}
		return message.HistoryGapPolicy(g.Object, g.At)
	case accesshistory.GapOthers:
		return message.HistoryGapOthers(g.Count, g.At)
	case accesshistory.GapMode:
		return message.HistoryGapMode(g.Object, g.At)
	case accesshistory.GapClass:
		return message.HistoryGapClass(g.Object, g.At)
	case accesshistory.GapWaves:
		return message.HistoryGapRollout(g.Object)
	default: // GapFailed
		return message.HistoryGapFailed(g.Object)
	}
}

func instant(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
