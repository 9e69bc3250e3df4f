package policy

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

func TestWildcardUnits(t *testing.T) {
	type unit struct {
		Name   string
		Values []string
		From   []Ref
	}
	cases := map[string]struct {
		reason string
		world  []any
		want   []unit
	}{
		"WholeClass": {reason: "an allow of a whole class selects by the presence of its label",
			world: []any{statementOf("a", Allow, app888, "redis:connect", allRedis)}, want: []unit{{allRedis, nil, []Ref{{"p-a", "a"}}}}},
		"Prefix": {
			reason: "a prefix is the known names that it covers",
			world: []any{
				statementOf("a", Allow, app888, "redis:connect", redisHead+"b*"),
				known{bobs, orders, redisHead + "b/d"},
				protect(redisHead+"b2", v1alpha1.ModeObserve),
			},
			want: []unit{{redisHead + "b*", []string{"b2", "bobs-cluster"}, []Ref{{"p-a", "a"}}}},
		},
		"NothingKnown": {
			reason: "a prefix that nothing known begins with selects nothing, never everything",
			world:  []any{statementOf("a", Allow, app888, "redis:connect", redisHead+"b*")},
		},
		"Wider": {
			reason: "a wildcard that is wider than its class is narrowed to it",
			world:  []any{statementOf("a", Allow, app888, "site:read", "trnv1:rsc:trip-com:web:shop:*"), shopClass("eu/*", "eu"), shopClass("us/*", "us")},
			want:   []unit{{"trnv1:rsc:trip-com:web:shop:eu/*", nil, []Ref{{"p-a", "a"}}}, {"trnv1:rsc:trip-com:web:shop:us/*", nil, []Ref{{"p-a", "a"}}}},
		},
		"Deny": {reason: "a deny is folded into exact units, and makes none", world: []any{statementOf("a", Deny, app888, "redis:connect", allRedis)}},
		"Over": {
			reason: "the unit stays while an expired statement names it, and allows nobody",
			world:  []any{statementOf("a", Allow, app888, "redis:connect", allRedis, until(hours(0)))},
			want:   []unit{{allRedis, nil, nil}},
		},
		"Refused": {reason: "a refused statement makes none", world: []any{statementOf("a", Allow, userBob, "redis:connect", allRedis)}},
		"RefusedDeny": {
			reason: "a refused deny takes out the wildcard allows that it could have overridden",
			world: []any{
				statementOf("a", Allow, teamApp, "redis:connect", allRedis),
				statementOf("b", Allow, app888, "redis:connect", allRedis),
				statementOf("d", Deny, appHead+"app/team-*", "redis:connect", bobs),
				protect(bobs, v1alpha1.ModeEnforce),
			},
			want: []unit{{allRedis, nil, []Ref{{"p-b", "b"}}}},
		},
		"RefusedDenyElsewhere": {
			reason: "but not where its resource is not covered by the wildcard",
			world: []any{
				statementOf("a", Allow, teamApp, "redis:connect", redisHead+"o*"),
				statementOf("d", Deny, appHead+"app/team-*", "redis:connect", bobs),
				protect(bobs, v1alpha1.ModeEnforce),
				known{orders},
			},
			want: []unit{{redisHead + "o*", []string{"orders-cache"}, []Ref{{"p-a", "a"}}}},
		},
		"RefusedDenyNoEnforce": {
			reason: "nor where nothing is enforced: a deny does not count there",
			world: []any{
				statementOf("a", Allow, teamApp, "redis:connect", allRedis),
				statementOf("d", Deny, appHead+"app/team-*", "redis:connect", bobs),
				protect(bobs, v1alpha1.ModeAudit),
			},
			want: []unit{{allRedis, nil, []Ref{{"p-a", "a"}}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewSnapshot(world(tc.world...))
			var got []unit
			for _, u := range s.Compile(noon) {
				if !u.Wildcard {
					continue
				}
				if u.Mode != v1alpha1.ModeAudit || u.ClusterModes != nil || u.OtherPorts != v1alpha1.OtherPortsDeny {
					t.Errorf("%s: a wildcard unit must never close anything: %+v", tc.reason, u)
				}
				if again, ok := s.CompileResource(u.Resource, noon); !ok || cmp.Diff(u, again, cmpopts.EquateComparable(netip.Prefix{})) != "" {
					t.Errorf("%s: CompileResource(%s) is not what Compile has", tc.reason, u.Resource)
				}
				got = append(got, unit{u.Resource, u.LabelValues, u.From})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func shopClass(id, key string) *v1alpha1.ResourceClass {
	return &v1alpha1.ResourceClass{
		ObjectMeta: named(key),
		Spec: v1alpha1.ResourceClassSpec{Pattern: v1alpha1.NamePattern("trnv1:rsc:trip-com:web:shop:" + id), LabelKey: v1alpha1.LabelKey(key),
			Actions: []v1alpha1.ClassAction{{Name: "site:read", Ports: []v1alpha1.Port{port(80)}}}},
	}
}

func TestExternalGroups(t *testing.T) {
	s := NewSnapshot(world(workload("net", app888, "10.0.0.0/30", "2001:db8::/127"), workload("vm", app889, "10.0.0.1", "10.0.0.8"),
		workload("same", app888, "10.0.0.2"), workload("other", teamApp, "10.0.0.8/32"), workload("nobody", userBob, "10.0.0.0/31")))
	want := []ExternalGroup{
		{ID: UnitID(app888), Subject: app888, Class: "application", ClassID: UnitID(appHead + "app/*"), Prefixes: prefixes("10.0.0.2/31", "2001:db8::/127")},
		{
			ID:        UnitID(app889),
			Subject:   app889,
			Class:     "application",
			ClassID:   UnitID(appHead + "app/*"),
			Prefixes:  prefixes("10.0.0.1/32"),
			Contested: prefixes("10.0.0.8/32"),
		},
		{ID: UnitID(teamApp), Subject: teamApp, Class: "application", ClassID: UnitID(appHead + "app/*"), Contested: prefixes("10.0.0.8/32")},
	}
	if diff := cmp.Diff(want, s.ExternalGroups(), cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("longer prefixes of others are cut out, also of those in no class, equal ones are contested; -want +got:\n%s", diff)
	}
}

// On the wire a group with a prefix of no bits neither lets in nor refuses (Cilium 1.20).
func TestExternalGroupOfTheWholeWorld(t *testing.T) {
	s := NewSnapshot(world(workload("all", app888, "0.0.0.0/0", "::/0"), workload("same", app889, "::/0")))
	var got [][]netip.Prefix
	for _, g := range s.ExternalGroups() {
		got = append(got, g.Prefixes, g.Contested)
	}
	want := [][]netip.Prefix{prefixes("0.0.0.0/1", "128.0.0.0/1"), prefixes("::/1", "8000::/1"), nil, prefixes("::/1", "8000::/1")}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("a prefix of all addresses is two halves; -want +got:\n%s", diff)
	}
}

// Every address is in the groups of exactly those whom the longest prefix belongs to, and in no group twice.
func TestExternalGroupsAreLongestPrefixes(t *testing.T) {
	subjects := []string{app888, app889, teamApp}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 6))
		in := world()
		for i := range 1 + r.IntN(12) {
			bits := 24 + r.IntN(9)
			p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(r.IntN(256))}), bits).Masked()
			in.Workloads = append(in.Workloads, workload(fmt.Sprint(i), subjects[r.IntN(3)], p.String()))
		}
		s := NewSnapshot(in)
		for last := range 256 {
			a := netip.AddrFrom4([4]byte{10, 0, 0, byte(last)})
			var got []string
			for _, g := range s.ExternalGroups() {
				for _, p := range slices.Concat(g.Prefixes, g.Contested) {
					if p.Contains(a) {
						got = append(got, g.Subject)
					}
				}
			}
			if diff := cmp.Diff(s.external.lookup(a), got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("seed %d, %s: -longest prefix +groups:\n%s", seed, a, diff)
			}
		}
	}
}

