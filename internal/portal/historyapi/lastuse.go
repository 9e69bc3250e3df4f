package historyapi

import (
	"context"
	"errors"
	"time"

	"github.com/acp-io/acp/internal/accesshistory"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/governance"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/views"
)

// useTimeout is the time limit of the query about last uses, which is made after the records were read.
const useTimeout = 10 * time.Second

// lastUses returns when the statement of each line last decided about a connection to the resource; zero if the flows have no such decision.
// A decision that names a statement was made while the statement existed, so it is in the period of the access. The absence of one proves
// nothing: the flows begin later than the records, and in Observe no statement decides. Connections outside of within are not read; nil
// means no limit. If the uses cannot be read, all are zero, and problem says so; otherwise it is the zero Message.
func (a *API) lastUses(ctx context.Context, resource string, lines []accesshistory.Line, within *audit.Scope) (out []time.Time, problem message.Message) {
	out = make([]time.Time, len(lines))
	snapshot, ok := a.Host.Snapshot()
	if !ok || len(lines) == 0 {
		return out, message.Message{}
	}
	edges := make([]governance.Edge, 0, len(lines))
	for i := range lines {
		edges = append(edges, governance.UseEdge(snapshot, lines[i].Grant))
	}
	uses, now := governance.NewUses(edges), a.Now()
	limited, cancel := context.WithTimeout(core.RequestContext(ctx), useTimeout)
	defer cancel()
	f := audit.Filter{Resources: []string{resource}, Within: within, Since: now.Add(-views.LastUseWindow), Until: now}
	err := a.Flows.Totals(limited, f, func(t audit.Total) error {
		if t.Statement != (policy.Ref{}) {
			uses.Add(t.Subject, t.Resource, t.Statement, t.LastSeen)
		}
		return nil
	})
	if err != nil {
		if !errors.Is(err, audit.ErrUnavailable) {
			a.Log.Debug("the last uses of past access could not be read", "error", err)
		}
		return out, message.HistoryUsesUnavailable()
	}
	for i := range edges {
		out[i] = uses.Last()[governance.UseOf(&edges[i])]
	}
	return out, message.Message{}
}
