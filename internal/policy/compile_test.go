package policy

import (
	"fmt"
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

func TestCompileRules(t *testing.T) {
	connect := func(sid, app string) v1alpha1.Statement { return say(sid, Allow, app, "redis:connect", bobs) }
	cases := map[string]struct {
		reason  string
		world   []any
		want    []Rule
		refused []Refusal // messages are not compared
	}{
		"None":   {reason: "an onboarded resource without statements has a unit without rules"},
		"One":    {reason: "one grant", world: []any{connect("a", app888)}, want: []Rule{{Effect: Allow, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-a", "a"}}}}},
		"Joined": {reason: "many grants of one action are one rule", world: []any{connect("b", app889), connect("a", app888), connect("c", app888)}, want: []Rule{{Effect: Allow, Subjects: apps("888", "889"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-a", "a"}, {"p-b", "b"}, {"p-c", "c"}}}}},
		"Actions": {reason: "actions of the same peers are one rule", world: []any{say("a", Allow, app888, "redis:*", bobs)},
			want: []Rule{{Effect: Allow, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379), tcp(6380), tcp(16379, 16381)}, From: []Ref{{"p-a", "a"}}}}},
		"Peers": {reason: "actions of different peers are not", world: []any{connect("a", app888), say("b", Allow, app889, "redis:*", bobs)},
			want: []Rule{
				{Effect: Allow, Subjects: apps("888", "889"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-a", "a"}, {"p-b", "b"}}},
				{Effect: Allow, Subjects: apps("889"), Ports: []v1alpha1.Port{tcp(6380), tcp(16379, 16381)}, From: []Ref{{"p-b", "b"}}},
			}},
		"Deny": {reason: "a deny is a rule of its own", world: []any{connect("a", app888), say("d", Deny, app888, "redis:connect", bobs)},
			want: []Rule{
				{Effect: Allow, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-a", "a"}}},
				{Effect: Deny, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-d", "d"}}},
			}},
		"WildcardDeny": {reason: "a wildcard deny belongs to every unit it covers", world: []any{say("d", Deny, app888, "redis:connect", redisHead+"bobs-*")},
			want: []Rule{{Effect: Deny, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-d", "d"}}}}},
		"Others":       {reason: "statements about other resources are not here", world: []any{say("a", Allow, app888, "redis:connect", orders)}},
		"TimeBounds":   {reason: "only what is in force", world: []any{say("a", Allow, app888, "redis:connect", bobs, from(hours(1))), say("b", Allow, app889, "redis:connect", bobs, until(hours(0)))}},
		"OtherActions": {reason: "a statement about resources of two classes gives each its own actions", world: []any{say("a", Allow, app888, "web:connect", shop, alsoActions("redis:connect"), alsoResources(bobs))}, want: []Rule{{Effect: Allow, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-a", "a"}}}}},

		"RefusedAllow": {reason: "a refused allow is left out, the rest is compiled", world: []any{connect("a", app888), connect("b", "*")},
			want:    []Rule{{Effect: Allow, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-a", "a"}}}},
			refused: []Refusal{{Ref: Ref{"p-b", "b"}, Reason: v1alpha1.RefusedUnsupported, Resource: bobs}}},
		"RefusedWhole": {reason: "a statement is compiled as written or not at all", world: []any{say("a", Allow, app888, "redis:connect", bobs, alsoSubjects(cidrHead+"10.5.0.0/24"))},
			refused: []Refusal{{Ref: Ref{"p-a", "a"}, Reason: v1alpha1.RefusedUnsupported, Resource: bobs}}},
		"RefusedDenyTakesAllows": {reason: "a refused deny takes out every allow it could have overridden, and no other",
			world: []any{connect("a", teamApp), connect("b", app888), say("c", Allow, teamApp, "redis:admin", bobs), say("d", Deny, appHead+"app/team-*", "redis:connect", bobs)},
			want: []Rule{
				{Effect: Allow, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-b", "b"}}},
				{Effect: Allow, Subjects: apps("team-7"), Ports: []v1alpha1.Port{tcp(6380), tcp(16379, 16381)}, From: []Ref{{"p-c", "c"}}},
			},
			refused: []Refusal{
				{Ref: Ref{"p-a", "a"}, Reason: v1alpha1.RefusedShadowingDeny, Resource: bobs},
				{Ref: Ref{"p-d", "d"}, Reason: v1alpha1.RefusedUnsupported, Resource: bobs},
			}},
		"RefusedDenyOfAnyone": {reason: "of everyone", world: []any{connect("a", app888), say("d", Deny, "*", "redis:connect", allRedis)},
			refused: []Refusal{
				{Ref: Ref{"p-a", "a"}, Reason: v1alpha1.RefusedShadowingDeny, Resource: bobs},
				{Ref: Ref{"p-d", "d"}, Reason: v1alpha1.RefusedUnsupported, Resource: bobs},
			}},
		"RefusedDenyElsewhere": {reason: "a refused deny about another resource takes nothing here", world: []any{connect("a", app888), say("d", Deny, "*", "redis:connect", orders)},
			want: []Rule{{Effect: Allow, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-a", "a"}}}}},
		"RefusedDenyOver": {reason: "nor does one that has expired", world: []any{connect("a", app888), say("d", Deny, "*", "redis:connect", bobs, until(hours(0)))},
			want: []Rule{{Effect: Allow, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-a", "a"}}}}},
		"RefusedDenyOfRange": {reason: "an address range never matches pods, so its deny overrides no application", world: []any{connect("a", app888), say("d", Deny, cidrHead+"0.0.0.0/0", "redis:connect", bobs)},
			want:    []Rule{{Effect: Allow, Subjects: apps("888"), Ports: []v1alpha1.Port{tcp(6379)}, From: []Ref{{"p-a", "a"}}}},
			refused: []Refusal{{Ref: Ref{"p-d", "d"}, Reason: v1alpha1.RefusedUnsupported, Resource: bobs}}},
		"VagueDenySubject": {reason: "a deny of a subject that cannot be read may have meant anyone", world: []any{connect("a", app888), say("d", Deny, "app 888", "redis:connect", bobs)},
			refused: []Refusal{
				{Ref: Ref{"p-a", "a"}, Reason: v1alpha1.RefusedShadowingDeny, Resource: bobs},
				{Ref: Ref{"p-d", "d"}, Reason: v1alpha1.RefusedInvalidName, Resource: bobs},
			}},
		"RefusedDenyOtherLabel": {reason: "a pod may carry the denied label beside the allowed one", world: []any{connect("a", app888), say("d", Deny, svcHead+"*", "redis:connect", bobs)},
			refused: []Refusal{
				{Ref: Ref{"p-a", "a"}, Reason: v1alpha1.RefusedShadowingDeny, Resource: bobs},
				{Ref: Ref{"p-d", "d"}, Reason: v1alpha1.RefusedUnsupported, Resource: bobs},
			}},
		"RefusedDenyOtherClass": {reason: "or be a resource of another class, too, where the refused deny would count", world: []any{
			connect("a", app888), say("d", Deny, "*", "cache:read", "trnv1:rsc:trip-com:cache:sets:c"), protect("trnv1:rsc:trip-com:cache:sets:c", v1alpha1.ModeEnforce),
			&v1alpha1.ResourceClass{ObjectMeta: named("cache"), Spec: v1alpha1.ResourceClassSpec{Pattern: "trnv1:rsc:trip-com:cache:sets:*", LabelKey: "com.trip/cache",
				Actions: []v1alpha1.ClassAction{{Name: "cache:read", Ports: []v1alpha1.Port{port(6379)}}}}}},
			refused: []Refusal{{Ref: Ref{"p-a", "a"}, Reason: v1alpha1.RefusedShadowingDeny, Resource: bobs}}},
		"VagueDenyAction": {reason: "a deny of an unknown action may have meant any", world: []any{connect("a", app888), say("d", Deny, app888, "redis:conect", bobs)},
			refused: []Refusal{
				{Ref: Ref{"p-a", "a"}, Reason: v1alpha1.RefusedShadowingDeny, Resource: bobs},
				{Ref: Ref{"p-d", "d"}, Reason: v1alpha1.RefusedUnknownAction, Resource: bobs},
			}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewSnapshot(world(append(tc.world, protect(bobs, v1alpha1.ModeEnforce))...))
			u, ok := s.CompileResource(bobs, noon)
			if !ok {
				t.Fatalf("%s: no unit", tc.reason)
			}
			if diff := cmp.Diff(tc.want, u.Rules); diff != "" {
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
		"NotOnboarded": {reason: "statements alone make no unit", objects: []any{say("a", Allow, app888, "redis:connect", bobs)}, resource: bobs},
		"Observe":      {reason: "Observe has none", objects: []any{protect(bobs, v1alpha1.ModeObserve)}, resource: bobs},
		"NoClass":      {reason: "without class no label selects it", objects: []any{protect("trnv1:rsc:trip-com:x:y:z", v1alpha1.ModeEnforce)}, resource: "trnv1:rsc:trip-com:x:y:z"},
		"BadValue":     {reason: "a name that can be no label value", objects: []any{protect(redisHead+"a/b", v1alpha1.ModeEnforce)}, resource: redisHead + "a/b"},
		"Plain": {reason: "the class says where and how", objects: []any{protect(bobs, v1alpha1.ModeAudit)}, resource: bobs,
			want: &Unit{ID: UnitID(bobs), Resource: bobs, Class: "redis", LabelKey: "com.trip/redis-cluster", LabelValue: "bobs-cluster", Mode: v1alpha1.ModeAudit,
				OtherPorts: v1alpha1.OtherPortsDeny, Enforcers: []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium}}},
		"ClusterModes": {reason: "only those that differ, also in a resource that is otherwise observed", objects: []any{protect(bobs, v1alpha1.ModeObserve, in("m1", v1alpha1.ModeAudit), in("m2", v1alpha1.ModeObserve), in("m3", v1alpha1.ModeEnforce))}, resource: bobs,
			want: &Unit{ID: UnitID(bobs), Resource: bobs, Class: "redis", LabelKey: "com.trip/redis-cluster", LabelValue: "bobs-cluster", Mode: v1alpha1.ModeObserve,
				ClusterModes: map[string]v1alpha1.Mode{"m1": v1alpha1.ModeAudit, "m3": v1alpha1.ModeEnforce},
				OtherPorts:   v1alpha1.OtherPortsDeny, Enforcers: []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium}}},
		"OtherPorts": {reason: "all ports of no action, and the labels that keep them closed", objects: []any{protect(shop, v1alpha1.ModeEnforce)}, resource: shop,
			want: &Unit{ID: UnitID(shop), Resource: shop, Class: "web", LabelKey: "com.trip/site", LabelValue: "shop", Mode: v1alpha1.ModeEnforce,
				OtherPorts: v1alpha1.OtherPortsAllow, ForeignKeys: []string{"com.trip/redis-cluster"}, Enforcers: []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium},
				OpenPorts: []v1alpha1.Port{ports(1, 65535, v1alpha1.ProtocolSCTP), tcp(1, 79), tcp(81, 65535), ports(1, 65535, v1alpha1.ProtocolUDP)}}},
		"OtherPortsShared": {reason: "a class that shares its label key opens none", objects: []any{protect(shop, v1alpha1.ModeEnforce),
			&v1alpha1.ResourceClass{ObjectMeta: named("blogs"), Spec: v1alpha1.ResourceClassSpec{Pattern: "trnv1:rsc:trip-com:web:blogs:*", LabelKey: "com.trip/site", Actions: webClass().Spec.Actions}}}, resource: shop,
			want: &Unit{ID: UnitID(shop), Resource: shop, Class: "web", LabelKey: "com.trip/site", LabelValue: "shop", Mode: v1alpha1.ModeEnforce,
				OtherPorts: v1alpha1.OtherPortsAllow, ForeignKeys: []string{"com.trip/redis-cluster", "com.trip/site"}, Enforcers: []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium}}},
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

// The ports of an unusable action are in no usable one, and must not become open to everyone by that.
func TestUnusableActionKeepsOtherPortsClosed(t *testing.T) {
	in := world(protect(shop, v1alpha1.ModeEnforce))
	web := in.ResourceClasses[1]
	web.Spec.Actions = append(web.Spec.Actions, v1alpha1.ClassAction{Name: "web:admin", Ports: []v1alpha1.Port{port(8443)}, HTTP: []v1alpha1.HTTPMatch{{Path: "("}}})
	s := NewSnapshot(in)
	if got := s.Decide(ask(on(shop), at(8443))).Word; got != DefaultDenied {
		t.Errorf("the port of an unusable action is %s, want %s", got, DefaultDenied)
	}
	u, ok := s.CompileResource(shop, noon)
	if !ok || u.OtherPorts != v1alpha1.OtherPortsDeny || len(u.OpenPorts) > 0 {
		t.Errorf("unit = %v, otherPorts %s, open %v, want none open", ok, u.OtherPorts, u.OpenPorts)
	}
}

func TestRefusals(t *testing.T) {
	longID := redisHead + fmt.Sprintf("%064d", 0)
	cases := map[string]struct {
		reason    string
		statement v1alpha1.Statement
		want      []string
	}{
		"None":            {reason: "all understood", statement: say("s", Allow, app888, "redis:*", bobs, alsoResources(orders), alsoActions("redis:connect"))},
		"SubjectClass":    {reason: "no class of the subject", statement: say("s", Allow, "trnv1:rsc:trip-com:iam:user:bob", "redis:connect", bobs), want: []string{v1alpha1.RefusedUnknownSubject}},
		"ResourceClass":   {reason: "no class of the resource", statement: say("s", Allow, app888, "redis:connect", "trnv1:rsc:trip-com:kafka:topics:t"), want: []string{v1alpha1.RefusedUnknownResource}},
		"WildcardNoClass": {reason: "no class of anything the wildcard covers", statement: say("s", Deny, app888, "redis:connect", "trnv1:rsc:trip-com:kafka:topics:*"), want: []string{v1alpha1.RefusedUnknownResource}},
		"Action":          {reason: "no such action", statement: say("s", Allow, app888, "redis:drop", bobs), want: []string{v1alpha1.RefusedUnknownAction}},
		"Service":         {reason: "no action of the service", statement: say("s", Allow, app888, "kafka:*", bobs), want: []string{v1alpha1.RefusedUnknownAction}},
		"Malformed":       {reason: "a name that cannot be read", statement: say("s", Allow, "app/888", "redis:connect", bobs), want: []string{v1alpha1.RefusedInvalidName}},
		"HostBits":        {reason: "a range with host bits", statement: say("s", Allow, cidrHead+"10.5.0.7/24", "redis:connect", bobs), want: []string{v1alpha1.RefusedInvalidName}},
		"LabelValue":      {reason: "a subject that can be no label value", statement: say("s", Allow, appHead+"app/8/8", "redis:connect", bobs), want: []string{v1alpha1.RefusedInvalidName}},
		"LongValue":       {reason: "a resource that can be no label value", statement: say("s", Allow, app888, "redis:connect", longID), want: []string{v1alpha1.RefusedInvalidName}},
		"RangeResource":   {reason: "a range as resource", statement: say("s", Allow, app888, "redis:connect", cidrHead+"10.5.0.0/24"), want: []string{v1alpha1.RefusedInvalidName}},
		"MalformedAction": {reason: "an action that cannot be read", statement: say("s", Allow, app888, "connect", bobs), want: []string{v1alpha1.RefusedInvalidName}},
		"Anyone":          {reason: "not translated", statement: say("s", Allow, "*", "redis:connect", bobs), want: []string{v1alpha1.RefusedUnsupported}},
		"Range":           {reason: "not translated", statement: say("s", Deny, cidrHead+"10.5.0.0/24", "redis:connect", bobs), want: []string{v1alpha1.RefusedUnsupported}},
		"Prefix":          {reason: "not translated", statement: say("s", Allow, appHead+"app/*", "redis:connect", bobs), want: []string{v1alpha1.RefusedUnsupported}},
		"WildcardAllow":   {reason: "not translated", statement: say("s", Allow, app888, "redis:connect", allRedis), want: []string{v1alpha1.RefusedUnsupported}},
		"WildcardDeny":    {reason: "part of every unit", statement: say("s", Deny, app888, "redis:connect", allRedis)},
		"HTTPDeny":        {reason: "a deny of requests", statement: say("s", Deny, app888, "web:orders", shop), want: []string{v1alpha1.RefusedUnsupported}},
		"HTTPAllow":       {reason: "an allow of requests", statement: say("s", Allow, app888, "web:orders", shop)},
		"Effect":          {reason: "an effect that is none", statement: say("s", "Maybe", app888, "redis:connect", bobs), want: []string{v1alpha1.RefusedUnsupported}},
		"Several":         {reason: "each reason once", statement: say("s", Allow, "*", "redis:drop", bobs, alsoSubjects(appHead+"app/*", "x", "y"), alsoActions("redis:flush")), want: []string{v1alpha1.RefusedInvalidName, v1alpha1.RefusedUnknownAction, v1alpha1.RefusedUnsupported}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range NewSnapshot(world(tc.statement)).Refusals() {
				if r.Ref != (Ref{"p-s", "s"}) || r.Message == "" || len(r.Message) > 1024 {
					t.Errorf("%s: refusal %+v must name the statement and say what to do in 1024 characters", tc.reason, r)
				}
				got = append(got, r.Reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: reasons -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNextChange(t *testing.T) {
	s := NewSnapshot(world(say("a", Allow, app888, "redis:connect", bobs, from(hours(1)), until(hours(3))),
		say("b", Allow, app888, "redis:connect", bobs, from(hours(1))), protect(bobs, v1alpha1.ModeEnforce, auditUntil(hours(2)))))
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