// TestGrowthIsRefused checks that, when a policy map fills up, the newest grants are refused and older ones stay in force.
func TestGrowthIsRefused(t *testing.T) {
	in := world(protect(bobs, v1alpha1.ModeEnforce))
	old, young := acp("z-old"), acp("a-young")
	old.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
	young.CreationTimestamp = metav1.NewTime(noon)
	for i := range 9 {
		st := statementOf(fmt.Sprintf("t-%d-1", i+2), Allow, fmt.Sprintf("%sapp/%d", appHead, i), "redis:connect", bobs)
		for j := range 200 {
			st.Subjects = append(st.Subjects, v1alpha1.Subject(fmt.Sprintf("%sapp/%d-%d", appHead, i, j)))
		}
		young.Spec.Statements = append(young.Spec.Statements, st)
	}
	old.Spec.Statements = []v1alpha1.Statement{statementOf("s", Allow, app888, "redis:connect", bobs)}
	young.Spec.Statements = append(young.Spec.Statements, statementOf("t-1-1", Deny, app889, "redis:connect", bobs))
	in.Policies = []*v1alpha1.AccessControlPolicy{young, old}

	in.Members = 4
	u, _ := NewSnapshot(in).CompileResource(bobs, noon)
	if want := 4 * (9*201 + 2); u.Entries != want || len(u.Refused) > 0 || len(u.Warnings) > 0 {
		t.Errorf("with room for all: %d entries, want %d; refused %v, warnings %v", u.Entries, want, u.Refused, u.Warnings)
	}
	in.Members = 5
	if u, _ = NewSnapshot(in).CompileResource(bobs, noon); len(u.Refused) > 0 || len(u.Warnings) != 1 {
		t.Errorf("with more than half full: refused %v, warnings %v, want a warning only", u.Refused, u.Warnings)
	}
	in.Members = 10
	u, _ = NewSnapshot(in).CompileResource(bobs, noon)
	var refused []string
	for _, r := range u.Refused {
		if r.Reason != v1alpha1.RefusedTooMany || r.Message.IsZero() {
			t.Errorf("refusal %+v, want reason %s", r, v1alpha1.RefusedTooMany)
		}
		refused = append(refused, r.Ref.SID)
	}
	if diff := cmp.Diff([]string{"t-10-1", "t-9-1"}, refused); diff != "" {
		t.Errorf("refused -want +got:\n%s", diff)
	}
	if room := (&policyMap{entries: MapEntries}).limit(); u.Entries > room || !slices.Contains(u.From, Ref{"z-old", "s"}) ||
		!slices.Contains(u.From, Ref{"a-young", "t-1-1"}) {
		t.Errorf("%d entries from %v, want the oldest grant and every deny within %d", u.Entries, u.From, room)
	}
}

