package catalogapi

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/featuretest"
	"github.com/acp-io/acp/internal/portal/openapi"
)

func search(t *testing.T, a *API, p openapi.SearchParams) ([]string, error) {
	t.Helper()
	got, err := a.Search(featuretest.Context(t, approval.Actor{ID: "alice"}), openapi.SearchRequestObject{Params: p})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, hit := range got.(openapi.Search200JSONResponse).Items {
		out = append(out, fmt.Sprintf("%s %s %q", hit.Kind, hit.Id, hit.Title))
	}
	return out, nil
}

// TestSearch checks what a search finds, the order of the kinds, and that its limits hold.
func TestSearch(t *testing.T) {
	a := &API{Data: featuretest.Data(t)}
	for name, tc := range map[string]struct {
		params openapi.SearchParams
		want   []string
	}{
		"Title":    {openapi.SearchParams{Q: "App 88"}, []string{`application app-888 "App 888"`, `application app-889 "App 889"`}},
		"One kind": {openapi.SearchParams{Q: "bob", Kind: &[]openapi.SearchParamsKind{"person"}}, []string{`person bob "Bob"`}},
		"Kinds in their order": {openapi.SearchParams{Q: "bob", Kind: &[]openapi.SearchParamsKind{"person", "resource"}},
			[]string{`resource bobs-cluster "Bob's cluster"`, `person bob "Bob"`}},
		"Group":   {openapi.SearchParams{Q: "payments"}, []string{`group payments "payments"`}},
		"Limit":   {openapi.SearchParams{Q: "App 88", Limit: new(1)}, []string{`application app-888 "App 888"`}},
		"Nothing": {openapi.SearchParams{Q: "no such thing"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := search(t, a, tc.params)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
	for _, p := range []openapi.SearchParams{
		{Q: "  "}, {Q: fmt.Sprintf("%0201d", 0)}, {Q: "x", Limit: new(0)}, {Q: "x", Kind: &[]openapi.SearchParamsKind{"secret"}},
	} {
		var problem *core.Problem
		if got, err := search(t, a, p); !errors.As(err, &problem) || problem.Status != 400 {
			t.Errorf("%+v finds %v: %v", p, got, err)
		}
	}
}

// TestOwner checks how the id of an owner is read. A person comes before a group with the same id.
func TestOwner(t *testing.T) {
	a := &API{Data: featuretest.Data(t)}
	for id, want := range map[string]catalog.Owner{
		"alice":       {Kind: catalog.OwnerPerson, ID: "alice"},
		"storage":     {Kind: catalog.OwnerGroup, ID: "storage"},
		"group:alice": {Kind: catalog.OwnerGroup, ID: "alice"},
		"user:nobody": {Kind: catalog.OwnerPerson, ID: "nobody"},
		"nobody":      {Kind: catalog.OwnerGroup, ID: "nobody"},
	} {
		if got := a.owner(id); got != want {
			t.Errorf("%s is %+v, want %+v", id, got, want)
		}
	}
}

// TestEditor checks that an auditor edits nothing, whatever other roles they have.
func TestEditor(t *testing.T) {
	for _, tc := range []struct {
		who             approval.Actor
		edits, machines bool
	}{
		{approval.Actor{ID: "alice"}, false, false},
		{approval.Actor{ID: "dave", Security: true}, true, true},
		{approval.Actor{ID: "grace", Auditor: true}, false, false},
		{approval.Actor{ID: "both", Security: true, Auditor: true}, false, false},
	} {
		ctx := featuretest.Context(t, tc.who)
		if got := editor(ctx); got.Security != tc.edits || got.ID != tc.who.ID {
			t.Errorf("%+v edits as %+v", tc.who, got)
		}
		if got := registrant(ctx); got.Machine || got.Security != tc.edits {
			t.Errorf("%+v registers as %+v without a token", tc.who, got)
		}
		if got := platform(ctx); got.Machine != tc.machines {
			t.Errorf("%+v replaces a source as %+v", tc.who, got)
		}
	}
}

// TestPreviewsAreBounded checks that a preview lists what disappears before all else, at most maxChanges changes and problems, and counts all.
func TestPreviewsAreBounded(t *testing.T) {
	var d catalog.Diff
	for i := range maxChanges {
		ref := catalog.Ref{Kind: catalog.KindApplication, ID: fmt.Sprint("a", i)}
		d.Created = append(d.Created, catalog.Change{Ref: ref})
		d.Gone = append(d.Gone, catalog.Change{Ref: ref})
		d.Problems = append(d.Problems, catalog.Problem{Where: "file", Message: message.Stored{Message: message.WorkloadNotFound()}})
		d.Orphans = append(d.Orphans, ref)
	}
	d.Gone = d.Gone[:10]
	got := syncPreview(d, "token")
	if got.Token != "token" || got.Added != maxChanges || got.Gone != 10 || len(got.Changes) != maxChanges || len(*got.Problems) != maxChanges {
		t.Errorf("the preview has %d added, %d gone, %d changes and %d problems", got.Added, got.Gone, len(got.Changes), len(*got.Problems))
	}
	for i, c := range got.Changes {
		if want := openapi.SyncChangeVerbGone; (c.Verb == want) != (i < 10) {
			t.Errorf("change %d is %s", i, c.Verb)
			break
		}
	}
}

// TestProblems checks the status and code of each refusal, and that an unexpected error is not shown to callers.
func TestProblems(t *testing.T) {
	refusal := func(kind error) error { return &catalog.Error{Kind: kind, Message: message.WorkloadNotFound()} }
	for name, tc := range map[string]struct {
		err    error
		status int
		code   string
	}{
		"Forbidden":             {catalogProblem(refusal(catalog.ErrForbidden)), 403, "forbidden"},
		"Not found":             {catalogProblem(refusal(catalog.ErrNotFound)), 404, "not-found"},
		"Conflict":              {catalogProblem(refusal(catalog.ErrConflict)), 409, "conflict"},
		"Changed":               {catalogProblem(refusal(catalog.ErrChanged)), 409, "stale"},
		"Field":                 {catalogProblem(&catalog.FieldError{Field: "name", Message: message.WorkloadNotFound()}), 422, "invalid"},
		"Workload, forbidden":   {workloadProblem(fmt.Errorf("no: %w", workloads.ErrForbidden)), 403, "forbidden"},
		"Workload, changed":     {workloadProblem(fmt.Errorf("no: %w", workloads.ErrChanged)), 409, "stale"},
		"Workload, unconfirmed": {workloadProblem(fmt.Errorf("no: %w", workloads.ErrUnconfirmed)), 409, "conflict"},
		"Workload, unknown":     {workloadProblem(fmt.Errorf("no: %w", workloads.ErrUnknown)), 503, "unavailable"},
	} {
		var p *core.Problem
		if !errors.As(tc.err, &p) || p.Status != tc.status || p.Code != tc.code {
			t.Errorf("%s: %v", name, tc.err)
		}
	}
	var p *core.Problem
	for _, convert := range []func(error) error{catalogProblem, workloadProblem} {
		if other := errors.New("disk full"); errors.As(convert(other), &p) || !errors.Is(convert(other), other) {
			t.Error("an unexpected error became a problem")
		}
	}
}
