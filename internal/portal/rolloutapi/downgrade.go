package rolloutapi

import (
	"context"

	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
	"github.com/acp-io/acp/internal/rollout"
)

// maxClassName is the maximum length of the name of a class, in bytes.
const maxClassName = 512

// GetDowngrade implements openapi.StrictServerInterface.
func (a *API) GetDowngrade(ctx context.Context, r openapi.GetDowngradeRequestObject) (openapi.GetDowngradeResponseObject, error) {
	scope, err := downgradeScope(core.Value(r.Params.Scope), r.Params.Class)
	if err != nil {
		return nil, err
	}
	out, err := a.extent(ctx, scope)
	return openapi.GetDowngrade200JSONResponse(out), err
}

// StartDowngrade implements openapi.StrictServerInterface.
func (a *API) StartDowngrade(ctx context.Context, r openapi.StartDowngradeRequestObject) (openapi.StartDowngradeResponseObject, error) {
	scope, err := downgradeScope(r.Body.Scope, r.Body.Class)
	if err != nil {
		return nil, err
	}
	want := rollout.TemporaryAuditRequest{Until: r.Body.Until, Reason: r.Body.Reason}
	if _, err := a.FleetDowngrader.Begin(core.RequestContext(ctx), core.Caller(ctx), scope, want); err != nil {
		return nil, err
	}
	out, err := a.extent(ctx, scope)
	return openapi.StartDowngrade200JSONResponse(out), err
}

// ResumeDowngrade implements openapi.StrictServerInterface.
func (a *API) ResumeDowngrade(ctx context.Context, r openapi.ResumeDowngradeRequestObject) (openapi.ResumeDowngradeResponseObject, error) {
	scope, err := downgradeScope(r.Body.Scope, r.Body.Class)
	if err != nil {
		return nil, err
	}
	if _, err := a.FleetDowngrader.Resume(core.RequestContext(ctx), core.Caller(ctx), scope, r.Body.Reason); err != nil {
		return nil, err
	}
	out, err := a.extent(ctx, scope)
	return openapi.ResumeDowngrade200JSONResponse(out), err
}

func downgradeScope(scope openapi.DowngradeScope, class *string) (rollout.FleetDowngradeScope, error) {
	name := core.Value(class)
	switch {
	case scope == openapi.DowngradeScopeClass && name != "" && len(name) <= maxClassName:
		return rollout.FleetDowngradeScope{Class: name}, nil
	case scope == openapi.DowngradeScopeClass:
		return rollout.FleetDowngradeScope{}, core.InvalidField("class", message.FieldClassMissing())
	case scope != "" && scope != openapi.DowngradeScopeAll:
		return rollout.FleetDowngradeScope{}, core.InvalidField("scope", message.FieldOneOf([]string{"all", "class"}))
	case name != "":
		return rollout.FleetDowngradeScope{}, core.InvalidField("class", message.FieldClassScope())
	}
	return rollout.FleetDowngradeScope{}, nil
}

// extent returns the resources that a downgrade concerns, by the cached state of the host cluster.
func (a *API) extent(ctx context.Context, scope rollout.FleetDowngradeScope) (openapi.Downgrade, error) {
	snap, err := a.Snapshot()
	if err != nil {
		return openapi.Downgrade{}, err
	}
	in, _ := a.Host.Input()
	x := rollout.FleetDowngradeExtentOf(in.Resources, classesOf(snap), scope, a.Now())
	c := a.Catalog()
	out := openapi.Downgrade{
		Scope:     openapi.DowngradeScopeAll,
		Resources: x.Resources,
		Enforced:  x.Enforced,
		Open:      x.Open,
		Members:   append([]string{}, x.Members...),
		Seconds:   float32(x.Seconds),
		Classes:   []openapi.DowngradeClass{},
		Active:    []openapi.ActiveDowngrade{},
		CanAct:    rollout.MayDowngradeFleet(core.Caller(ctx)),
	}
	out.Scope, out.Class = scopeView(scope)
	for _, k := range x.Classes {
		if k.Name != "" {
			out.Classes = append(out.Classes, openapi.DowngradeClass{Name: k.Name, Enforced: k.Enforced, Open: k.Open})
		}
	}
	for _, d := range x.Active {
		v := openapi.ActiveDowngrade{Until: d.Until.UTC(), Reason: d.Reason, By: views.Person(c, d.By), Resources: d.Resources, Effective: &d.Effective}
		v.Scope, v.Class = scopeView(d.Scope)
		out.Active = append(out.Active, v)
	}
	if last, ok := a.FleetDowngrader.Last(); ok && last.Scope == scope {
		run := openapi.DowngradeRun{
			Resume:      last.Resume,
			StartedAt:   last.StartedAt.UTC(),
			FinishedAt:  views.Time(last.FinishedAt),
			By:          views.Person(c, last.By),
			Total:       last.Total,
			Done:        last.Done,
			Failed:      []openapi.DowngradeFailure{},
			FailedTotal: &last.FailedTotal,
		}
		for _, f := range last.Failed {
			run.Failed = append(run.Failed, openapi.DowngradeFailure{Resource: views.Ref(c, f.Resource), Message: f.Message})
		}
		out.Run = &run
	}
	return out, nil
}

func scopeView(s rollout.FleetDowngradeScope) (openapi.DowngradeScope, *string) {
	if s.Class == "" {
		return openapi.DowngradeScopeAll, nil
	}
	return openapi.DowngradeScopeClass, &s.Class
}

func classesOf(snap *policy.Snapshot) func(resource string) string {
	return func(resource string) string {
		if c, ok := snap.ResourceClassOf(resource); ok {
			return c.Name
		}
		return ""
	}
}
