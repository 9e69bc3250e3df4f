package catalogapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/governance"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

const (
	listWorkloads = "workloads"
	// syncTimeout is the time limit of a full sync, which writes up to tens of thousands of objects at a limited rate.
	syncTimeout = 30 * time.Minute
)

// registrant returns the actor who registers workloads. Platforms register for all applications with the token of a security administrator.
// Other tokens may register for the applications of their owners only.
func registrant(ctx context.Context) workloads.Actor {
	who, t := core.Caller(ctx), core.Token(core.GinContext(ctx))
	return workloads.Actor{ID: who.ID, Security: who.Security && !who.Auditor, Auditor: who.Auditor,
		Machine: t != nil && t.Has(credential.ScopeWorkloads) && who.Security && !who.Auditor}
}

// platform returns the actor who replaces a source: a platform with its token, or a security administrator, who sees a preview of the changes
// first.
func platform(ctx context.Context) workloads.Actor {
	a := registrant(ctx)
	a.Machine = a.Machine || core.Token(core.GinContext(ctx)) == nil && a.Security
	return a
}

// ListWorkloads implements openapi.StrictServerInterface.
func (a *API) ListWorkloads(ctx context.Context, r openapi.ListWorkloadsRequestObject) (openapi.ListWorkloadsResponseObject, error) {
	n, err := core.PageSize(r.Params.Limit)
	if err != nil {
		return nil, err
	}
	q := workloads.Query{Source: core.Value(r.Params.Source), Text: core.Value(r.Params.Q), Limit: n}
	if q.Cursor, err = core.DecodeCursor(listWorkloads, r.Params.Cursor); err != nil {
		return nil, err
	}
	if id := core.Value(r.Params.Application); id != "" {
		e, err := views.EntityOrNotFound(a.Catalog().Application(id))
		if err != nil {
			return nil, err
		}
		q.Subject = e.Name
	}
	list, next, err := a.Workloads.List(registrant(ctx), q)
	if err != nil {
		return nil, workloadProblem(err)
	}
	out := openapi.ListWorkloads200JSONResponse{Items: a.workloadViews(list)}
	if next != "" {
		out.NextCursor = core.EncodeCursor(listWorkloads, next)
	}
	return out, nil
}

func (a *API) workloadViews(list []workloads.Registered) []openapi.Workload {
	var problems []policy.Problem
	if snap, ok := a.Host.Snapshot(); ok {
		problems = snap.Problems()
	}
	out := make([]openapi.Workload, 0, len(list))
	for _, x := range list {
		v := openapi.Workload{
			Id:          x.ID,
			Subject:     x.Subject,
			Addresses:   append([]string{}, x.Addresses...),
			Description: core.Optional(x.Description),
			Source:      core.Optional(x.Source),
			Accepted:    x.Accepted,
			Message:     core.OptionalMessage(governance.AcceptanceOf(problems, "ExternalWorkload", x.Object, x.Message)),
		}
		if !x.Managed {
			v.Id, v.Source = x.Object, nil
		}
		out = append(out, v)
	}
	return out
}

func workloadsFrom(in []openapi.Workload) []workloads.Workload {
	out := make([]workloads.Workload, 0, len(in))
	for _, w := range in {
		out = append(
			out,
			workloads.Workload{ID: w.Id, Source: core.Value(w.Source), Subject: w.Subject, Addresses: w.Addresses, Description: core.Value(w.Description)},
		)
	}
	return out
}

// PutWorkloads implements openapi.StrictServerInterface.
func (a *API) PutWorkloads(ctx context.Context, r openapi.PutWorkloadsRequestObject) (openapi.PutWorkloadsResponseObject, error) {
	in := workloadsFrom(r.Body.Items)
	if len(in) == 0 || len(in) > workloads.MaxPut {
		return nil, core.InvalidField("items", message.FieldCount(1000))
	}
	for _, w := range in[1:] {
		if w.Source != in[0].Source {
			return nil, core.InvalidField("items", message.FieldOneSource())
		}
	}
	results, err := a.Workloads.Put(core.RequestContext(ctx), registrant(ctx), in[0].Source, in)
	if err != nil {
		return nil, workloadProblem(err)
	}
	var out openapi.PutWorkloads200JSONResponse
	c := a.Catalog()
	out.Items = make([]struct {
		Application   *string                             `json:"application,omitempty"`
		Id            string                              `json:"id"`
		Message       *openapi.Message                    `json:"message,omitempty"`
		NeedsApproval *bool                               `json:"needsApproval,omitempty"`
		Outcome       openapi.WorkloadResultsItemsOutcome `json:"outcome"`
	}, len(results))
	for i, x := range results {
		if x.NeedsApproval {
			out.Items[i].NeedsApproval = new(true)
			if e, ok := c.ByName(in[i].Subject); ok {
				out.Items[i].Application = core.Optional(e.ID)
			}
		}
		out.Items[i].Id, out.Items[i].Message, out.Items[i].Outcome = x.ID, core.OptionalMessage(x.Message), openapi.WorkloadResultsItemsOutcome(x.Outcome)
	}
	return out, nil
}

