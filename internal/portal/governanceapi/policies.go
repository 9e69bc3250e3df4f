package governanceapi

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/governance"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

const (
	listPolicies = "policies"
	// shownResources is the maximum number of resources that the list names for a policy.
	shownResources = 3
)

// ListPolicies implements openapi.StrictServerInterface.
func (a *API) ListPolicies(ctx context.Context, r openapi.ListPoliciesRequestObject) (openapi.ListPoliciesResponseObject, error) {
	for _, o := range core.Value(r.Params.Origin) {
		if !o.Valid() {
			return nil, core.InvalidParameter("origin", message.FieldOneOf([]string{"portal", "gitops", "kubectl", "other"}))
		}
	}
	for _, i := range core.Value(r.Params.Issue) {
		if !i.Valid() {
			return nil, core.InvalidParameter(
				"issue",
				message.FieldOneOf([]string{"shadowed", "contradictory", "redundant", "refused", "unused", "expiring", "expired"}),
			)
		}
	}
	sort, err := core.ParseSort(r.Params.Sort, "name", "-name", "statements", "-statements", "created", "-created")
	if err != nil {
		return nil, err
	}
	issues, err := a.issues(ctx)
	if err != nil {
		return nil, err
	}
	in, _ := a.Host.Input()
	c := a.Catalog()
	part := strings.ToLower(core.Value(r.Params.Q))
	out := openapi.ListPolicies200JSONResponse{Items: []openapi.PolicySummary{}, Issues: map[string]int{}, UnusedKnown: issues.unusedKnown}
	counts := map[string]map[string]int{}
	for ref, list := range issues.byStatement {
		if counts[ref.Policy] == nil {
			counts[ref.Policy] = map[string]int{}
		}
		for _, i := range list {
			counts[ref.Policy][string(i.Kind)]++
			out.Issues[string(i.Kind)]++
		}
	}
	var all []*v1alpha1.AccessControlPolicy
	for _, p := range in.Policies {
		if len(core.Value(r.Params.Origin)) > 0 && !slices.Contains(*r.Params.Origin, openapi.PolicyOriginKind(governance.OriginOf(p).Kind)) {
			continue
		}
		if want := core.Value(
			r.Params.Issue,
		); len(want) > 0 && !slices.ContainsFunc(want, func(i openapi.StatementIssueKind) bool { return counts[p.Name][string(i)] > 0 }) {
			continue
		}
		if part == "" || policyHas(c, p, part) {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(x, y *v1alpha1.AccessControlPolicy) int { return strings.Compare(x.Name, y.Name) })
	shown, next, err := core.SortedPage(
		listPolicies,
		sort,
		core.Rows[*v1alpha1.AccessControlPolicy]{
			All: all,
			ID:  func(p *v1alpha1.AccessControlPolicy) string { return p.Name },
			Keys: map[string]func(*v1alpha1.AccessControlPolicy) string{
				"statements": func(p *v1alpha1.AccessControlPolicy) string { return core.NumberKey(int64(len(p.Spec.Statements))) },
				"created":    func(p *v1alpha1.AccessControlPolicy) string { return core.NumberKey(p.CreationTimestamp.Unix()) },
			},
		},
		r.Params.Cursor,
		r.Params.Limit,
	)
	if err != nil {
		return nil, err
	}
	out.NextCursor, out.Total = next, len(all)
	for _, p := range shown {
		out.Items = append(out.Items, policySummary(c, p, counts[p.Name]))
	}
	return out, nil
}

// policyHas reports whether a text, in lower case, is part of a policy's name or of a name in its statements.
func policyHas(c *catalog.Catalog, p *v1alpha1.AccessControlPolicy, part string) bool {
	has := func(name string) bool {
		if strings.Contains(strings.ToLower(name), part) {
			return true
		}
		e, ok := c.ByName(name)
		return ok && strings.Contains(strings.ToLower(e.Title+"\n"+e.ID), part)
	}
	if has(p.Name) {
		return true
	}
	for i := range p.Spec.Statements {
		s := &p.Spec.Statements[i]
		if has(s.SID) || slices.ContainsFunc(s.Subjects, func(x v1alpha1.Subject) bool { return has(string(x)) }) ||
			slices.ContainsFunc(s.Resources, func(x v1alpha1.ResourceName) bool { return has(string(x)) }) {
			return true
		}
	}
	return false
}

func policySummary(c *catalog.Catalog, p *v1alpha1.AccessControlPolicy, issues map[string]int) openapi.PolicySummary {
	out := openapi.PolicySummary{
		Name:       p.Name,
		Origin:     originView(governance.OriginOf(p)),
		Statements: len(p.Spec.Statements),
		Issues:     map[string]int{},
		Accepted:   true,
		CreatedAt:  views.Time(p.CreationTimestamp.Time),
	}
	for k, n := range issues {
		out.Issues[k] = n
	}
	subjects, resources := map[v1alpha1.Subject]bool{}, map[v1alpha1.ResourceName]bool{}
	list := []openapi.CatalogRef{}
	for i := range p.Spec.Statements {
		for _, s := range p.Spec.Statements[i].Subjects {
			subjects[s] = true
		}
		for _, r := range p.Spec.Statements[i].Resources {
			if !resources[r] && len(list) < shownResources {
				list = append(list, views.Ref(c, string(r)))
			}
			resources[r] = true
		}
	}
	out.Subjects, out.Resources, out.ResourcesTotal = new(len(subjects)), &list, new(len(resources))
	if x := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionAccepted); x != nil && x.Status == metav1.ConditionFalse {
		out.Accepted, out.Message = false, new(message.AccessPolicyNotAccepted(x.Message))
	}
	if x := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionRealized); x != nil && x.Reason != v1alpha1.ReasonNotOnboarded {
		out.Realized = new(x.Status == metav1.ConditionTrue && p.Status.ObservedGeneration >= p.Generation)
		if !*out.Realized && out.Message == nil {
			out.Message = core.OptionalMessage(governance.NotRealized(worstOf(p), x.Message))
		}
	}
	return out
}

