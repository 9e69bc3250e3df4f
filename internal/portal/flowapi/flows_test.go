package flowapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/featuretest"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// flows is a store with some losses and raw flows, or one that fails.
type flows struct {
	audit.Reader
	losses []audit.Loss
	raw    []audit.Flow
	err    error
}

func (f flows) Losses(_ context.Context, q audit.LossQuery) (audit.LossPage, error) {
	next := ""
	if q.Limit < len(f.losses) {
		next = "node-b"
	}
	return audit.LossPage{Items: f.losses[:min(q.Limit, len(f.losses))], Next: next}, f.err
}

func (f flows) Flows(context.Context, audit.FlowQuery) (audit.FlowPage, error) {
	return audit.FlowPage{Items: f.raw}, f.err
}

func newAPI(t *testing.T, f flows) *API {
	t.Helper()
	a := &API{Data: featuretest.Data(t)}
	a.Flows = f
	return a
}

// TestFilter checks how parameters become a filter: catalog ids become resource names, and the flows of a person are those of what they own.
func TestFilter(t *testing.T) {
	a := newAPI(t, flows{})
	got, err := a.filter(approval.Actor{ID: "alice"}, openapi.ListFlowsParams{Subject: &[]string{"app-888", "10.0.0.1"}, Resource: &[]string{"bobs-cluster"},
		Decision: &openapi.DecisionFilter{"denied"}, Verdict: &[]openapi.Verdict{"dropped"}, Port: &[]int{6379, 0}, Unattributed: new(true)})
	if err != nil {
		t.Fatal(err)
	}
	want := audit.Filter{Within: &audit.Scope{Subjects: []string{portaltest.App888}, Resources: []string{}}, Subjects: []string{portaltest.App888, "10.0.0.1"},
		Resources: []string{portaltest.BobsCluster}, Decisions: []policy.Verdict{policy.Denied}, Verdicts: []audit.Verdict{audit.VerdictDropped},
		Ports: []uint16{6379, 0}, Unattributed: true, Since: featuretest.Now.Add(-24 * time.Hour), Until: featuretest.Now}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, who := range []approval.Actor{{ID: "dave", Security: true}, {ID: "grace", Auditor: true}} {
		if got, err := a.filter(who, openapi.ListFlowsParams{}); err != nil || got.Within != nil {
			t.Errorf("%s sees the flows within %v: %v", who.ID, got.Within, err)
		}
	}
}

// TestFiltersAreBounded checks that each parameter which could make a query expensive is refused above its bound, and accepted at it.
func TestFiltersAreBounded(t *testing.T) {
	a := newAPI(t, flows{})
	many := func(n int) *[]string { return new(slices.Repeat([]string{"x"}, n)) }
	long := func(n int) string { return strings.Repeat("x", n) }
	for name, tc := range map[string]struct {
		at, above openapi.ListFlowsParams
	}{
		"Subjects":      {openapi.ListFlowsParams{Subject: many(50)}, openapi.ListFlowsParams{Subject: many(51)}},
		"Resources":     {openapi.ListFlowsParams{Resource: many(50)}, openapi.ListFlowsParams{Resource: many(51)}},
		"Members":       {openapi.ListFlowsParams{Cluster: many(50)}, openapi.ListFlowsParams{Cluster: many(51)}},
		"Actions":       {openapi.ListFlowsParams{Action: many(50)}, openapi.ListFlowsParams{Action: many(51)}},
		"Long value":    {openapi.ListFlowsParams{Action: &[]string{long(512)}}, openapi.ListFlowsParams{Action: &[]string{long(513)}}},
		"Empty value":   {openapi.ListFlowsParams{}, openapi.ListFlowsParams{Cluster: &[]string{""}}},
		"Text":          {openapi.ListFlowsParams{Q: new(long(200))}, openapi.ListFlowsParams{Q: new(long(201))}},
		"Policy":        {openapi.ListFlowsParams{Policy: new(long(512))}, openapi.ListFlowsParams{Policy: new(long(513))}},
		"Ports":         {openapi.ListFlowsParams{Port: new(slices.Repeat([]int{1}, 50))}, openapi.ListFlowsParams{Port: new(slices.Repeat([]int{1}, 51))}},
		"Port":          {openapi.ListFlowsParams{Port: &[]int{65535}}, openapi.ListFlowsParams{Port: &[]int{65536}}},
		"Negative port": {openapi.ListFlowsParams{Port: &[]int{0}}, openapi.ListFlowsParams{Port: &[]int{-1}}},
		"Decisions": {openapi.ListFlowsParams{Decision: &openapi.DecisionFilter{"allowed"}},
			openapi.ListFlowsParams{Decision: &openapi.DecisionFilter{"all"}}},
		"Verdicts": {openapi.ListFlowsParams{Verdict: &[]openapi.Verdict{"audit"}}, openapi.ListFlowsParams{Verdict: &[]openapi.Verdict{"none"}}},
		"Window": {openapi.ListFlowsParams{Since: new(featuretest.Now.AddDate(0, 0, -31))},
			openapi.ListFlowsParams{Since: new(featuretest.Now.AddDate(0, 0, -33))}},
		"Ends too early": {openapi.ListFlowsParams{}, openapi.ListFlowsParams{Since: new(featuretest.Now)}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := a.filter(approval.Actor{ID: "alice"}, tc.at); err != nil {
				t.Errorf("at the bound: %v", err)
			}
			var p *core.Problem
			if _, err := a.filter(approval.Actor{ID: "alice"}, tc.above); !errors.As(err, &p) || p.Status != 400 {
				t.Errorf("above the bound: %v", err)
			}
		})
	}
}

