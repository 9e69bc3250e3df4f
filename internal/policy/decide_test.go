package policy

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
)

// ask is a connection of app 888 to bobs-cluster's redis port.
func ask(change ...func(*Query)) Query {
	q := Query{Subjects: []string{app888}, Resources: []string{bobs}, Cluster: "m1", Protocol: v1alpha1.ProtocolTCP, Port: 6379, At: noon}
	for _, f := range change {
		f(&q)
	}
	return q
}

func by(subjects ...string) func(*Query)  { return func(q *Query) { q.Subjects = subjects } }
func on(resources ...string) func(*Query) { return func(q *Query) { q.Resources = resources } }
func at(n uint16) func(*Query)            { return func(q *Query) { q.Port = n } }
func over(p v1alpha1.Protocol) func(*Query) {
	return func(q *Query) { q.Protocol = p }
}
func when(t time.Time) func(*Query) { return func(q *Query) { q.At = t } }
func outside(addr string) func(*Query) {
	return func(q *Query) { q.Subjects, q.Source = nil, netip.MustParseAddr(addr) }
}
func requesting(method, path string) func(*Query) {
	return func(q *Query) { q.Resources, q.Port, q.Method, q.Path = []string{shop}, 80, method, path }
}

// of makes it a request that is known by its action only.
func of(action string) func(*Query) { return func(q *Query) { q.Action = action } }

// decideCase is a question about a world, with the verdict and the statements that decide it.
type decideCase struct {
	reason string
	world  list
	query  Query
	want   Verdict
	by     refs
}

type (
	list []any
	refs []Ref
)