func TestMaskedRanges(t *testing.T) {
	for _, tc := range []struct {
		reason string
		ports  []v1alpha1.Port
		want   int
	}{
		{"one port", []v1alpha1.Port{tcp(6379)}, 1},
		{"an aligned range", []v1alpha1.Port{tcp(8, 15)}, 1},
		{"a range that is not", []v1alpha1.Port{tcp(7, 16)}, 3},
		{"all but port 0", []v1alpha1.Port{tcp(1, 65535)}, 16},
	} {
		if got := maskedRanges(tc.ports); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.reason, got, tc.want)
		}
	}
}

func TestCompareNatural(t *testing.T) {
	want := []string{"", "a", "t-2-1", "t-2-3", "t-10-1", "t-10-1x", "x"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, compareNatural)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if strings.Compare("t-10-1", "t-2-1") > 0 {
		t.Error("the case does not distinguish natural order from plain")
	}
}

// TestLacks checks that objects that cannot be propagated to the members are refused, above all a deny that would silently be missing.
func TestLacks(t *testing.T) {
	in := world(
		protect(bobs, v1alpha1.ModeEnforce),
		workload("vm", app889, "10.5.0.7"),
		statementOf(
			"all",
			Allow,
			"*",
			"redis:connect",
			bobs,
		),
		statementOf("class", Allow, appHead+"app/*", "redis:admin", bobs),
		statementOf("wild", Allow, app888, "redis:connect", allRedis),
		statementOf("prefix", Allow, appHead+"app/team-*", "redis:connect", bobs),
		statementOf("deny", Deny, app889, "redis:connect", bobs),
	)
	reasons := func(s *Snapshot) (sids []string) {
		for _, r := range s.Refusals() {
			if r.Reason != v1alpha1.RefusedUnsupported {
				t.Errorf("%s is refused for %s", r.Ref, r.Reason)
			}
			sids = append(sids, r.Ref.SID)
		}
		return sids
	}
	full := NewSnapshot(in)
	if got := reasons(full); len(got) > 0 || len(full.ExternalGroups()) != 1 || len(full.Problems()) > 0 {
		t.Errorf("refused %v, %d groups, problems %v, want all to be pushed", got, len(full.ExternalGroups()), full.Problems())
	}
	for _, c := range []struct {
		lacks  Unsupported
		groups int
		want   []string
		reason string
	}{
		{Unsupported{Names: true}, 1, []string{"prefix"}, "nobody knows what a prefix stands for"},
		{Unsupported{Groups: true}, 0, []string{"deny"}, "a deny of what has no address in the members would be missing"},
	} {
		in.Unsupported = c.lacks
		s := full.Next(in)
		if diff := cmp.Diff(c.want, reasons(s)); diff != "" || len(s.ExternalGroups()) != c.groups {
			t.Errorf("%s: %d groups, refused -want +got:\n%s", c.reason, len(s.ExternalGroups()), diff)
		}
	}
	in.Unsupported = Unsupported{Groups: true, Names: true}
	s := full.Next(in)
	if diff := cmp.Diff([]string{"deny", "prefix"}, reasons(s)); diff != "" {
		t.Errorf("refused -want +got:\n%s", diff)
	}
	if len(s.Problems()) != 1 || len(s.ExternalGroups()) > 0 {
		t.Errorf("problems %v and %d groups, want the workload to say that it is not pushed, and no group", s.Problems(), len(s.ExternalGroups()))
	}
	u, _ := s.CompileResource(bobs, noon)
	if diff := cmp.Diff([]Ref{{"p-class", "class"}}, u.From); diff != "" || len(u.Rules[0].ExternalClasses) > 0 {
		t.Errorf("the refused deny has to take out the allow of anyone, and rules must not name groups; -want +got:\n%s%+v", diff, u.Rules)
	}
	in.Workloads = nil
	if diff := cmp.Diff([]string{"prefix"}, reasons(s.Next(in))); diff != "" {
		t.Errorf("without the workload, refused -want +got:\n%s", diff)
	}
}
