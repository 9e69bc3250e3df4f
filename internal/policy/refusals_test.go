package policy

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

// The ports of an unusable action are in no usable one, and must not become open to everyone by that.
func TestUnusableActionKeepsOtherPortsClosed(t *testing.T) {
	in := world(protect(shop, v1alpha1.ModeEnforce))
	web := in.ResourceClasses[1]
	web.Spec.Actions = append(
		web.Spec.Actions,
		v1alpha1.ClassAction{Name: "web:admin", Ports: []v1alpha1.Port{port(8443)}, HTTP: []v1alpha1.HTTPMatch{{Path: "("}}},
	)
	s := NewSnapshot(in)
	if got := s.Decide(ask(on(shop), at(8443))).Verdict; got != DefaultDenied {
		t.Errorf("the port of an unusable action is %s, want %s", got, DefaultDenied)
	}
	u, ok := s.CompileResource(shop, noon)
	if !ok || u.OtherPorts != v1alpha1.OtherPortsDeny || len(u.OpenPorts) > 0 {
		t.Errorf("unit = %v, otherPorts %s, open %v, want none open", ok, u.OtherPorts, u.OpenPorts)
	}
}

// TestDenyOfUnknownPortsKeepsOtherPortsClosed checks that removing an action from a class does not open its port for everyone while a deny
// names the action, and that a deny of a resource whose class is missing closes such ports everywhere.
func TestDenyOfUnknownPortsKeepsOtherPortsClosed(t *testing.T) {
	before := metav1.NewTime(noon.Add(-time.Hour))
	const topic = "trnv1:rsc:trip-com:kafka:topics:t"
	for reason, c := range map[string]struct {
		deny v1alpha1.Statement
		code string // of the refusal; "" if the ports are open
	}{
		"an action that the class does not have": {statementOf("s", Deny, app888, "web:admin", shop), "unit.other-ports-unknown"},
		"of a wildcard":                          {statementOf("s", Deny, app888, "web:admin", "trnv1:rsc:trip-com:web:sites:*"), "unit.other-ports-unknown"},
		"an allow":                               {statementOf("s", Allow, app888, "web:admin", shop), ""},
		"about another resource":                 {statementOf("s", Deny, app888, "redis:drop", bobs), ""},
		"an action of the class":                 {statementOf("s", Deny, app888, "web:connect", shop), ""},
		"expired":                                {statementOf("s", Deny, app888, "web:admin", shop, until(&before)), ""},
		"of an enforced resource without class":  {statementOf("s", Deny, app888, "redis:connect", topic), "unit.other-ports-unclassed"},
	} {
		in := world(protect(shop, v1alpha1.ModeEnforce), protect(topic, v1alpha1.ModeEnforce), acp("p", c.deny))
		s := NewSnapshot(in)
		q, want := ask(on(shop), at(8443)), DefaultDenied
		if c.code == "" {
			want = Allowed
		}
		got := s.DecideEffective(&q)
		if got.Verdict != want || got.Written.Verdict != Allowed || c.code != "" && (len(got.LeftOut) != 1 || got.LeftOut[0].Message.Code != c.code) {
			t.Errorf("%s: the port is %s, written %s, %v, want %s", reason, got.Verdict, got.Written.Verdict, got.LeftOut, want)
		}
		u, ok := s.CompileResource(shop, noon)
		if r := u.OtherPortsRefusal; !ok || (r != nil) != (c.code != "") || (len(u.OpenPorts) > 0) != (c.code == "") ||
			r != nil && !slices.Contains(u.Refused, *r) {
			t.Errorf("%s: open %v, refusal %v in %v", reason, u.OpenPorts, r, u.Refused)
		}
		// The unit is compiled again when the deny appears, and when it disappears.
		without := in
		without.Policies = nil
		if c.code != "" {
			for _, changed := range [][]string{ChangedUnits(NewSnapshot(without), s), ChangedUnits(s, s.Next(without))} {
				if !slices.Contains(changed, shop) {
					t.Errorf("%s: the change of the deny concerns only %v", reason, changed)
				}
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	longID := redisHead + fmt.Sprintf("%064d", 0)
	cases := map[string]struct {
		reason    string
		statement v1alpha1.Statement
		want      []string
	}{
		"None": {reason: "all understood", statement: statementOf("s", Allow, app888, "redis:*", bobs, alsoResources(orders), alsoActions("redis:connect"))},
		"SubjectClass": {
			reason:    "no class of the subject",
			statement: statementOf("s", Allow, "trnv1:rsc:trip-com:iam:user:bob", "redis:connect", bobs),
			want:      []string{v1alpha1.RefusedUnknownSubject},
		},
		"ResourceClass": {
			reason:    "no class of the resource",
			statement: statementOf("s", Allow, app888, "redis:connect", "trnv1:rsc:trip-com:kafka:topics:t"),
			want:      []string{v1alpha1.RefusedUnknownResource},
		},
		"WildcardNoClass": {
			reason:    "no class of anything the wildcard covers",
			statement: statementOf("s", Deny, app888, "redis:connect", "trnv1:rsc:trip-com:kafka:topics:*"),
			want:      []string{v1alpha1.RefusedUnknownResource},
		},
		"Action": {reason: "no such action", statement: statementOf("s", Allow, app888, "redis:drop", bobs), want: []string{v1alpha1.RefusedUnknownAction}},
		"Service": {
			reason:    "no action of the service",
			statement: statementOf("s", Allow, app888, "kafka:*", bobs),
			want:      []string{v1alpha1.RefusedUnknownAction},
		},
		"Malformed": {
			reason:    "a name that cannot be read",
			statement: statementOf("s", Allow, "app/888", "redis:connect", bobs),
			want:      []string{v1alpha1.RefusedInvalidName},
		},
		"HostBits": {
			reason:    "a range with host bits",
			statement: statementOf("s", Allow, cidrHead+"10.5.0.7/24", "redis:connect", bobs),
			want:      []string{v1alpha1.RefusedInvalidName},
		},
		"LabelValue": {
			reason:    "a subject that can be no label value",
			statement: statementOf("s", Allow, appHead+"app/8/8", "redis:connect", bobs),
			want:      []string{v1alpha1.RefusedInvalidName},
		},
		"LongValue": {
			reason:    "a resource that can be no label value",
			statement: statementOf("s", Allow, app888, "redis:connect", longID),
			want:      []string{v1alpha1.RefusedInvalidName},
		},
		"RangeResource": {
			reason:    "a range as resource",
			statement: statementOf("s", Allow, app888, "redis:connect", cidrHead+"10.5.0.0/24"),
			want:      []string{v1alpha1.RefusedInvalidName},
		},
		"MalformedAction": {
			reason:    "an action that cannot be read",
			statement: statementOf("s", Allow, app888, "connect", bobs),
			want:      []string{v1alpha1.RefusedInvalidName},
		},
		"Anyone": {reason: "anyone", statement: statementOf("s", Allow, "*", "redis:connect", bobs)},
		"Range":  {reason: "addresses", statement: statementOf("s", Deny, cidrHead+"10.5.0.0/24", "redis:connect", bobs)},
		"Prefix": {reason: "an allow by prefix", statement: statementOf("s", Allow, appHead+"app/team-*", "redis:connect", bobs)},
		"PrefixDeny": {
			reason:    "a deny by prefix would miss a new name",
			statement: statementOf("s", Deny, appHead+"app/team-*", "redis:connect", bobs),
			want:      []string{v1alpha1.RefusedUnsupported},
		},
		"ClassDeny": {reason: "a deny of a whole class would not", statement: statementOf("s", Deny, appHead+"app/*", "redis:connect", bobs)},
		"PrefixNoClass": {
			reason:    "no class of anything the wildcard covers",
			statement: statementOf("s", Allow, "trnv1:rsc:trip-com:iam:user:*", "redis:connect", bobs),
			want:      []string{v1alpha1.RefusedUnknownSubject},
		},
		"WildcardAllow": {reason: "a unit of its own", statement: statementOf("s", Allow, app888, "redis:connect", allRedis)},
		"WildcardHTTP": {
			reason:    "requests on workloads of any mode",
			statement: statementOf("s", Allow, app888, "web:orders", webHead+"*"),
			want:      []string{v1alpha1.RefusedUnsupported},
		},
		"WildcardNoHTTP": {reason: "requests that whole connections contain", statement: statementOf("s", Allow, app888, "web:*", webHead+"*")},
		"WildcardDeny":   {reason: "part of every unit", statement: statementOf("s", Deny, app888, "redis:connect", allRedis)},
		"HTTPDeny": {
			reason:    "a deny of requests",
			statement: statementOf("s", Deny, app888, "web:orders", shop),
			want:      []string{v1alpha1.RefusedUnsupported},
		},
		"HTTPAllow": {reason: "an allow of requests", statement: statementOf("s", Allow, app888, "web:orders", shop)},
		"Effect": {
			reason:    "an effect that is none",
			statement: statementOf("s", "Maybe", app888, "redis:connect", bobs),
			want:      []string{v1alpha1.RefusedUnsupported},
		},
		"Several": {
			reason:    "each reason once",
			statement: statementOf("s", Deny, appHead+"app/team-*", "redis:drop", bobs, alsoSubjects("x", "y"), alsoActions("redis:flush")),
			want:      []string{v1alpha1.RefusedInvalidName, v1alpha1.RefusedUnknownAction, v1alpha1.RefusedUnsupported},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range NewSnapshot(world(tc.statement)).Refusals() {
				if r.Ref != (Ref{"p-s", "s"}) || r.Message.IsZero() || len(r.Message.Text) > 1024 {
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
