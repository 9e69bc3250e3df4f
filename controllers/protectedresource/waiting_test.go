package protectedresource

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

// TestEnforceWaitsForEveryPlacedMember checks that Enforce waits until every placed member has the labels in identities, and
// that a member that is closed stays closed and waits for no other.
func TestEnforceWaitsForEveryPlacedMember(t *testing.T) {
	all := []string{"m1", "m2", "m3"}
	observe := func(member v1alpha1.ClusterName) []v1alpha1.ClusterMode {
		return []v1alpha1.ClusterMode{{Cluster: member, Mode: v1alpha1.ModeObserve}}
	}
	for _, c := range []struct {
		reason string
		// before is what the members are like while the resource is enforced first. It is nil if the resource is new.
		before Members
		change func(s *scene)
		now    Members
		closed []string
		// says is a part of what is said of m1, if it waits.
		says string
	}{
		{"every member takes them", nil, nil, sound{}, all, ""},
		{"one lacks the resource's label", nil, nil, labelless{"m2": redisKey}, nil, "m2 (" + redisKey},
		{"one lacks the label of callers", nil, nil, labelless{"m3": appKey}, nil, "m3 (" + appKey},
		{"a label that no rule uses does not matter", nil, nil, labelless{"m3": "other"}, all, ""},
		{"nobody knows of one", nil, nil, labelless{"m3": "?"}, nil, "m3 (nobody could look)"},
		{
			"the one that lacks it is in Observe", nil, func(s *scene) { s.spec.ClusterModes = observe("m2") },
			labelless{"m2": redisKey}, []string{"m1", "m3"}, "",
		},
		{"it is enforced in one member, and another one that is in Audit lacks it", nil, func(s *scene) {
			s.spec.Mode, s.spec.ClusterModes = v1alpha1.ModeAudit, []v1alpha1.ClusterMode{{Cluster: "m1", Mode: v1alpha1.ModeEnforce}}
		}, labelless{"m2": redisKey}, nil, "m2 ("},
		{"a name without registration holds nothing up", nil, func(s *scene) { s.placement = append(s.placement, "later") }, labelless{"later": "?"}, all, ""},
		{"what is closed stays closed when a label is lost", sound{}, nil, labelless{"m1": redisKey, "m2": "?"}, all, ""},
		{"and gets revocations and denies", sound{}, func(s *scene) { s.allowed, s.denied = []string{"2"}, []string{"1"} }, labelless{"m2": redisKey}, all, ""},
		{
			"a member that joins is closed although another lost a label", sound{},
			func(s *scene) { s.join("m4") }, labelless{"m2": redisKey}, append(slices.Clone(all), "m4"), "",
		},
		{"one that joins without labels waits alone", sound{}, func(s *scene) { s.join("m4") }, labelless{"m4": redisKey}, all, ""},
		{"it is closed once they are there", labelless{"m2": redisKey}, nil, sound{}, all, ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s := newScene(t, all...)
			if c.before != nil {
				s.members = c.before
				s.settle()
			}
			if c.change != nil {
				c.change(s)
			}
			s.members = c.now
			states := s.settle()
			if diff := cmp.Diff(c.closed, s.closed(federation.CiliumPolicy), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("closed: -want +got\n%s", diff)
			}
			m1 := states["m1"]
			if c.says != "" && (m1.State != v1alpha1.MemberPending || !strings.Contains(m1.Message, "Enforce is delayed") ||
				!strings.Contains(m1.Message, c.says)) {
				t.Errorf("%+v does not say %q", m1, c.says)
			}
			if c.says == "" && strings.Contains(m1.Message, "Enforce is delayed") {
				t.Errorf("%+v", m1)
			}
			for _, e := range s.existing {
				if len(e.Overrides) > 0 && len(c.closed) == 0 && s.spec.ClusterModes == nil {
					t.Error("each member that waits got a spec of its own, though all of them wait")
				}
			}
		})
	}
}

// TestRulesThatMatchNothingAreNotRealized checks that a unit is not realized if its rules may match nothing: a deny by a label
// that the identities of a member lack does not apply to clients from there.
func TestRulesThatMatchNothingAreNotRealized(t *testing.T) {
	const pending, realized = v1alpha1.MemberPending, v1alpha1.MemberRealized
	for _, c := range []struct {
		reason string
		denied []string
		now    Members
		m1     v1alpha1.MemberState
		says   string
	}{
		{"every member has the labels", []string{"2"}, sound{}, realized, ""},
		{"callers of another member have no label, and a rule denies by it", []string{"2"}, labelless{"m2": appKey}, pending, "m2 (" + appKey},
		{"callers of a member where nothing is placed", []string{"2"}, labelless{"elsewhere": appKey}, pending, "elsewhere (" + appKey},
		{"an allow by it lets nobody in", nil, labelless{"m2": appKey}, pending, "m2 (" + appKey},
		{"nobody knows, and a rule denies by it", []string{"2"}, labelless{"m2": "?"}, pending, "m2 (nobody could look)"},
		{"nobody knows, and allows refuse too much at worst", nil, labelless{"m2": "?"}, realized, ""},
		{"another member lacks the resource's label", []string{"2"}, labelless{"m2": redisKey}, realized, ""},
		{"a pod of the resource uses the network of its node", nil, hosted{member: "m1", key: redisKey, value: "x"}, pending, "ns/redis-0"},
		{"one of another resource does", nil, hosted{member: "m1", key: redisKey, value: "y"}, realized, ""},
		{"one in another member does", nil, hosted{member: "m2", key: redisKey, value: "x"}, realized, ""},
		{"the member itself does", []string{"2"}, labelless{"m1": redisKey}, pending, redisKey},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s := newScene(t, "m1", "m2")
			s.denied = c.denied
			s.settle()
			s.members = c.now
			if m1 := s.settle()["m1"]; m1.State != c.m1 || !strings.Contains(m1.Message, c.says) {
				t.Errorf("%+v, want %s %q", m1, c.m1, c.says)
			}
		})
	}
}

// TestRequestsThatSomeNodesDoNotEnforce checks that a unit with rules about requests is not realized in Enforce while no Envoy
// answers the agents of some nodes. In Audit there are no such rules in the policy.
func TestRequestsThatSomeNodesDoNotEnforce(t *testing.T) {
	get := []v1alpha1.HTTPMatch{{Method: "GET"}}
	for _, c := range []struct {
		reason   string
		requests []v1alpha1.HTTPMatch
		mode     v1alpha1.Mode
		now      Members
		want     v1alpha1.MemberState
	}{
		{"every node enforces them", get, v1alpha1.ModeEnforce, sound{}, v1alpha1.MemberRealized},
		{"some nodes do not", get, v1alpha1.ModeEnforce, envoyless{member: "m1"}, v1alpha1.MemberPending},
		{"some nodes of another member do not", get, v1alpha1.ModeEnforce, envoyless{member: "m2"}, v1alpha1.MemberRealized},
		{"the rules are about connections", nil, v1alpha1.ModeEnforce, envoyless{member: "m1"}, v1alpha1.MemberRealized},
		{"the resource is in Audit", get, v1alpha1.ModeAudit, envoyless{member: "m1"}, v1alpha1.MemberRealized},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s := newScene(t, "m1", "m2")
			s.requests, s.spec.Mode = c.requests, c.mode
			s.settle()
			s.members = c.now
			if m1 := s.settle()["m1"]; m1.State != c.want || (m1.MessageCode == message.StateRequestsIncomplete().Code) != (c.want == v1alpha1.MemberPending) {
				t.Errorf("%+v, want %s", m1, c.want)
			}
		})
	}
}
