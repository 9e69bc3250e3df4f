package governanceapi

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/governance"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

const (
	listFindings = "findings"
	// minDisagreement is how long a disagreement must last to be a finding. Members apply changes of policies and of labels of pods within
	// about 35 s, in which disagreements are normal.
	minDisagreement = 2 * time.Minute
)

// ListFindings implements openapi.StrictServerInterface.
func (a *API) ListFindings(ctx context.Context, r openapi.ListFindingsRequestObject) (openapi.ListFindingsResponseObject, error) {
	for _, k := range core.Value(r.Params.Kind) {
		if !k.Valid() {
			return nil, core.InvalidParameter("kind", message.FieldFindingKind())
		}
	}
	sort, err := core.ParseSort(r.Params.Sort, "severity", "-severity", "kind", "-kind", "since", "-since")
	if err != nil {
		return nil, err
	}
	in, members, err := a.wholeFleet(ctx)
	if err != nil {
		return nil, err
	}
	snapshot, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	member := core.Value(r.Params.Member)
	all := governance.Findings(in, members, snapshot.Problems(), member)
	out := openapi.ListFindings200JSONResponse{Items: []openapi.Finding{}, Kinds: map[string]int{}, FlowsAvailable: true}
	disagreeing, err := a.lastingDisagreements(ctx)
	if err != nil {
		if err := core.RequestContext(ctx).Err(); err != nil {
			return nil, err
		}
		a.Log.Debug("disagreements could not be read", "error", err)
		out.FlowsAvailable = false
	}
	all = governance.SortFindings(append(all, disagreeing...))
	c := a.Catalog()
	part := strings.ToLower(core.Value(r.Params.Q))
	all = slices.DeleteFunc(all, func(f governance.Finding) bool {
		if member != "" && f.Member != member {
			return true
		}
		if part == "" || f.LeftOut > 0 { // what is left out may have the text
			return false
		}
		text := f.Message.Text + "\n" + f.Member + "\n" + f.Resource + "\n" + f.Statement.String() + "\n" + f.Object + "\n" + views.Ref(c, f.Resource).Title
		return !strings.Contains(strings.ToLower(text), part)
	})
	for _, f := range all {
		out.Kinds[string(f.Kind)]++
	}
	if want := core.Value(r.Params.Kind); len(want) > 0 {
		all = slices.DeleteFunc(all, func(f governance.Finding) bool { return !slices.Contains(want, openapi.FindingKind(f.Kind)) })
	}
	shown, next, err := core.SortedPage(
		listFindings,
		sort,
		core.Rows[governance.Finding]{
			All: all,
			ID:  func(f governance.Finding) string { return f.Key() },
			Keys: map[string]func(governance.Finding) string{
				"kind":  func(f governance.Finding) string { return string(f.Kind) },
				"since": func(f governance.Finding) string { return core.NumberKey(f.Since.UnixMicro()) },
			},
		},
		r.Params.Cursor,
		r.Params.Limit,
	)
	if err != nil {
		return nil, err
	}
	out.NextCursor, out.Total = next, len(all)
	for _, f := range shown {
		x := openapi.Finding{
			Id:       f.Key(),
			Kind:     openapi.FindingKind(f.Kind),
			Severity: openapi.FindingSeverity(f.Severity),
			Message:  f.Message,
			Member:   core.Optional(f.Member),
			Policy:   core.Optional(f.Statement.Policy),
			Sid:      core.Optional(f.Statement.SID),
			Object:   core.Optional(f.Object),
			Since:    views.Time(f.Since),
		}
		if f.Resource != "" {
			x.Resource = new(views.Ref(c, f.Resource))
		}
		if f.Count > 0 {
			x.Count = &f.Count
		}
		out.Items = append(out.Items, x)
	}
	return out, nil
}

// lastingDisagreements returns the disagreements of the last day that lasted, by resource and member.
func (a *API) lastingDisagreements(ctx context.Context) ([]governance.Finding, error) {
	limited, cancel := context.WithTimeout(core.RequestContext(ctx), views.FlowTimeout)
	defer cancel()
	now := a.Now()
	type place struct{ resource, member string }
	type span struct {
		first, last time.Time
		passed, n   int64
	}
	found := map[place]*span{}
	err := a.Flows.Totals(limited, audit.Filter{Since: now.Add(-views.DeniedWindow), Until: now, Disagree: true}, func(t audit.Total) error {
		if t.Resource == "" {
			return nil
		}
		k := place{t.Resource, t.Cluster}
		s := found[k]
		if s == nil {
			s = &span{first: t.FirstSeen}
			found[k] = s
		}
		if t.FirstSeen.Before(s.first) {
			s.first = t.FirstSeen
		}
		if t.LastSeen.After(s.last) {
			s.last = t.LastSeen
		}
		s.n += t.Count
		if !t.Decision.LetsThrough() {
			s.passed += t.Count
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []governance.Finding
	for k, s := range found {
		if s.last.Sub(s.first) < minDisagreement {
			continue
		}
		out = append(
			out,
			governance.Finding{
				Kind:     governance.Disagreement,
				Severity: v1alpha1.FindingFails,
				Member:   k.member,
				Resource: k.resource,
				Since:    s.first,
				Count:    s.n,
				Message:  message.FindingDisagreement(int(s.passed), int(s.n-s.passed)),
			},
		)
	}
	return out, nil
}