// worstOf returns the listed members of the units of a policy that are not realized.
func worstOf(p *v1alpha1.AccessControlPolicy) []v1alpha1.ClusterState {
	var out []v1alpha1.ClusterState
	for i := range p.Status.Units {
		out = append(out, p.Status.Units[i].Clusters...)
	}
	return out
}

// GetPolicy implements openapi.StrictServerInterface.
func (a *API) GetPolicy(ctx context.Context, r openapi.GetPolicyRequestObject) (openapi.GetPolicyResponseObject, error) {
	issues, err := a.issues(ctx)
	if err != nil {
		return nil, err
	}
	p, ok := a.Host.Cached(r.Name)
	if !ok {
		return nil, core.NewProblem(http.StatusNotFound, "not-found", message.AccessPolicyNotFound())
	}
	c := a.Catalog()
	counts := map[string]int{}
	out := openapi.GetPolicy200JSONResponse{
		Statements:  []openapi.PolicyStatement{},
		Managers:    []openapi.PolicyManager{},
		UnusedKnown: issues.unusedKnown,
		Yaml:        policyYAML(p),
	}
	grants := make([]policy.Grant, len(p.Spec.Statements))
	for i := range p.Spec.Statements {
		grants[i] = grantFor(p.Name, &p.Spec.Statements[i])
	}
	from, err := a.OriginsOf(ctx, grants)
	if err != nil {
		return nil, err
	}
	for i := range p.Spec.Statements {
		s := &p.Spec.Statements[i]
		x := openapi.PolicyStatement{
			Sid:       s.SID,
			Effect:    openapi.StatementEffect(s.Effect),
			Subjects:  []openapi.CatalogRef{},
			Actions:   []string{},
			Resources: []openapi.CatalogRef{},
			NotBefore: instant(s.NotBefore),
			NotAfter:  instant(s.NotAfter),
			Hours:     views.Hours(s.Hours),
			Issues:    []openapi.StatementIssue{},
		}
		for _, name := range s.Subjects {
			x.Subjects = append(x.Subjects, views.Ref(c, string(name)))
		}
		for _, name := range s.Actions {
			x.Actions = append(x.Actions, string(name))
		}
		for _, name := range s.Resources {
			x.Resources = append(x.Resources, views.Ref(c, string(name)))
		}
		x.Ticket, x.TicketVisible, x.Reason = from.Reason(c, grants[i])
		for _, found := range issues.byStatement[policy.Ref{Policy: p.Name, SID: s.SID}] {
			counts[string(found.Kind)]++
			x.Issues = append(x.Issues, issueView(found))
		}
		out.Statements = append(out.Statements, x)
	}
	for i := range p.ManagedFields {
		m := &p.ManagedFields[i]
		if m.Subresource == "" {
			out.Managers = append(out.Managers, openapi.PolicyManager{Name: m.Manager, Operation: string(m.Operation), At: instant(m.Time)})
		}
	}
	out.Policy = policySummary(c, p, counts)
	return out, nil
}

// maxUses bounds the pairs of a policy's statements whose last uses are read. The last uses of the other statements are unknown.
const maxUses = 20_000

