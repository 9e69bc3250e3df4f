package rolloutapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
	"github.com/acp-io/acp/internal/rollout"
)

const (
	maxAnnounced = 200
	maxAdvanced  = 50
	maxMembers   = 512
)

// AnnounceRollout implements openapi.StrictServerInterface.
func (a *API) AnnounceRollout(ctx context.Context, r openapi.AnnounceRolloutRequestObject) (openapi.AnnounceRolloutResponseObject, error) {
	ids, err := resourcesNamed(r.Body.Resources, maxAnnounced)
	if err != nil {
		return nil, err
	}
	c, who := a.Catalog(), core.Caller(ctx)
	var mine []catalog.Entity
	for _, id := range ids {
		if e, ok := c.Resource(id); ok && rollout.MayChange(c, who, e) {
			mine = append(mine, e)
		}
	}
	limited, cancel := context.WithTimeout(core.RequestContext(ctx), views.FlowTimeout)
	defer cancel()
	clients := map[string]rollout.Assessment{}
	if len(mine) > 0 {
		if clients, err = a.Insight.Assess(limited, views.Names(mine)...); err != nil {
			return nil, err
		}
	}
	notice := rollout.Notice{Message: r.Body.Message}
	if r.Body.EnforceAt != nil {
		notice.EnforceAt = *r.Body.EnforceAt
	}
	out := openapi.AnnounceRollout200JSONResponse{}
	for _, id := range ids {
		x := openapi.RolloutResult{Resource: id}
		e, err := views.EntityOrNotFound(c.Resource(id))
		if err == nil {
			var done rollout.Announced
			if done, err = a.Rollout.Announce(core.RequestContext(ctx), who, e, notice, clients[e.Name].Clients); err == nil {
				x.Ok, x.Recipients, x.Unowned = true, &done.Notified, &done.Unowned
			}
		}
		if x.Problem, err = a.resultOf(ctx, err); err != nil {
			return nil, err
		}
		out.Items = append(out.Items, x)
	}
	return out, nil
}

// resultOf returns the problem of one of several resources. An error that concerns all of them is returned as an error.
func (a *API) resultOf(ctx context.Context, err error) (*openapi.Problem, error) {
	switch approval.CodeOf(err) {
	case "", approval.CodeUnavailable, approval.CodeStoreUnavailable:
		return nil, err
	}
	return new(core.ToProblem(a.HideDuplicate(ctx, err))), nil
}

var modeOfStage = map[openapi.RolloutAdvanceStage]v1alpha1.Mode{
	openapi.RolloutAdvanceStageObserve: v1alpha1.ModeObserve,
	openapi.RolloutAdvanceStageInitial: v1alpha1.ModeAudit,
	openapi.RolloutAdvanceStageEnforce: v1alpha1.ModeEnforce,
}

// AdvanceRollout implements openapi.StrictServerInterface.
func (a *API) AdvanceRollout(ctx context.Context, r openapi.AdvanceRolloutRequestObject) (openapi.AdvanceRolloutResponseObject, error) {
	ids, err := resourcesNamed(r.Body.Resources, maxAdvanced)
	if err != nil {
		return nil, err
	}
	mode, ok := modeOfStage[r.Body.Stage]
	clusters := core.Value(r.Body.Clusters)
	switch {
	case !ok:
		return nil, core.InvalidField("stage", message.FieldOneOf([]string{"observe", "initial", "enforce"}))
	case len(clusters) > maxMembers || r.Body.Clusters != nil && len(clusters) == 0:
		return nil, core.InvalidField("clusters", message.FieldMembersOrAbsent(512))
	}
	key, err := core.IdempotencyKey(r.Params.IdempotencyKey)
	if err != nil {
		return nil, err
	}
	out := openapi.AdvanceRollout200JSONResponse{}
	for _, id := range ids {
		x := openapi.RolloutResult{Resource: id}
		t, err := a.advance(ctx, id, mode, clusters, r.Body, key)
		if err == nil {
			x.Ok, x.Ticket = true, new(t.ID())
		}
		if x.Problem, err = a.resultOf(ctx, err); err != nil {
			return nil, err
		}
		out.Items = append(out.Items, x)
	}
	return out, nil
}

// advance requests a mode for one resource, with the usual approval chain.
func (a *API) advance(
	ctx context.Context,
	id string,
	mode v1alpha1.Mode,
	clusters []string,
	b *openapi.AdvanceRolloutJSONRequestBody,
	key string,
) (*approval.Ticket, error) {
	e, err := views.EntityOrNotFound(a.Catalog().Resource(id))
	if err != nil {
		return nil, err
	}
	req := approval.Request{Kind: approval.KindMode, Reason: b.Reason}
	if b.Override != nil {
		req.Override = b.Override.Reason
	}
	if key != "" { // one key for many tickets
		sum := sha256.Sum256([]byte(key + "\n" + id))
		req.IdempotencyKey = hex.EncodeToString(sum[:])
	}
	p := a.Host.Protection(e.Name)
	item := approval.RequestItem{Resource: id, Mode: mode, ClusterModes: map[string]v1alpha1.Mode{}}
	if p == nil {
		req.Kind = approval.KindOnboard
	}
	if len(clusters) > 0 {
		if item.Mode, item.ClusterModes, err = staged(p, mode, clusters); err != nil {
			return nil, err
		}
	}
	req.Items = []approval.RequestItem{item}
	return a.Tickets.Submit(core.RequestContext(ctx), core.Caller(ctx), req)
}

// staged returns the object with a mode in some members, while the others keep theirs.
func staged(p *v1alpha1.ProtectedResource, mode v1alpha1.Mode, clusters []string) (v1alpha1.Mode, map[string]v1alpha1.Mode, error) {
	base, modes := v1alpha1.ModeObserve, map[string]v1alpha1.Mode{}
	var known []string
	if p != nil {
		base = p.Spec.Mode
		for _, m := range p.Spec.ClusterModes {
			modes[string(m.Cluster)] = m.Mode
		}
		for _, c := range p.Status.States() {
			known = append(known, string(c.Name))
		}
	}
	for _, c := range clusters {
		if len(known) > 0 && !slices.Contains(known, c) {
			return "", nil, core.InvalidField("clusters", message.FieldMembersWithResource())
		}
		modes[c] = mode
	}
	maps.DeleteFunc(modes, func(_ string, m v1alpha1.Mode) bool { return m == base })
	return base, modes, nil
}
