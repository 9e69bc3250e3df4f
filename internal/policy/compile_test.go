package policy

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/api/v1alpha1"
)

// apps selects applications by the last part of their names.
func apps(values ...string) []SubjectSelector {
	return []SubjectSelector{{LabelKey: "com.trip/appid", Values: values}}
}

func tcp(first int32, last ...int32) v1alpha1.Port {
	if len(last) > 0 {
		return ports(first, last[0], v1alpha1.ProtocolTCP)
	}
	return v1alpha1.Port{Port: first, Protocol: v1alpha1.ProtocolTCP}
}

const userBob = "trnv1:rsc:trip-com:iam:user:bob" // no class covers it

// known are names seen in the members.
type known []string

func prefixes(texts ...string) (out []netip.Prefix) {
	for _, text := range texts {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

func TestCompileRules(t *testing.T) {
	redis := []v1alpha1.Port{tcp(6379)}
	connect := func(sid, app string) v1alpha1.Statement { return statementOf(sid, Allow, app, "redis:connect", bobs) }
	cases := map[string]struct {
		reason  string
		world   []any
		want    []Rule
		refused []Refusal // messages are not compared
	}{
		"None": {reason: "an onboarded resource without statements has a unit without rules"},
		"One": {
			reason: "one grant",
			world:  []any{connect("a", app888)},
			want:   []Rule{{Effect: Allow, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-a", "a"}}}},
		},
		"Joined": {
			reason: "many grants of one action are one rule",
			world:  []any{connect("b", app889), connect("a", app888), connect("c", app888)},
			want: []Rule{
				{Effect: Allow, Subjects: apps("888", "889"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-a", "a"}, {"p-b", "b"}, {"p-c", "c"}}},
			},
		},
		"Actions": {reason: "actions of the same peers are one rule", world: []any{statementOf("a", Allow, app888, "redis:*", bobs)},
			want: []Rule{{Effect: Allow, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379), tcp(6380), tcp(16379, 16381)}, From: []Ref{{"p-a", "a"}}}}},
		"Peers": {reason: "actions of different peers are not", world: []any{connect("a", app888), statementOf("b", Allow, app889, "redis:*", bobs)},
			want: []Rule{
				{Effect: Allow, Subjects: apps("888", "889"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-a", "a"}, {"p-b", "b"}}},
				{Effect: Allow, Subjects: apps("889"), Ports: []v1alpha1.Port{tcp(6380), tcp(16379, 16381)}, From: []Ref{{"p-b", "b"}}},
			}},
		"Deny": {reason: "a deny is a rule of its own", world: []any{connect("a", app888), statementOf("d", Deny, app888, "redis:connect", bobs)},
			want: []Rule{
				{Effect: Allow, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-a", "a"}}},
				{Effect: Deny, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-d", "d"}}},
			}},
		"WildcardDeny": {
			reason: "a wildcard deny belongs to every unit it covers",
			world:  []any{statementOf("d", Deny, app888, "redis:connect", redisHead+"bobs-*")},
			want:   []Rule{{Effect: Deny, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-d", "d"}}}},
		},
		"Others": {reason: "statements about other resources are not here", world: []any{statementOf("a", Allow, app888, "redis:connect", orders)}},
		"TimeBounds": {
			reason: "only what is in force",
			world: []any{
				statementOf("a", Allow, app888, "redis:connect", bobs, from(hours(1))),
				statementOf("b", Allow, app889, "redis:connect", bobs, until(hours(0))),
			},
		},
		"OtherActions": {
			reason: "a statement about resources of two classes gives each its own actions",
			world:  []any{statementOf("a", Allow, app888, "web:connect", shop, alsoActions("redis:connect"), alsoResources(bobs))},
			want:   []Rule{{Effect: Allow, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-a", "a"}}}},
		},

		"Anyone": {reason: "anyone takes in every other peer", world: []any{connect("a", app888), connect("b", "*")},
			want: []Rule{{Effect: Allow, Anyone: true, Ports: redis, From: []Ref{{"p-a", "a"}, {"p-b", "b"}}}}},
		"DenyAnyone": {reason: "in a deny, too", world: []any{statementOf("d", Deny, "*", "redis:connect", allRedis)},
			want: []Rule{{Effect: Deny, Anyone: true, Ports: redis, From: []Ref{{"p-d", "d"}}}}},
		"Ranges": {
			reason: "ranges are sorted peers of their own",
			world:  []any{connect("a", cidrHead+"10.6.0.0/24"), connect("b", cidrHead+"10.5.0.0/24"), connect("c", cidrHead+"10.5.0.0/24")},
			want: []Rule{
				{Effect: Allow, Prefixes: prefixes("10.5.0.0/24", "10.6.0.0/24"), Ports: redis, From: []Ref{{"p-a", "a"}, {"p-b", "b"}, {"p-c", "c"}}},
			},
		},
		"WholeClass": {
			reason: "a wildcard of a class is every value of its label, and takes in its names",
			world:  []any{connect("a", appHead+"app/*"), connect("b", app888), connect("c", cart)},
			want: []Rule{
				{
					Effect:   Allow,
					Subjects: []SubjectSelector{{LabelKey: "com.trip/appid", Any: true}, {LabelKey: "com.trip/service", Values: []string{"cart"}}},
					Ports:    redis,
					From:     []Ref{{"p-a", "a"}, {"p-b", "b"}, {"p-c", "c"}},
				},
			},
		},
		"DenyWholeClass": {reason: "a deny of a whole class misses no name", world: []any{statementOf("d", Deny, appHead+"*", "redis:connect", bobs)},
			want: []Rule{{Effect: Deny, Subjects: []SubjectSelector{{LabelKey: "com.trip/appid", Any: true}}, Ports: redis, From: []Ref{{"p-d", "d"}}}}},
		"Prefix": {
			reason: "a prefix is the known names that it covers",
			world:  []any{connect("a", appHead+"app/team-*"), known{teamApp, appHead + "app/team-8", app888, appHead + "app/team-/"}},
			want:   []Rule{{Effect: Allow, Subjects: apps("team-7", "team-8"), Ports: redis, From: []Ref{{"p-a", "a"}}}},
		},
		"PrefixOfNobody": {
			reason: "a prefix that no known name begins with is nobody, never anyone",
			world:  []any{connect("a", appHead+"app/team-*"), known{app888}},
		},
		"External": {
			reason: "an external workload has its group beside the label",
			world:  []any{connect("a", app888), connect("b", app889), workload("w", app888, "10.5.0.7")},
			want: []Rule{
				{Effect: Allow, Subjects: apps("888", "889"), External: []string{UnitID(app888)}, Ports: redis, From: []Ref{{"p-a", "a"}, {"p-b", "b"}}},
			},
		},
		"ExternalPrefix": {
			reason: "the name of an external workload is known",
			world:  []any{connect("a", appHead+"app/team-*"), workload("w", teamApp, "10.5.0.7")},
			want:   []Rule{{Effect: Allow, Subjects: apps("team-7"), External: []string{UnitID(teamApp)}, Ports: redis, From: []Ref{{"p-a", "a"}}}},
		},
		"ExternalClass": {
			reason: "a whole class has all its groups",
			world:  []any{connect("a", appHead+"app/*"), connect("b", app888), workload("w", app888, "10.5.0.7")},
			want: []Rule{
				{
					Effect:          Allow,
					Subjects:        []SubjectSelector{{LabelKey: "com.trip/appid", Any: true}},
					ExternalClasses: []string{UnitID(appHead + "app/*")},
					Ports:           redis,
					From:            []Ref{{"p-a", "a"}, {"p-b", "b"}},
				},
			},
		},
		"DenyPrefix": {
			reason:  "a deny by prefix would miss a new name, so it is refused",
			world:   []any{statementOf("d", Deny, appHead+"app/team-*", "redis:connect", bobs), known{teamApp}},
			refused: []Refusal{{Ref: Ref{"p-d", "d"}, Reason: v1alpha1.RefusedUnsupported, Resource: bobs}},
		},
		"RefusedDenyOverRange": {
			reason: "outside the fleet an address has a name, too, which a refused deny may mean",
			world: []any{
				connect("a", cidrHead+"10.0.0.0/8"),
				statementOf("d", Deny, appHead+"app/team-*", "redis:connect", bobs),
				workload("w", teamApp, "10.5.0.7"),
			},
			refused: []Refusal{
				{Ref: Ref{"p-a", "a"}, Reason: v1alpha1.RefusedShadowingDeny, Resource: bobs},
				{Ref: Ref{"p-d", "d"}, Reason: v1alpha1.RefusedUnsupported, Resource: bobs},
			},
		},
		"RefusedDenyOverName": {
			reason: "and the other way round",
			world: []any{
				connect("a", app888),
				statementOf("d", Deny, cidrHead+"10.0.0.0/8", "redis:connect", bobs, alsoSubjects(userBob)),
				workload("w", app888, "10.5.0.7"),
			},
			refused: []Refusal{
				{Ref: Ref{"p-a", "a"}, Reason: v1alpha1.RefusedShadowingDeny, Resource: bobs},
				{Ref: Ref{"p-d", "d"}, Reason: v1alpha1.RefusedUnknownSubject, Resource: bobs},
			},
		},
		"RefusedDenyOverPrefix": {
			reason: "an allow of a whole class contains what a refused deny means",
			world:  []any{connect("a", appHead+"*"), statementOf("d", Deny, appHead+"app/team-*", "redis:connect", bobs)},
			refused: []Refusal{
				{Ref: Ref{"p-a", "a"}, Reason: v1alpha1.RefusedShadowingDeny, Resource: bobs},
				{Ref: Ref{"p-d", "d"}, Reason: v1alpha1.RefusedUnsupported, Resource: bobs},
			},
		},

		"RefusedAllow": {reason: "a refused allow is left out, the rest is compiled", world: []any{connect("a", app888), connect("b", userBob)},
			want:    []Rule{{Effect: Allow, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-a", "a"}}}},
			refused: []Refusal{{Ref: Ref{"p-b", "b"}, Reason: v1alpha1.RefusedUnknownSubject, Resource: bobs}}},
		"RefusedWhole": {
			reason:  "a statement is compiled as written or not at all",
			world:   []any{statementOf("a", Allow, app888, "redis:connect", bobs, alsoSubjects(userBob))},
			refused: []Refusal{{Ref: Ref{"p-a", "a"}, Reason: v1alpha1.RefusedUnknownSubject, Resource: bobs}},
		},
		"RefusedDenyTakesAllows": {
			reason: "a refused deny takes out every allow it could have overridden, and no other",
			world: []any{
				connect("a", teamApp),
				connect("b", app888),
				statementOf("c", Allow, teamApp, "redis:admin", bobs),
				statementOf("d", Deny, appHead+"app/team-*", "redis:connect", bobs),
			},
			want: []Rule{
				{Effect: Allow, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-b", "b"}}},
				{Effect: Allow, Subjects: apps("team-7"), Ports: []v1alpha1.Port{tcp(6380), tcp(16379, 16381)}, From: []Ref{{"p-c", "c"}}},
			},
			refused: []Refusal{
				{Ref: Ref{"p-a", "a"}, Reason: v1alpha1.RefusedShadowingDeny, Resource: bobs},
				{Ref: Ref{"p-d", "d"}, Reason: v1alpha1.RefusedUnsupported, Resource: bobs},
			},
		},
		"RefusedDenyOfAnyone": {
			reason: "of everyone",
			world:  []any{connect("a", app888), statementOf("d", Deny, "*", "redis:connect", allRedis, alsoSubjects(appHead+"app/team-*"))},
			refused: []Refusal{
				{Ref: Ref{"p-a", "a"}, Reason: v1alpha1.RefusedShadowingDeny, Resource: bobs},
				{Ref: Ref{"p-d", "d"}, Reason: v1alpha1.RefusedUnsupported, Resource: bobs},
			},
		},
		"RefusedDenyElsewhere": {
			reason: "a refused deny about another resource takes nothing here",
			world:  []any{connect("a", app888), statementOf("d", Deny, "*", "redis:connect", orders, alsoSubjects(appHead+"app/team-*"))},
			want:   []Rule{{Effect: Allow, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-a", "a"}}}},
		},
		"RefusedDenyOver": {
			reason: "nor does one that has expired",
			world:  []any{connect("a", app888), statementOf("d", Deny, "*", "redis:connect", bobs, until(hours(0)), alsoSubjects(appHead+"app/team-*"))},
			want:   []Rule{{Effect: Allow, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-a", "a"}}}},
		},
		"RefusedDenyOfRange": {
			reason:  "an address range never matches pods, so its deny overrides no application",
			world:   []any{connect("a", app888), statementOf("d", Deny, cidrHead+"0.0.0.0/0", "redis:connect", bobs, alsoSubjects(appHead+"app/team-*"))},
			want:    []Rule{{Effect: Allow, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-a", "a"}}}},
			refused: []Refusal{{Ref: Ref{"p-d", "d"}, Reason: v1alpha1.RefusedUnsupported, Resource: bobs}},
		},
		"VagueDenySubject": {
			reason: "a deny of a subject that cannot be read may have meant anyone",
			world:  []any{connect("a", app888), statementOf("d", Deny, "app 888", "redis:connect", bobs)},
			refused: []Refusal{
				{Ref: Ref{"p-a", "a"}, Reason: v1alpha1.RefusedShadowingDeny, Resource: bobs},
				{Ref: Ref{"p-d", "d"}, Reason: v1alpha1.RefusedInvalidName, Resource: bobs},
			},
		},
		"RefusedDenyOtherLabel": {
			reason: "a pod may carry the denied label beside the allowed one",
			world:  []any{connect("a", app888), statementOf("d", Deny, svcHead+"ca*", "redis:connect", bobs)},
			refused: []Refusal{
				{Ref: Ref{"p-a", "a"}, Reason: v1alpha1.RefusedShadowingDeny, Resource: bobs},
				{Ref: Ref{"p-d", "d"}, Reason: v1alpha1.RefusedUnsupported, Resource: bobs},
			},
		},
		"RefusedDenyOtherClass": {reason: "or be a resource of another class, too, where the refused deny would count", world: []any{
			connect(
				"a",
				app888,
			),
			statementOf("d", Deny, appHead+"app/8*", "cache:read", "trnv1:rsc:trip-com:cache:sets:c"),
			protect("trnv1:rsc:trip-com:cache:sets:c", v1alpha1.ModeEnforce),
			&v1alpha1.ResourceClass{
				ObjectMeta: named("cache"),
				Spec: v1alpha1.ResourceClassSpec{Pattern: "trnv1:rsc:trip-com:cache:sets:*", LabelKey: "com.trip/cache",
					Actions: []v1alpha1.ClassAction{{Name: "cache:read", Ports: []v1alpha1.Port{port(6379)}}}},
			},
		},
			refused: []Refusal{{Ref: Ref{"p-a", "a"}, Reason: v1alpha1.RefusedShadowingDeny, Resource: bobs}}},
		"UnknownDenySubject": {
			reason: "a deny of a subject in no class may have meant any pod, such as when its SubjectClass was removed",
			world:  []any{connect("a", app888), statementOf("d", Deny, "trnv1:rsc:trip-com:iam:team:blue", "redis:connect", bobs)},
			refused: []Refusal{
				{Ref: Ref{"p-a", "a"}, Reason: v1alpha1.RefusedShadowingDeny, Resource: bobs},
				{Ref: Ref{"p-d", "d"}, Reason: v1alpha1.RefusedUnknownSubject, Resource: bobs},
			},
		},
		"UnknownDenyWildcard": {
			reason: "so may one of a wildcard that covers no class",
			world:  []any{connect("a", app888), statementOf("d", Deny, "trnv1:rsc:trip-com:iam:team:*", "redis:connect", bobs)},
			refused: []Refusal{
				{Ref: Ref{"p-a", "a"}, Reason: v1alpha1.RefusedShadowingDeny, Resource: bobs},
				{Ref: Ref{"p-d", "d"}, Reason: v1alpha1.RefusedUnknownSubject, Resource: bobs},
			},
		},
		"UnknownDenyResource": {
			reason: "a deny about an enforced resource whose class was removed may concern any pod on any port",
			world: []any{
				connect("a", app888),
				statementOf(
					"d",
					Deny,
					app888,
					"cache:read",
					"trnv1:rsc:trip-com:cache:sets:c",
				),
				protect("trnv1:rsc:trip-com:cache:sets:c", v1alpha1.ModeEnforce),
			},
			refused: []Refusal{{Ref: Ref{"p-a", "a"}, Reason: v1alpha1.RefusedShadowingDeny, Resource: bobs}},
		},
		"UnknownDenyResourceObserved": {reason: "but not while that resource is not enforced", world: []any{connect("a", app888),
			statementOf("d", Deny, app888, "cache:read", "trnv1:rsc:trip-com:cache:sets:c"), protect("trnv1:rsc:trip-com:cache:sets:c", v1alpha1.ModeAudit)},
			want: []Rule{{Effect: Allow, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-a", "a"}}}}},
		"WholeWorld": {
			reason: "the range of all addresses is rendered as two halves, since dataplanes treat it apart",
			world:  []any{statementOf("a", Allow, cidrHead+"0.0.0.0/0", "redis:connect", bobs, alsoSubjects(cidrHead+"::/0"))},
			want: []Rule{
				{
					Effect:   Allow,
					Prefixes: prefixes("0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1"),
					Ports:    []v1alpha1.Port{tcp(6379)},
					From:     []Ref{{"p-a", "a"}},
				},
			},
		},
		"VagueDenyAction": {
			reason: "a deny of an unknown action may have meant any",
			world:  []any{connect("a", app888), statementOf("d", Deny, app888, "redis:conect", bobs)},
			refused: []Refusal{
				{Ref: Ref{"p-a", "a"}, Reason: v1alpha1.RefusedShadowingDeny, Resource: bobs},
				{Ref: Ref{"p-d", "d"}, Reason: v1alpha1.RefusedUnknownAction, Resource: bobs},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewSnapshot(world(append(tc.world, protect(bobs, v1alpha1.ModeEnforce))...))
			u, ok := s.CompileResource(bobs, noon)
			if !ok {
				t.Fatalf("%s: no unit", tc.reason)
			}
			if diff := cmp.Diff(tc.want, u.Rules, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
				t.Errorf("%s: rules -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.refused, u.Refused, cmpopts.IgnoreFields(Refusal{}, "Message")); diff != "" {
				t.Errorf("%s: refused -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCompileUnit(t *testing.T) {
	cases := map[string]struct {
		reason   string
		objects  []any
		resource string
		want     *Unit
	}{
		"NotOnboarded": {reason: "statements alone make no unit", objects: []any{statementOf("a", Allow, app888, "redis:connect", bobs)}, resource: bobs},
		"Observe":      {reason: "Observe has none", objects: []any{protect(bobs, v1alpha1.ModeObserve)}, resource: bobs},
		"NoClass": {
			reason:   "without class no label selects it",
			objects:  []any{protect("trnv1:rsc:trip-com:x:y:z", v1alpha1.ModeEnforce)},
			resource: "trnv1:rsc:trip-com:x:y:z",
		},
		"BadValue": {
			reason:   "a name that can be no label value",
			objects:  []any{protect(redisHead+"a/b", v1alpha1.ModeEnforce)},
			resource: redisHead + "a/b",
		},
		"Plain": {
			reason:   "the class says where and how",
			objects:  []any{protect(bobs, v1alpha1.ModeAudit)},
			resource: bobs,
			want: &Unit{
				ID:         UnitID(bobs),
				Resource:   bobs,
				Class:      "redis",
				LabelKey:   "com.trip/redis-cluster",
				LabelValue: "bobs-cluster",
				Mode:       v1alpha1.ModeAudit,
				OtherPorts: v1alpha1.OtherPortsDeny,
				Enforcers:  []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium},
			},
		},
		"ClusterModes": {
			reason:   "only those that differ, also in a resource that is otherwise observed",
			objects:  []any{protect(bobs, v1alpha1.ModeObserve, in("m1", v1alpha1.ModeAudit), in("m2", v1alpha1.ModeObserve), in("m3", v1alpha1.ModeEnforce))},
			resource: bobs,
			want: &Unit{
				ID:           UnitID(bobs),
				Resource:     bobs,
				Class:        "redis",
				LabelKey:     "com.trip/redis-cluster",
				LabelValue:   "bobs-cluster",
				Mode:         v1alpha1.ModeObserve,
				ClusterModes: map[string]v1alpha1.Mode{"m1": v1alpha1.ModeAudit, "m3": v1alpha1.ModeEnforce},
				OtherPorts:   v1alpha1.OtherPortsDeny,
				Enforcers:    []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium},
			},
		},
		"OtherPorts": {
			reason:   "all ports of no action, and the labels that keep them closed",
			objects:  []any{protect(shop, v1alpha1.ModeEnforce)},
			resource: shop,
			want: &Unit{
				ID:          UnitID(shop),
				Resource:    shop,
				Class:       "web",
				LabelKey:    "com.trip/site",
				LabelValue:  "shop",
				Mode:        v1alpha1.ModeEnforce,
				OtherPorts:  v1alpha1.OtherPortsAllow,
				ForeignKeys: []string{"com.trip/redis-cluster"},
				Entries:     everyoneEntries * (1 + 7 + 29 + 16 + ICMPTypes),
				Enforcers:   []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium},
				OpenPorts:   []v1alpha1.Port{ports(1, 65535, v1alpha1.ProtocolSCTP), tcp(1, 79), tcp(81, 65535), ports(1, 65535, v1alpha1.ProtocolUDP)},
			},
		},
		"OtherPortsShared": {reason: "a class that shares its label key opens none", objects: []any{
			protect(shop, v1alpha1.ModeEnforce),
			&v1alpha1.ResourceClass{
				ObjectMeta: named("blogs"),
				Spec:       v1alpha1.ResourceClassSpec{Pattern: "trnv1:rsc:trip-com:web:blogs:*", LabelKey: "com.trip/site", Actions: webClass().Spec.Actions},
			},
		}, resource: shop,
			want: &Unit{
				ID:          UnitID(shop),
				Resource:    shop,
				Class:       "web",
				LabelKey:    "com.trip/site",
				LabelValue:  "shop",
				Mode:        v1alpha1.ModeEnforce,
				OtherPorts:  v1alpha1.OtherPortsAllow,
				ForeignKeys: []string{"com.trip/redis-cluster", "com.trip/site"},
				Enforcers:   []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium},
			}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u, ok := NewSnapshot(world(tc.objects...)).CompileResource(tc.resource, noon)
			if ok != (tc.want != nil) {
				t.Fatalf("%s: CompileResource = %+v, %v", tc.reason, u, ok)
			}
			if ok {
				if diff := cmp.Diff(*tc.want, u); diff != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

func TestLastChange(t *testing.T) {
	s := NewSnapshot(world(statementOf("a", Allow, app888, "redis:connect", bobs, from(hours(1)), until(hours(3)))))
	for name, tc := range map[string]struct {
		reason string
		at     time.Duration
		want   time.Duration
		ok     bool
	}{
		"Before":  {"nothing has changed yet", 59 * time.Minute, 0, false},
		"Instant": {"the instant itself counts", time.Hour, time.Hour, true},
		"Between": {"the begin was the last one", 2 * time.Hour, time.Hour, true},
		"After":   {"the end was", 9 * time.Hour, 3 * time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := s.LastChange(noon.Add(tc.at))
			if ok != tc.ok || ok && got.Sub(noon) != tc.want {
				t.Errorf("%s: %s, %t; want %s, %t", tc.reason, got.Sub(noon), ok, tc.want, tc.ok)
			}
		})
	}
}

func TestNextChange(t *testing.T) {
	s := NewSnapshot(world(statementOf("a", Allow, app888, "redis:connect", bobs, from(hours(1)), until(hours(3))),
		statementOf("b", Allow, app888, "redis:connect", bobs, from(hours(1))), protect(bobs, v1alpha1.ModeEnforce, auditUntil(hours(2)))))
	var got []time.Duration
	for now, ok := noon, true; ok; {
		if now, ok = s.NextChange(now); ok {
			got = append(got, now.Sub(noon))
		}
	}
	if diff := cmp.Diff([]time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour}, got); diff != "" {
		t.Errorf("instants -want +got:\n%s", diff)
	}
}