func testDecide(t *testing.T, cases map[string]decideCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := NewSnapshot(world(tc.world...)).Decide(tc.query)
			if got.Reason == ReasonNone {
				t.Errorf("%s: Decide gives no reason", tc.reason)
			}
			got.Reason = ReasonNone
			if diff := cmp.Diff(Decision{Verdict: tc.want, Statements: tc.by}, got); diff != "" {
				t.Errorf("%s: Decide -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDecide checks how allows, denies, wildcards and several names decide together.
func TestDecide(t *testing.T) {
	const (
		enforce = v1alpha1.ModeEnforce
		audit   = v1alpha1.ModeAudit
		observe = v1alpha1.ModeObserve
	)
	allow := statementOf("a", Allow, app888, "redis:connect", bobs)
	deny := statementOf("d", Deny, app888, "redis:connect", bobs)
	a, d := Ref{"p-a", "a"}, Ref{"p-d", "d"}
	testDecide(t, map[string]decideCase{
		"Unmanaged": {reason: "statements alone block and count for nobody", world: list{allow, deny}, query: ask(), want: Unmanaged},
		"ObserveIsUnmanaged": {
			reason: "Observe is as good as not onboarded",
			world:  list{allow, deny, protect(bobs, observe)},
			query:  ask(),
			want:   Unmanaged,
		},
		"NoResource": {reason: "a destination without names", world: list{allow, protect(bobs, enforce)}, query: ask(on()), want: Unmanaged},
		"UnknownResource": {
			reason: "a destination whose name has no class",
			world:  list{allow},
			query:  ask(on("trnv1:rsc:trip-com:x:y:z")),
			want:   Unmanaged,
		},
		"Allowed": {
			reason: "an exact allow on an enforced resource",
			world:  list{allow, protect(bobs, enforce)},
			query:  ask(),
			want:   Allowed,
			by:     refs{a},
		},
		"AllowedInAudit": {
			reason: "an exact allow on an audited resource",
			world:  list{allow, protect(bobs, audit)},
			query:  ask(),
			want:   Allowed,
			by:     refs{a},
		},
		"DefaultDenied": {
			reason: "nothing matches the subject",
			world:  list{allow, protect(bobs, enforce)},
			query:  ask(by(app889)),
			want:   DefaultDenied,
		},
		"ClosedNotOpen": {
			reason: "an enforced resource without statements is closed",
			world:  list{protect(bobs, enforce)},
			query:  ask(),
			want:   DefaultDenied,
		},
		"OtherPort": {
			reason: "default deny is per workload, not per port",
			world:  list{allow, protect(bobs, enforce)},
			query:  ask(at(9121)),
			want:   DefaultDenied,
		},
		"OtherProtocol": {
			reason: "the protocol is a part of the port",
			world:  list{allow, protect(bobs, enforce)},
			query:  ask(over(v1alpha1.ProtocolUDP)),
			want:   DefaultDenied,
		},
		"OtherAction": {
			reason: "an action that the statement does not name",
			world:  list{allow, protect(bobs, enforce)},
			query:  ask(at(6380)),
			want:   DefaultDenied,
		},
		"AllActions": {
			reason: "redis:* is every action of the class, also in a range of ports",
			world:  list{statementOf("a", Allow, app888, "redis:*", bobs), protect(bobs, enforce)},
			query:  ask(at(16380)),
			want:   Allowed,
			by:     refs{a},
		},
		"ForeignService": {
			reason: "the actions of another service are none of this class",
			world:  list{statementOf("a", Allow, app888, "web:*", bobs), protect(bobs, enforce)},
			query:  ask(),
			want:   DefaultDenied,
		},
		"DenyWins": {
			reason: "a deny beats every allow",
			world:  list{allow, deny, protect(bobs, enforce)},
			query:  ask(),
			want:   Denied,
			by:     refs{d},
		},
		"Audited": {reason: "let through, though nothing allows it", world: list{protect(bobs, audit)}, query: ask(), want: Audited},
		"AuditedByDeny": {
			reason: "let through, though a deny would refuse it",
			world:  list{deny, protect(bobs, audit)},
			query:  ask(),
			want:   Audited,
			by:     refs{d},
		},
		"AuditTellsTheDeny": {
			reason: "an allow lets it through, and Enforce would refuse it: audit must say so",
			world:  list{allow, deny, protect(bobs, audit)},
			query:  ask(),
			want:   Audited,
			by:     refs{d},
		},
		"WildcardAllowCounts": {
			reason: "a wildcard allow counts always",
			world:  list{statementOf("a", Allow, app888, "redis:connect", allRedis)},
			query:  ask(),
			want:   Allowed,
			by:     refs{a},
		},
		"WildcardAllowEnforced": {
			reason: "also on an enforced resource",
			world:  list{statementOf("a", Allow, app888, "redis:connect", redisHead+"bobs-*"), protect(bobs, enforce)},
			query:  ask(),
			want:   Allowed,
			by:     refs{a},
		},
		"WildcardOther": {
			reason: "a wildcard that does not cover the resource",
			world:  list{statementOf("a", Allow, app888, "redis:connect", redisHead+"alice-*"), protect(bobs, enforce)},
			query:  ask(),
			want:   DefaultDenied,
		},
		"WildcardDeny": {
			reason: "a wildcard deny counts for enforced resources",
			world:  list{allow, statementOf("d", Deny, app888, "redis:connect", allRedis), protect(bobs, enforce)},
			query:  ask(),
			want:   Denied,
			by:     refs{d},
		},
		"WildcardDenyElsewhere": {
			reason: "and not for others",
			world:  list{statementOf("d", Deny, app888, "redis:connect", allRedis), protect(orders, enforce)},
			query:  ask(),
			want:   Unmanaged,
		},
		"WildcardSubject": {
			reason: "a wildcard subject covers the name",
			world:  list{statementOf("a", Allow, appHead+"app/team-*", "redis:connect", bobs), protect(bobs, enforce)},
			query:  ask(by(teamApp)),
			want:   Allowed,
			by:     refs{a},
		},
		"WildcardSubjectOther": {
			reason: "and not another",
			world:  list{statementOf("a", Allow, appHead+"app/team-*", "redis:connect", bobs), protect(bobs, enforce)},
			query:  ask(),
			want:   DefaultDenied,
		},
		"Anyone": {
			reason: "the subject * means nodes and strangers, too",
			world:  list{statementOf("a", Allow, "*", "redis:connect", bobs), protect(bobs, enforce)},
			query:  ask(by()),
			want:   Allowed,
			by:     refs{a},
		},
		"AnyoneDenied": {
			reason: "for both effects",
			world:  list{allow, statementOf("d", Deny, "*", "redis:connect", bobs), protect(bobs, enforce)},
			query:  ask(),
			want:   Denied,
			by:     refs{d},
		},
		"NodeIsNotAnApp": {
			reason: "a source without names matches no app",
			world:  list{allow, protect(bobs, enforce)},
			query:  ask(by()),
			want:   DefaultDenied,
		},

		"SeveralSubjects": {
			reason: "a pod with several labels: one allowed name is enough",
			world:  list{allow, protect(bobs, enforce)},
			query:  ask(by(app889, app888)),
			want:   Allowed,
			by:     refs{a},
		},
		"SeveralSubjectsDeny": {
			reason: "and one denied name",
			world:  list{allow, statementOf("d", Deny, app889, "redis:connect", bobs), protect(bobs, enforce)},
			query:  ask(by(app888, app889)),
			want:   Denied,
			by:     refs{d},
		},
		"TwoResourcesAllow": {
			reason: "an allow on one of two enforced names of a pod opens it",
			world:  list{allow, protect(bobs, enforce), protect(orders, enforce)},
			query:  ask(on(orders, bobs)),
			want:   Allowed,
			by:     refs{a},
		},
		"TwoResourcesDefault": {
			reason: "any enforced name makes the default a deny",
			world:  list{protect(bobs, audit), protect(orders, enforce)},
			query:  ask(on(bobs, orders)),
			want:   DefaultDenied,
		},
		"TwoResourcesAudit": {
			reason: "a deny on the audited one only would count in Enforce",
			world:  list{allow, statementOf("d", Deny, app888, "redis:connect", orders), protect(bobs, enforce), protect(orders, audit)},
			query:  ask(on(bobs, orders)),
			want:   Audited,
			by:     refs{d},
		},
		"ExactAllowElsewhere": {
			reason: "an allow on a name that is not onboarded does not open the enforced one",
			world:  list{allow, protect(orders, enforce)},
			query:  ask(on(bobs, orders)),
			want:   DefaultDenied,
		},
		"SeveralStatements": {
			reason: "all that decided are named, once and sorted",
			world: list{
				acp("z", statementOf("2", Allow, app888, "redis:*", bobs), statementOf("1", Allow, "*", "redis:connect", bobs, alsoResources(allRedis))),
				allow,
				protect(bobs, enforce),
			},
			query: ask(on(bobs, bobs)),
			want:  Allowed,
			by:    refs{a, {"z", "1"}, {"z", "2"}},
		},

		"InvalidPart": {
			reason: "a malformed subject is left out, the others count",
			world:  list{statementOf("a", Allow, app888, "redis:connect", bobs, alsoSubjects("app 889")), protect(bobs, enforce)},
			query:  ask(),
			want:   Allowed,
			by:     refs{a},
		},
	})
}

func TestDecideManySubjects(t *testing.T) {
	// More pairs than the index takes: found by looking through.
	st := statementOf("a", Allow, app888, "redis:connect", bobs)
	for i := range 64 {
		alsoSubjects(appHead + "app/x" + string(rune('a'+i%26)) + string(rune('a'+i/26)))(&st)
		alsoResources(redisHead + "y" + string(rune('a'+i%26)) + string(rune('a'+i/26)))(&st)
	}
	s := NewSnapshot(world(st, protect(bobs, v1alpha1.ModeEnforce)))
	if got := s.Decide(ask()).Verdict; got != Allowed {
		t.Errorf("a named subject of a large statement: %s, want %s", got, Allowed)
	}
	if got := s.Decide(ask(by(app889))).Verdict; got != DefaultDenied {
		t.Errorf("another subject: %s, want %s", got, DefaultDenied)
	}
}