// DeleteWorkload implements openapi.StrictServerInterface.
func (a *API) DeleteWorkload(ctx context.Context, r openapi.DeleteWorkloadRequestObject) (openapi.DeleteWorkloadResponseObject, error) {
	source := core.Value(r.Params.Source)
	if source == "" {
		source = workloads.Portal
	}
	results, err := a.Workloads.Remove(core.RequestContext(ctx), registrant(ctx), source, []string{r.Id})
	if err != nil {
		return nil, workloadProblem(err)
	}
	// Callers who may not remove a workload get the same answer as if it did not exist.
	if results[0].Outcome != workloads.Removed {
		return nil, core.NewProblem(http.StatusNotFound, "not-found", message.WorkloadNotFound())
	}
	return openapi.DeleteWorkload204Response{}, nil
}

// SyncWorkloads implements openapi.StrictServerInterface.
func (a *API) SyncWorkloads(ctx context.Context, r openapi.SyncWorkloadsRequestObject) (openapi.SyncWorkloadsResponseObject, error) {
	in, by := workloadsFrom(r.Body.Items), platform(ctx)
	for i := range in {
		if in[i].Source != "" && in[i].Source != r.Body.Source {
			return nil, core.InvalidField("items", message.FieldSyncedSource())
		}
	}
	var got workloads.Sync
	var err error
	if token := core.Value(r.Body.Token); token == "" {
		got, err = a.Workloads.PreviewSync(core.RequestContext(ctx), by, r.Body.Source, in)
	} else {
		// A registered address may connect wherever its application may, so this needs a recent login. The preview registers nothing.
		if err := a.Tickets.CheckLogin(core.Caller(ctx)); err != nil {
			return nil, err
		}
		if err := core.ExtendWriteDeadline(ctx, syncTimeout); err != nil {
			return nil, err
		}
		got, err = a.Workloads.ApplySync(core.RequestContext(ctx), by, r.Body.Source, in, token, core.Value(r.Body.Confirm))
	}
	if err != nil {
		return nil, workloadProblem(err)
	}
	out := openapi.SyncWorkloads200JSONResponse{
		Token:       got.Token,
		Applied:     got.Applied,
		Unconfirmed: &got.Unconfirmed,
		Added:       got.Added,
		Changed:     got.Changed,
		Removed:     got.Removed,
		Unchanged:   got.Unchanged,
	}
	refused := make([]struct {
		Id      string          `json:"id"`
		Message openapi.Message `json:"message"`
	}, len(got.Refused))
	for i, x := range got.Refused {
		refused[i].Id, refused[i].Message = x.ID, x.Message
	}
	sample := a.workloadViews(got.Sample)
	out.Refused, out.Sample = &refused, &sample
	return out, nil
}

// workloadProblem converts an error of the registrar into a problem of the API.
func workloadProblem(err error) error {
	for kind, p := range map[error]core.Problem{
		workloads.ErrForbidden: {Status: http.StatusForbidden, Code: "forbidden"},
		workloads.ErrInvalid:   {Status: http.StatusUnprocessableEntity, Code: "invalid"},
		workloads.ErrChanged:   {Status: http.StatusConflict, Code: "stale"}, workloads.ErrUnconfirmed: {Status: http.StatusConflict, Code: "conflict"},
		workloads.ErrUnknown: {Status: http.StatusServiceUnavailable, Code: "unavailable"},
	} {
		if errors.Is(err, kind) {
			return sentenceProblem(p, err)
		}
	}
	return err
}
