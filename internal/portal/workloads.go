package portal

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/openapi"
)

const (
	listWorkloads = "workloads"
	// syncPatience is the time limit of a full sync, which writes up to tens of thousands of objects at a limited rate.
	syncPatience = 30 * time.Minute
)

// registrant returns who registers workloads. Platforms register for all applications with the token of a security administrator.
// Other tokens may register for the applications of their owners only.
func registrant(ctx context.Context) workloads.Actor {
	who, t := actor(ctx), tokenOf(ginOf(ctx))
	return workloads.Actor{ID: who.ID, Security: who.Security && !who.Auditor, Auditor: who.Auditor,
		Machine: t != nil && t.Has(credential.ScopeWorkloads) && who.Security && !who.Auditor}
}

// platform returns who replaces a source: a platform with its token, or a security administrator, who sees a preview of the changes
// first.
func platform(ctx context.Context) workloads.Actor {
	a := registrant(ctx)
	a.Machine = a.Machine || tokenOf(ginOf(ctx)) == nil && a.Security
	return a
}

// ListWorkloads implements openapi.StrictServerInterface.
func (a *api) ListWorkloads(ctx context.Context, r openapi.ListWorkloadsRequestObject) (openapi.ListWorkloadsResponseObject, error) {
	n, err := pageSize(r.Params.Limit)
	if err != nil {
		return nil, err
	}
	q := workloads.Query{Source: value(r.Params.Source), Text: value(r.Params.Q), Limit: n}
	if q.Cursor, err = decodeCursor(listWorkloads, r.Params.Cursor); err != nil {
		return nil, err
	}
	if id := value(r.Params.Application); id != "" {
		e, err := found(a.Catalog().Application(id))
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
		out.NextCursor = encodeCursor(listWorkloads, next)
	}
	return out, nil
}

func (a *api) workloadViews(list []workloads.Registered) []openapi.Workload {
	var problems []policy.Problem
	if snap, ok := a.Host.Snapshot(); ok {
		problems = snap.Problems()
	}
	out := make([]openapi.Workload, 0, len(list))
	for _, x := range list {
		v := openapi.Workload{Id: x.ID, Subject: x.Subject, Addresses: append([]string{}, x.Addresses...), Description: optional(x.Description), Source: optional(x.Source),
			Accepted: x.Accepted, Message: optionalMessage(problemOf(problems, "ExternalWorkload", x.Object, x.Message))}
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
		out = append(out, workloads.Workload{ID: w.Id, Source: value(w.Source), Subject: w.Subject, Addresses: w.Addresses, Description: value(w.Description)})
	}
	return out
}

// PutWorkloads implements openapi.StrictServerInterface.
func (a *api) PutWorkloads(ctx context.Context, r openapi.PutWorkloadsRequestObject) (openapi.PutWorkloadsResponseObject, error) {
	in := workloadsFrom(r.Body.Items)
	if len(in) == 0 || len(in) > workloads.MaxPut {
		return nil, wrong("items", message.FieldCount(1000))
	}
	for _, w := range in[1:] {
		if w.Source != in[0].Source {
			return nil, wrong("items", message.FieldOneSource())
		}
	}
	results, err := a.Workloads.Put(plain(ctx), registrant(ctx), in[0].Source, in)
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
				out.Items[i].Application = optional(e.ID)
			}
		}
		out.Items[i].Id, out.Items[i].Message, out.Items[i].Outcome = x.ID, optionalMessage(x.Message), openapi.WorkloadResultsItemsOutcome(x.Outcome)
	}
	return out, nil
}

// DeleteWorkload implements openapi.StrictServerInterface.
func (a *api) DeleteWorkload(ctx context.Context, r openapi.DeleteWorkloadRequestObject) (openapi.DeleteWorkloadResponseObject, error) {
	source := value(r.Params.Source)
	if source == "" {
		source = workloads.Portal
	}
	results, err := a.Workloads.Remove(plain(ctx), registrant(ctx), source, []string{r.Id})
	if err != nil {
		return nil, workloadProblem(err)
	}
	// Callers who may not remove a workload get the same answer as if it did not exist.
	if results[0].Outcome != workloads.Removed {
		return nil, newProblem(http.StatusNotFound, "not-found", message.WorkloadNotFound())
	}
	return openapi.DeleteWorkload204Response{}, nil
}

// SyncWorkloads implements openapi.StrictServerInterface.
func (a *api) SyncWorkloads(ctx context.Context, r openapi.SyncWorkloadsRequestObject) (openapi.SyncWorkloadsResponseObject, error) {
	in, by := workloadsFrom(r.Body.Items), platform(ctx)
	for i := range in {
		if in[i].Source != "" && in[i].Source != r.Body.Source {
			return nil, wrong("items", message.FieldSyncedSource())
		}
	}
	var got workloads.Sync
	var err error
	if token := value(r.Body.Token); token == "" {
		got, err = a.Workloads.PreviewSync(plain(ctx), by, r.Body.Source, in)
	} else {
		if err := patience(ctx, syncPatience); err != nil {
			return nil, err
		}
		got, err = a.Workloads.ApplySync(plain(ctx), by, r.Body.Source, in, token, value(r.Body.Confirm))
	}
	if err != nil {
		return nil, workloadProblem(err)
	}
	out := openapi.SyncWorkloads200JSONResponse{Token: got.Token, Applied: got.Applied, Unconfirmed: &got.Unconfirmed, Added: got.Added, Changed: got.Changed, Removed: got.Removed, Unchanged: got.Unchanged}
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
	for kind, p := range map[error]problem{
		workloads.ErrForbidden: {status: http.StatusForbidden, code: "forbidden"}, workloads.ErrInvalid: {status: http.StatusUnprocessableEntity, code: "invalid"},
		workloads.ErrChanged: {status: http.StatusConflict, code: "stale"}, workloads.ErrUnconfirmed: {status: http.StatusConflict, code: "conflict"},
		workloads.ErrUnknown: {status: http.StatusServiceUnavailable, code: "unavailable"},
	} {
		if errors.Is(err, kind) {
			return said(p, err, kind)
		}
	}
	return err
}
