package rolloutapi

import (
	"context"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
	"github.com/acp-io/acp/internal/rollout"
	"github.com/acp-io/acp/internal/waves"
)

// waves returns the progress of a resource through the waves of its class, or nil if no rollout is in progress.
func (a *API) waves(c *catalog.Catalog, who approval.Actor, e catalog.Entity, p *v1alpha1.ProtectedResource) *openapi.RolloutWaves {
	in := rollout.Progress(p)
	if in == nil {
		return nil
	}
	out := &openapi.RolloutWaves{Wave: int(in.Wave), Name: core.Optional(in.Name), Waves: int(in.Waves), Waiting: int(in.Waiting),
		Everywhere: p.Enforced().Equal(p.Spec.Enforces()), StartedAt: in.StartedAt.UTC(), Actions: []openapi.WavesAction{}}
	if in.BegunAt != nil {
		out.BegunAt = new(in.BegunAt.UTC())
	}
	if in.EnforcedSince != nil {
		out.EnforcedSince = new(in.EnforcedSince.UTC())
	}
	if h := in.Halt; h != nil {
		out.Halt = &openapi.WavesHalt{Reason: string(h.Reason), At: h.At.UTC(), Cluster: core.Optional(h.Cluster),
			Message: message.Restore(h.Message, h.MessageCode, h.MessageParams)}
		if h.By != "" && h.By != waves.Guard {
			out.Halt.By = new(views.Person(c, h.By))
		}
	}
	for _, action := range waves.Actions() {
		halted := in.Halt != nil
		if rollout.MayInstruct(c, who, e, action) && (action != waves.Pause || !halted) && (action != waves.Resume || halted) {
			out.Actions = append(out.Actions, openapi.WavesAction(action))
		}
	}
	return out
}

// PutRolloutWaves implements openapi.StrictServerInterface.
func (a *API) PutRolloutWaves(ctx context.Context, r openapi.PutRolloutWavesRequestObject) (openapi.PutRolloutWavesResponseObject, error) {
	c, who := a.Catalog(), core.Caller(ctx)
	e, err := views.EntityOrNotFound(c.Resource(r.Id))
	if err != nil {
		return nil, err
	}
	action := waves.Action(r.Body.Action)
	if !slices.Contains(waves.Actions(), action) {
		return nil, core.InvalidField("action", message.FieldOneOf([]string{"pause", "resume", "skip", "finish", "rollback"}))
	}
	before := a.waves(c, who, e, a.Host.Protection(e.Name))
	if err := a.Rollout.Instruct(core.RequestContext(ctx), who, e, action, r.Body.Reason); err != nil {
		return nil, err
	}
	if before == nil { // Instruct has refused it, unless the rollout began in between
		before = &openapi.RolloutWaves{Actions: []openapi.WavesAction{}}
	}
	return openapi.PutRolloutWaves200JSONResponse(*before), nil
}
