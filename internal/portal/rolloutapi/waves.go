package rolloutapi

import (
	"cmp"
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
	return views.Waves(c, in, p.Enforced().Equal(p.Spec.Enforces()), func(action waves.Action) bool { return rollout.MayInstruct(c, who, e, action) })
}

// wavesAction returns the action of a request. It returns an error if the action is unknown, or needs a more recent login: a rollback lets clients
// connect.
func (a *API) wavesAction(who approval.Actor, in openapi.WavesAction) (waves.Action, error) {
	action := waves.Action(in)
	if !slices.Contains(waves.Actions(), action) {
		return "", core.InvalidField("action", message.FieldOneOf([]string{"pause", "resume", "skip", "finish", "rollback"}))
	}
	if action != waves.RollBack {
		return action, nil
	}
	return action, a.Tickets.CheckLogin(who)
}

// PutRolloutWaves implements openapi.StrictServerInterface.
func (a *API) PutRolloutWaves(ctx context.Context, r openapi.PutRolloutWavesRequestObject) (openapi.PutRolloutWavesResponseObject, error) {
	c, who := a.Catalog(), core.Caller(ctx)
	e, err := views.EntityOrNotFound(c.Resource(r.Id))
	if err != nil {
		return nil, err
	}
	action, err := a.wavesAction(who, r.Body.Action)
	if err != nil {
		return nil, err
	}
	before := a.waves(c, who, e, a.Host.Protection(e.Name))
	if err := a.Rollout.Instruct(core.RequestContext(ctx), who, e, action, r.Body.Reason); err != nil {
		return nil, err
	}
	return openapi.PutRolloutWaves200JSONResponse(*cmp.Or(before, noWaves())), nil
}

// PutClassWaves implements openapi.StrictServerInterface.
func (a *API) PutClassWaves(ctx context.Context, r openapi.PutClassWavesRequestObject) (openapi.PutClassWavesResponseObject, error) {
	who := core.Caller(ctx)
	action, err := a.wavesAction(who, r.Body.Action)
	if err != nil {
		return nil, err
	}
	before, err := a.classWaves(who, r.Name)
	if err != nil {
		return nil, err
	}
	if err := a.Rollout.InstructClass(core.RequestContext(ctx), who, r.Name, action, r.Body.Reason); err != nil {
		return nil, err
	}
	return openapi.PutClassWaves200JSONResponse(*cmp.Or(before, noWaves())), nil
}

// classWaves returns the progress of a change of a class through its waves, or nil if there is no such class or no rollout is in progress.
func (a *API) classWaves(who approval.Actor, name string) (*openapi.RolloutWaves, error) {
	organizations, err := a.Rollout.Organizations()
	if err != nil {
		return nil, err
	}
	classes, _ := a.Rollout.Host.ResourceClasses()
	for _, class := range classes {
		if class.Name == name {
			return views.ClassWaves(a.Catalog(), organizations, who, class), nil
		}
	}
	return nil, nil
}

// noWaves is the answer if the rollout began between two reads of the cache: the instruction was accepted, and its progress is not known yet.
func noWaves() *openapi.RolloutWaves { return &openapi.RolloutWaves{Actions: []openapi.WavesAction{}} }
