package governanceapi

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/governance"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// maxUnits is the maximum number of units of a member that are listed as not realized.
const maxUnits = 200

// wholeFleet returns the policies and the reports of all members. Only the security team and auditors may read them.
func (a *API) wholeFleet(ctx context.Context) (policy.Input, []*v1alpha1.MemberCluster, error) {
	if err := core.RequireGovernor(core.Caller(ctx)); err != nil {
		return policy.Input{}, nil, err
	}
	if _, err := a.Snapshot(); err != nil {
		return policy.Input{}, nil, err
	}
	in, _ := a.Host.Input()
	return in, a.Host.Members(), nil
}

// ListFleet implements openapi.StrictServerInterface.
func (a *API) ListFleet(ctx context.Context, _ openapi.ListFleetRequestObject) (openapi.ListFleetResponseObject, error) {
	in, members, err := a.wholeFleet(ctx)
	if err != nil {
		return nil, err
	}
	behind, waves := governance.UnitsBehind(in), governance.WavesByMember(in, a.Now())
	unwatched := a.unwatched(ctx)
	out := openapi.ListFleet200JSONResponse{Items: []openapi.Member{}, Reported: len(members) > 0}
	for _, m := range withUnreported(members, behind) {
		x := memberOf(m, behind[m.Name], waves[m.Name])
		if unwatched(m) != nil {
			x.Warns++
		}
		if x.Identities != nil {
			x.Identities.Labels = []openapi.IdentityLabel{}
		}
		out.Items = append(out.Items, x)
	}
	return out, nil
}