// ListPolicyUses implements openapi.StrictServerInterface.
func (a *API) ListPolicyUses(ctx context.Context, r openapi.ListPolicyUsesRequestObject) (openapi.ListPolicyUsesResponseObject, error) {
	if err := core.RequireGovernor(core.Caller(ctx)); err != nil {
		return nil, err
	}
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	p, ok := a.Host.Cached(r.Name)
	if !ok {
		return nil, core.NewProblem(http.StatusNotFound, "not-found", message.AccessPolicyNotFound())
	}
	q := views.UsesQuery{Snapshot: snap, Window: views.LastUseWindow}
	out := openapi.ListPolicyUses200JSONResponse{Items: []openapi.StatementUse{}, Since: a.Now().Add(-q.Window).UTC()}
	pairs, grants := useEdges(snap, p, a.Now())
	if q.Origins, err = a.OriginsOf(ctx, grants); err != nil {
		return nil, err
	}
	for _, edges := range pairs {
		q.Edges = append(q.Edges, edges...)
	}
	uses := a.LastUses(ctx, q)
	if out.Available = uses != nil; !out.Available {
		return out, nil
	}
	for i := range p.Spec.Statements {
		s := &p.Spec.Statements[i]
		if s.NotAfter == nil || a.Now().Before(s.NotAfter.Time) {
			out.Items = append(out.Items, useOfStatement(s.SID, pairs[s.SID], uses))
		}
	}
	return out, nil
}

// useEdges returns the pairs of the statements of a policy by sid, at most maxUses, and the grants that identify the tickets of the statements.
func useEdges(snap *policy.Snapshot, p *v1alpha1.AccessControlPolicy, now time.Time) (pairs map[string][]governance.Edge, grants []policy.Grant) {
	pairs = map[string][]governance.Edge{}
	n := 0
	for i := range p.Spec.Statements {
		s := &p.Spec.Statements[i]
		n += len(s.Subjects) * len(s.Resources)
		if s.NotAfter != nil && !now.Before(s.NotAfter.Time) || n > maxUses {
			continue
		}
		for _, subject := range s.Subjects {
			for _, resource := range s.Resources {
				g := policy.Grant{Ref: policy.Ref{Policy: p.Name, SID: s.SID}, Effect: s.Effect, Subject: string(subject), Resource: string(resource),
					Wildcard: strings.HasSuffix(string(resource), "*")}
				if s.NotBefore != nil {
					g.NotBefore = s.NotBefore.Time
				}
				pairs[s.SID] = append(pairs[s.SID], governance.UseEdge(snap, g))
				grants = append(grants, g)
			}
		}
	}
	return pairs, grants
}

// useOfStatement returns the last use of a statement. It is unused if no pair of it was used and each was watched well enough.
func useOfStatement(sid string, edges []governance.Edge, uses *views.LastUses) openapi.StatementUse {
	out := openapi.StatementUse{Sid: sid, State: openapi.UseStateUnused}
	if len(edges) == 0 {
		out.State = openapi.UseStateUnknown
	}
	for i := range edges {
		state, at := uses.Of(&edges[i])
		switch {
		case at != nil && (out.LastUsed == nil || at.After(*out.LastUsed)):
			out.State, out.LastUsed = openapi.UseStateUsed, at
		case state == openapi.UseStateUnknown && out.LastUsed == nil:
			out.State = state
		}
	}
	return out
}

// grantFor returns the fields of a statement that identify its ticket. Statements of tickets are about one subject and one resource, except
// those with a scope, which any of their names identifies.
func grantFor(name string, s *v1alpha1.Statement) policy.Grant {
	g := policy.Grant{Ref: policy.Ref{Policy: name, SID: s.SID}}
	base, _ := policy.SplitPolicyShard(name)
	if len(s.Subjects) == 1 && len(s.Resources) == 1 || base == policy.StatementsPolicy && len(s.Subjects) > 0 && len(s.Resources) > 0 {
		g.Subject, g.Resource = string(s.Subjects[0]), string(s.Resources[0])
	}
	return g
}

func issueView(i governance.Issue) openapi.StatementIssue {
	out := openapi.StatementIssue{Kind: openapi.StatementIssueKind(i.Kind), Message: i.Message}
	if len(i.Others) > 0 {
		others := make([]openapi.StatementRef, 0, len(i.Others))
		for _, o := range i.Others {
			others = append(others, openapi.StatementRef{Policy: o.Policy, Sid: o.SID})
		}
		out.Others = &others
	}
	return out
}

// policyYAML returns the object as YAML, without the fields that the API server adds.
func policyYAML(p *v1alpha1.AccessControlPolicy) *string {
	clean := v1alpha1.AccessControlPolicy{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "AccessControlPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Labels: p.Labels}, Spec: p.Spec}
	text, err := yaml.Marshal(struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              v1alpha1.AccessControlPolicySpec `json:"spec"`
	}{clean.TypeMeta, clean.ObjectMeta, clean.Spec})
	if err != nil {
		return nil
	}
	return core.Optional(string(text))
}