// TestSeriesStep checks that a series without a given step has at most the wanted number of points, and that a step is whole minutes.
func TestSeriesStep(t *testing.T) {
	for window, want := range map[time.Duration]time.Duration{
		time.Hour: time.Minute, 24 * time.Hour: 15 * time.Minute, 7 * 24 * time.Hour: 6 * time.Hour, 31 * 24 * time.Hour: 6 * time.Hour,
	} {
		if got, err := seriesStep(nil, window); err != nil || got != want || window/got > wantedPoints {
			t.Errorf("%s: %s, want %s: %v", window, got, want, err)
		}
	}
	for seconds, valid := range map[int]bool{60: true, 3600: true, 59: false, 90: false, 0: false, -60: false, 31*86400 + 60: false} {
		if got, err := seriesStep(&seconds, time.Hour); (err == nil) != valid || valid && got != time.Duration(seconds)*time.Second {
			t.Errorf("%d seconds: %s, %v", seconds, got, err)
		}
	}
}

// TestNodesAreHidden checks that only the security team and auditors see the names of nodes, and that no cursor contains one.
func TestNodesAreHidden(t *testing.T) {
	f := flows{raw: []audit.Flow{{Time: featuretest.Now, Node: "node-a",
		Edge: audit.Edge{Cluster: "m1", Subject: portaltest.App888, Resource: portaltest.BobsCluster}}}}
	for i := range 3 {
		f.losses = append(f.losses, audit.Loss{Cluster: "m1", Node: fmt.Sprint("node-", i), Count: int64(i), From: featuretest.Now, To: featuretest.Now})
	}
	a := newAPI(t, f)
	for _, who := range []approval.Actor{{ID: "alice"}, {ID: "dave", Security: true}, {ID: "grace", Auditor: true}} {
		ctx, sees := featuretest.Context(t, who), who.Security || who.Auditor
		raw, err := a.ListRawFlows(ctx, openapi.ListRawFlowsRequestObject{})
		if err != nil {
			t.Fatal(err)
		}
		if got := raw.(openapi.ListRawFlows200JSONResponse).Items[0].Node; (got != nil) != sees {
			t.Errorf("%s: the node of a flow is %v", who.ID, got)
		}
		var counts []int64
		var cursor *string
		for range len(f.losses) {
			got, err := a.ListFlowLosses(ctx, openapi.ListFlowLossesRequestObject{Params: openapi.ListFlowLossesParams{Limit: new(2), Cursor: cursor}})
			if err != nil {
				t.Fatal(err)
			}
			page := got.(openapi.ListFlowLosses200JSONResponse)
			for _, l := range page.Items {
				if (l.Node != nil) != sees {
					t.Errorf("%s: the node of a loss is %v", who.ID, l.Node)
				}
				counts = append(counts, l.Count)
			}
			if cursor = page.NextCursor; cursor == nil || sees { // the store of this test has no second page by its own cursor
				break
			}
		}
		if want := []int64{0, 1, 2}; !sees && !slices.Equal(counts, want) {
			t.Errorf("the pages without nodes have %v, want %v", counts, want)
		}
	}
}

// TestUnavailableFlows checks that a page says that the store is away, and never that there are no flows.
func TestUnavailableFlows(t *testing.T) {
	a := newAPI(t, flows{err: audit.ErrUnavailable})
	got, err := a.ListRawFlows(featuretest.Context(t, approval.Actor{ID: "alice"}), openapi.ListRawFlowsRequestObject{})
	if err != nil || got.(openapi.ListRawFlows200JSONResponse).Available {
		t.Errorf("a store that is away: %v, %v", got, err)
	}
	var p *core.Problem
	if _, err := newAPI(t, flows{err: audit.ErrInvalidQuery}).readable(audit.ErrInvalidQuery); !errors.As(err, &p) || p.Status != 400 {
		t.Errorf("a query that the store refuses: %v", err)
	}
	other := errors.New("disk full")
	if available, err := a.readable(other); available || !errors.Is(err, other) {
		t.Errorf("another error: %v, %v", available, err)
	}
}

// TestApprovers checks that each person who approved is named once, in the order of the votes, and that nobody who rejected is.
func TestApprovers(t *testing.T) {
	it := approval.Item{Steps: []approval.Step{
		{Votes: []approval.Vote{{Person: "carol", Approve: true}, {Person: "erin"}}},
		{Votes: []approval.Vote{{Person: "bob", Approve: true}, {Person: "carol", Approve: true}}},
	}}
	if d := cmp.Diff([]string{"carol", "bob"}, approvers(it)); d != "" {
		t.Error(d)
	}
}