// withUnreported adds the members without a report that statuses of units list, and sorts all by name.
func withUnreported(members []*v1alpha1.MemberCluster, listed map[string]int) []*v1alpha1.MemberCluster {
	out := slices.Clone(members)
	reported := map[string]bool{}
	for _, m := range members {
		reported[m.Name] = true
	}
	for name := range listed {
		if !reported[name] {
			out = append(out, unreported(name))
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.MemberCluster) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// unreported returns a member of which nothing is known.
func unreported(name string) *v1alpha1.MemberCluster {
	return &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// GetMember implements openapi.StrictServerInterface.
func (a *API) GetMember(ctx context.Context, r openapi.GetMemberRequestObject) (openapi.GetMemberResponseObject, error) {
	in, members, err := a.wholeFleet(ctx)
	if err != nil {
		return nil, err
	}
	units, listed := governance.UnfinishedUnits(in, r.Member)
	m := unreported(r.Member)
	switch i := slices.IndexFunc(members, func(m *v1alpha1.MemberCluster) bool { return m.Name == r.Member }); {
	case i >= 0:
		m = members[i]
	case !listed:
		return nil, core.NewProblem(http.StatusNotFound, "not-found", message.MemberNotFound())
	}
	behind := 0
	for i := range units {
		if units[i].Behind() {
			behind++
		}
	}
	out := openapi.GetMember200JSONResponse{
		Member:   memberOf(m, behind, governance.WavesByMember(in, a.Now())[m.Name]),
		Findings: []openapi.MemberFinding{},
		Units:    []openapi.MemberUnit{},
	}
	for _, f := range m.Status.Findings {
		out.Findings = append(
			out.Findings,
			openapi.MemberFinding{
				Code:     f.Code,
				Severity: openapi.FindingSeverity(f.Severity),
				Message:  message.Restore(f.Message, f.MessageCode, f.MessageParams),
				Object:   core.Optional(f.Object),
			},
		)
	}
	if f := a.unwatched(ctx)(m); f != nil {
		out.Findings = append(out.Findings, *f)
		out.Member.Warns++
	}
	c := a.Catalog()
	out.UnitsTotal = len(units)
	for _, u := range units[:min(len(units), maxUnits)] {
		out.Units = append(
			out.Units,
			openapi.MemberUnit{Resource: views.Ref(c, u.Resource), State: views.ClusterStates([]v1alpha1.ClusterState{u.State})[0]},
		)
	}
	return out, nil
}

// findingUnwatched is the finding that the flows of a member are not collected. Then there is no evidence for its resources, and the
// guard does not see refused connections.
const findingUnwatched = "FlowsUnwatched"

// watchPeriod is the period in which flows of a member must have been collected for it to count as watched.
const watchPeriod = 15 * time.Minute

// unwatched returns a function that returns the finding for a member whose flows are not collected now, or nil if they are or if
// the member is leaving. If the flow store cannot answer, this is not known, which is also a finding.
func (a *API) unwatched(ctx context.Context) func(*v1alpha1.MemberCluster) *openapi.MemberFinding {
	limited, cancel := context.WithTimeout(core.RequestContext(ctx), views.FlowTimeout)
	defer cancel()
	now := a.Now()
	watch, err := insight.WatchedDays(limited, a.Flows, now.Add(-watchPeriod), now, nil)
	return func(m *v1alpha1.MemberCluster) *openapi.MemberFinding {
		f := openapi.MemberFinding{Code: findingUnwatched, Severity: openapi.FindingSeverity(v1alpha1.FindingWarns)}
		switch {
		case m.Status.State == v1alpha1.MemberClusterLeaving:
			return nil
		case err != nil:
			f.Message = message.FindingFlowsUnknown()
			return &f
		}
		never, ended := watch.Of([]string{m.Name}).Unwatched()
		if len(never)+len(ended) == 0 {
			return nil
		}
		f.Message = message.FindingFlowsNotWatched()
		return &f
	}
}

// memberOf returns a member; in so many of its units the wanted revision was not observed.
func memberOf(m *v1alpha1.MemberCluster, behind int, waves governance.MemberWaves) openapi.Member {
	s := &m.Status
	out := openapi.Member{
		Name:              m.Name,
		State:             openapi.MemberHealth(s.State),
		Since:             instant(s.Since),
		Message:           core.OptionalMessage(message.Restore(s.Message, s.MessageCode, s.MessageParams)),
		Engine:            core.Optional(s.Engine),
		ClusterProfile:    core.Optional(s.ClusterProfile),
		KubernetesVersion: core.Optional(s.KubernetesVersion),
		CiliumVersion: core.Optional(
			s.CiliumVersion,
		),
		IstioVersion: core.Optional(s.IstioVersion),
		Guard:        openapi.GuardState(s.Guard),
		ObservedAt:   instant(s.ObservedAt),
		Nodes:        views.NodeReporting(s.Nodes),
		Behind:       behind,
	}
	if out.State == "" {
		out.State = openapi.MemberHealthUnknown
	}
	if out.Guard == "" {
		out.Guard = openapi.GuardStateUnknown
	}
	for _, f := range s.Findings {
		switch f.Severity {
		case v1alpha1.FindingStops:
			out.Stops++
		case v1alpha1.FindingFails:
			out.Fails++
		default:
			out.Warns++
		}
	}
	if waves.Waiting > 0 {
		out.Waves = &openapi.MemberWaves{Waiting: waves.Waiting, Halted: waves.Halted}
	}
	if id := s.Identities; id != nil {
		out.Identities = &openapi.IdentityUse{Used: int(id.Used), Limit: int(id.Limit), ObservedAt: instant(&id.ObservedAt), Labels: []openapi.IdentityLabel{}}
		for _, l := range id.Labels {
			out.Identities.Labels = append(out.Identities.Labels, openapi.IdentityLabel{Key: l.Key, Values: int(l.Values)})
		}
	}
	if s.State != "" {
		o := s.Objects
		out.Objects = &openapi.MemberObjects{
			Managed:    int(o.Managed),
			Realized:   int(o.Realized),
			Pending:    int(o.Pending),
			Drifted:    int(o.Drifted),
			Leaked:     int(o.Leaked),
			Overridden: int(o.Overridden),
		}
	}
	if p := s.PolicyMap; p != nil {
		out.PolicyMap = &openapi.PolicyMapUse{Highest: int(p.Highest), Limit: int(p.Limit), Unit: core.Optional(p.Unit)}
	}
	if d := s.Downgrade; d != nil {
		out.Downgrade = &openapi.MemberDowngrade{Since: instant(d.Since), By: core.Optional(d.By), Reason: d.Reason}
	}
	return out
}

func instant(t *metav1.Time) *time.Time {
	if t == nil {
		return nil
	}
	return views.Time(t.Time)
}
