package catalogapi

import (
	"context"
	"net/http"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// connections returns the connections of an application or a resource.
func (a *API) connections(
	ctx context.Context,
	q audit.ConnectionQuery,
	decisions *openapi.DecisionFilter,
	since *time.Time,
	visible func(audit.Connection) bool,
) (openapi.ConnectionList, error) {
	var err error
	if q.Since, q.Until, err = a.Window(since, nil, views.DeniedWindow); err != nil {
		return openapi.ConnectionList{}, err
	}
	if decisions != nil {
		for _, d := range *decisions {
			if !d.Valid() {
				return openapi.ConnectionList{}, core.NewProblem(
					http.StatusBadRequest,
					"invalid",
					message.CallParameterOneOf("decision", []string{"allowed", "denied", "default-denied", "audited", "unmanaged"}),
				)
			}
			q.Decisions = append(q.Decisions, policy.Verdict(d))
		}
	}
	q.Limit = audit.MaxPage
	out := openapi.ConnectionList{Items: []openapi.Connection{}, Since: q.Since.UTC()}
	limited, cancel := context.WithTimeout(core.RequestContext(ctx), views.FlowTimeout)
	defer cancel()
	found, err := a.Flows.Connections(limited, q)
	if err != nil {
		a.Log.Debug("connections could not be read", "error", err)
		return out, nil
	}
	out.Available = true
	c := a.Catalog()
	for _, f := range found.Items {
		if visible(f) {
			out.Items = append(out.Items, views.Connection(c, f))
		}
	}
	last, err := a.Flows.LastFlow(limited)
	if err != nil {
		a.Log.Debug("the time of the newest flow could not be read", "error", err)
		return out, nil
	}
	for _, at := range last {
		if out.LastFlow == nil || at.After(*out.LastFlow) {
			out.LastFlow = new(at.UTC())
		}
	}
	return out, nil
}

func everyConnection(audit.Connection) bool { return true }
