package policy

import (
	"math/rand/v2"
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

func TestDecide(t *testing.T) {
	const (
		enforce = v1alpha1.ModeEnforce
		audit   = v1alpha1.ModeAudit
		noClass = appHead + "robot/5"
		observe = v1alpha1.ModeObserve
	)
	allow := say("a", Allow, app888, "redis:connect", bobs)
	deny := say("d", Deny, app888, "redis:connect", bobs)
	type list []any
	type refs []Ref
	a, d := Ref{"p-a", "a"}, Ref{"p-d", "d"}

	cases := map[string]struct {
		reason string
		world  list
		query  Query
		want   Verdict
		by     refs
	}{
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
			world:  list{say("a", Allow, app888, "redis:*", bobs), protect(bobs, enforce)},
			query:  ask(at(16380)),
			want:   Allowed,
			by:     refs{a},
		},
		"ForeignService": {
			reason: "the actions of another service are none of this class",
			world:  list{say("a", Allow, app888, "web:*", bobs), protect(bobs, enforce)},
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
			world:  list{say("a", Allow, app888, "redis:connect", allRedis)},
			query:  ask(),
			want:   Allowed,
			by:     refs{a},
		},
		"WildcardAllowEnforced": {
			reason: "also on an enforced resource",
			world:  list{say("a", Allow, app888, "redis:connect", redisHead+"bobs-*"), protect(bobs, enforce)},
			query:  ask(),
			want:   Allowed,
			by:     refs{a},
		},
		"WildcardOther": {
			reason: "a wildcard that does not cover the resource",
			world:  list{say("a", Allow, app888, "redis:connect", redisHead+"alice-*"), protect(bobs, enforce)},
			query:  ask(),
			want:   DefaultDenied,
		},
		"WildcardDeny": {
			reason: "a wildcard deny counts for enforced resources",
			world:  list{allow, say("d", Deny, app888, "redis:connect", allRedis), protect(bobs, enforce)},
			query:  ask(),
			want:   Denied,
			by:     refs{d},
		},
		"WildcardDenyElsewhere": {
			reason: "and not for others",
			world:  list{say("d", Deny, app888, "redis:connect", allRedis), protect(orders, enforce)},
			query:  ask(),
			want:   Unmanaged,
		},
		"WildcardSubject": {
			reason: "a wildcard subject covers the name",
			world:  list{say("a", Allow, appHead+"app/team-*", "redis:connect", bobs), protect(bobs, enforce)},
			query:  ask(by(teamApp)),
			want:   Allowed,
			by:     refs{a},
		},
		"WildcardSubjectOther": {
			reason: "and not another",
			world:  list{say("a", Allow, appHead+"app/team-*", "redis:connect", bobs), protect(bobs, enforce)},
			query:  ask(),
			want:   DefaultDenied,
		},
		"Anyone": {
			reason: "the subject * means nodes and strangers, too",
			world:  list{say("a", Allow, "*", "redis:connect", bobs), protect(bobs, enforce)},
			query:  ask(by()),
			want:   Allowed,
			by:     refs{a},
		},
		"AnyoneDenied": {
			reason: "for both effects",
			world:  list{allow, say("d", Deny, "*", "redis:connect", bobs), protect(bobs, enforce)},
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
			world:  list{allow, say("d", Deny, app889, "redis:connect", bobs), protect(bobs, enforce)},
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
			world:  list{allow, say("d", Deny, app888, "redis:connect", orders), protect(bobs, enforce), protect(orders, audit)},
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
				acp("z", say("2", Allow, app888, "redis:*", bobs), say("1", Allow, "*", "redis:connect", bobs, alsoResources(allRedis))),
				allow,
				protect(bobs, enforce),
			},
			query: ask(on(bobs, bobs)),
			want:  Allowed,
			by:    refs{a, {"z", "1"}, {"z", "2"}},
		},
		"ClusterModeEnforces": {
			reason: "the member's own mode counts there",
			world:  list{protect(bobs, audit, in("m1", enforce))},
			query:  ask(),
			want:   DefaultDenied,
		},
		"ClusterModeElsewhere": {reason: "and only there", world: list{protect(bobs, audit, in("m2", enforce))}, query: ask(), want: Audited},
		"StrictestOfTwo": {
			reason: "two ProtectedResources for one name: the strictest counts",
			world:  list{protect(bobs, observe), protect(bobs, enforce, as("second"))},
			query:  ask(),
			want:   DefaultDenied,
		},
		"StrictestInCluster": {
			reason: "per member",
			world:  list{protect(bobs, enforce, in("m1", audit)), protect(bobs, observe, as("second"))},
			query:  ask(),
			want:   Audited,
		},

		"TemporaryAudit": {
			reason: "an enforced resource in temporary audit",
			world:  list{protect(bobs, enforce, auditUntil(hours(1)))},
			query:  ask(),
			want:   Audited,
		},
		"TemporaryAuditEnds":    {reason: "ends at its instant", world: list{protect(bobs, enforce, auditUntil(hours(0)))}, query: ask(), want: DefaultDenied},
		"TemporaryAuditObserve": {reason: "onboards nothing", world: list{protect(bobs, observe, auditUntil(hours(1)))}, query: ask(), want: Unmanaged},
		"TemporaryAuditCluster": {
			reason: "softens what a member enforces by its own mode",
			world:  list{protect(bobs, observe, in("m1", enforce), auditUntil(hours(1)))},
			query:  ask(),
			want:   Audited,
		},
		"TemporaryAuditOfOne": {
			reason: "softens only its own object",
			world:  list{protect(bobs, enforce, auditUntil(hours(1))), protect(bobs, enforce, as("second"))},
			query:  ask(),
			want:   DefaultDenied,
		},

		"NotYet": {
			reason: "before notBefore",
			world:  list{say("a", Allow, app888, "redis:connect", bobs, from(hours(1))), protect(bobs, enforce)},
			query:  ask(),
			want:   DefaultDenied,
		},
		"FirstInstant": {
			reason: "notBefore is within",
			world:  list{say("a", Allow, app888, "redis:connect", bobs, from(hours(0)), until(hours(1))), protect(bobs, enforce)},
			query:  ask(),
			want:   Allowed,
			by:     refs{a},
		},
		"LastInstant": {
			reason: "notAfter is not",
			world:  list{say("a", Allow, app888, "redis:connect", bobs, until(hours(1))), protect(bobs, enforce)},
			query:  ask(when(hours(1).Time)),
			want:   DefaultDenied,
		},

		"Range": {
			reason: "an address range matches sources outside the fleet",
			world:  list{say("a", Allow, cidrHead+"10.5.0.0/24", "redis:connect", bobs), protect(bobs, enforce)},
			query:  ask(outside("10.5.0.9")),
			want:   Allowed,
			by:     refs{a},
		},
		"RangeMapped": {
			reason: "an IPv4 source written as IPv6",
			world:  list{say("a", Allow, cidrHead+"10.5.0.0/24", "redis:connect", bobs), protect(bobs, enforce)},
			query:  ask(outside("::ffff:10.5.0.9")),
			want:   Allowed,
			by:     refs{a},
		},
		"RangeOther": {
			reason: "and not others",
			world:  list{say("a", Allow, cidrHead+"10.5.0.0/24", "redis:connect", bobs), protect(bobs, enforce)},
			query:  ask(outside("10.5.1.9")),
			want:   DefaultDenied,
		},
		"RangeAndPods": {
			reason: "nor pods, which have no source address",
			world:  list{say("a", Allow, cidrHead+"0.0.0.0/0", "redis:connect", bobs), protect(bobs, enforce)},
			query:  ask(),
			want:   DefaultDenied,
		},
		"RangeNameIsNoName": {
			reason: "a range is matched by address, never by name",
			world:  list{say("a", Allow, cidrHead+"10.5.0.0/24", "redis:connect", bobs), protect(bobs, enforce)},
			query:  ask(by(cidrHead + "10.5.0.0/24")),
			want:   DefaultDenied,
		},
		"Range6": {
			reason: "IPv6",
			world:  list{say("d", Deny, cidrHead+"2001:db8::/32", "redis:connect", bobs), protect(bobs, enforce)},
			query:  ask(outside("2001:db8::7")),
			want:   Denied,
			by:     refs{d},
		},
		"Workload": {
			reason: "an external workload acts as its subject",
			world:  list{allow, protect(bobs, enforce), workload("vm", app888, "10.5.0.9")},
			query:  ask(outside("10.5.0.9")),
			want:   Allowed,
			by:     refs{a},
		},
		"WorkloadLongest": {
			reason: "of two, the longer prefix",
			world:  list{allow, protect(bobs, enforce), workload("net", app888, "10.5.0.0/24"), workload("vm", app889, "10.5.0.9")},
			query:  ask(outside("10.5.0.9")),
			want:   DefaultDenied,
		},
		"WorkloadShorter": {
			reason: "beside the longer one, the shorter",
			world:  list{allow, protect(bobs, enforce), workload("net", app888, "10.5.0.0/24"), workload("vm", app889, "10.5.0.9")},
			query:  ask(outside("10.5.0.8")),
			want:   Allowed,
			by:     refs{a},
		},
		"ContestedAllow": {
			reason: "equal prefixes of two subjects: none of their allows",
			world:  list{allow, protect(bobs, enforce), workload("one", app888, "10.5.0.9"), workload("two", app889, "10.5.0.9")},
			query:  ask(outside("10.5.0.9")),
			want:   DefaultDenied,
		},
		"ContestedDeny": {
			reason: "equal prefixes of two subjects: all their denies",
			world: list{
				deny,
				say("a", Allow, "*", "redis:connect", bobs),
				protect(bobs, enforce),
				workload("one", app888, "10.5.0.9"),
				workload("two", app889, "10.5.0.9"),
			},
			query: ask(outside("10.5.0.9")),
			want:  Denied,
			by:    refs{d},
		},
		"ContestedWildcard": {
			reason: "also those by wildcard subjects, and not their allows",
			world: list{
				say("d", Deny, appHead+"app/*", "redis:connect", bobs),
				say("a", Allow, appHead+"app/*", "redis:connect", bobs),
				protect(bobs, enforce),
				workload("one", app888, "10.5.0.9"),
				workload("two", app889, "10.5.0.9"),
			},
			query: ask(outside("10.5.0.9")),
			want:  Denied,
			by:    refs{d},
		},
		"WorkloadAndRange": {
			reason: "a workload's address is still in its range",
			world:  list{say("a", Allow, cidrHead+"10.5.0.0/24", "redis:connect", bobs), protect(bobs, enforce), workload("vm", app889, "10.5.0.9")},
			query:  ask(outside("10.5.0.9")),
			want:   Allowed,
			by:     refs{a},
		},

		"WorkloadNoClass": {
			reason: "an address has the identity of its longest prefix, also where that subject is in no class",
			world:  list{allow, protect(bobs, enforce), workload("net", app888, "10.5.0.0/24"), workload("vm", noClass, "10.5.0.9")},
			query:  ask(outside("10.5.0.9")),
			want:   DefaultDenied,
		},
		"WorkloadNoClass2": {
			reason: "nor may the subject of no class be meant by a wider wildcard, which stands for the classes' names",
			world:  list{say("a", Allow, appHead+"*", "redis:connect", bobs), protect(bobs, enforce), workload("vm", noClass, "10.5.0.9")},
			query:  ask(outside("10.5.0.9")),
			want:   DefaultDenied,
		},
		"WorkloadNoName": {
			reason: "nor where the subject cannot be a label value",
			world:  list{allow, protect(bobs, enforce), workload("net", app888, "10.5.0.0/24"), workload("vm", appHead+"app/8/8", "10.5.0.9")},
			query:  ask(outside("10.5.0.9")),
			want:   DefaultDenied,
		},
		"WorkloadHostBits": {
			reason: "an address with host bits may mean all of its prefix, which then is nobody's",
			world:  list{allow, protect(bobs, enforce), workload("net", app888, "10.5.0.0/16"), workload("vm", app889, "10.5.0.9/24")},
			query:  ask(outside("10.5.0.8")),
			want:   DefaultDenied,
		},
		"WorkloadEqual": {
			reason: "an equal prefix of a subject in no class contests it",
			world:  list{allow, protect(bobs, enforce), workload("net", app888, "10.5.0.9"), workload("vm", noClass, "10.5.0.9")},
			query:  ask(outside("10.5.0.9")),
			want:   DefaultDenied,
		},
		"WorkloadEqualDeny": {
			reason: "and the denies of the other count",
			world: list{
				deny,
				say("a", Allow, "*", "redis:connect", bobs),
				protect(bobs, enforce),
				workload("net", app888, "10.5.0.9"),
				workload("vm", noClass, "10.5.0.9"),
			},
			query: ask(outside("10.5.0.9")),
			want:  Denied,
			by:    refs{d},
		},
		"OtherPortsOpen": {
			reason: "the class opens what none of its actions names",
			world:  list{protect(shop, enforce)},
			query:  ask(on(shop), at(9090)),
			want:   Allowed,
		},
		"OtherPortsICMP": {reason: "for every protocol", world: list{protect(shop, enforce)}, query: ask(on(shop), at(0), over("ICMP")), want: Allowed},
		"OtherPortsAudit": {
			reason: "in Audit nothing would be refused there",
			world:  list{protect(shop, audit)},
			query:  ask(on(shop), at(9090)),
			want:   Allowed,
		},
		"OtherPortsObserve": {
			reason: "in Observe it is unmanaged all the same",
			world:  list{protect(shop, observe)},
			query:  ask(on(shop), at(9090)),
			want:   Unmanaged,
		},
		"OtherPortsAction": {reason: "and not what an action names", world: list{protect(shop, enforce)}, query: ask(on(shop), at(80)), want: DefaultDenied},
		"OtherPortsForeign": {
			reason: "nor on workloads with another class's label, onboarded or not",
			world:  list{protect(shop, enforce)},
			query:  ask(on(shop, bobs), at(9090)),
			want:   DefaultDenied,
		},

		"HTTP": {
			reason: "method and path of an action",
			world:  list{say("a", Allow, app888, "web:orders", shop), protect(shop, enforce)},
			query:  ask(requesting("POST", "/orders/7")),
			want:   Allowed,
			by:     refs{a},
		},
		"HTTPAnchored": {
			reason: "the expressions are anchored",
			world:  list{say("a", Allow, app888, "web:orders", shop), protect(shop, enforce)},
			query:  ask(requesting("POST", "/orders7")),
			want:   DefaultDenied,
		},
		"HTTPHalfKnown": {
			reason: "of a request of which only the method is known, an allow reads the path as a match",
			world:  list{say("a", Allow, app888, "web:orders", shop), protect(shop, enforce)},
			query:  ask(requesting("POST", "")),
			want:   Allowed,
			by:     refs{a},
		},
		"HTTPHalfOther": {
			reason: "but what is known has to match",
			world:  list{say("a", Allow, app888, "web:orders", shop), protect(shop, enforce)},
			query:  ask(requesting("PUT", "")),
			want:   DefaultDenied,
		},
		"HTTPQueryString": {
			reason: "the path is with its query string, as Envoy's :path",
			world:  list{say("a", Allow, app888, "web:orders", shop), protect(shop, enforce)},
			query:  ask(requesting("POST", "/orders?id=7")),
			want:   DefaultDenied,
		},
		"HTTPMethod": {
			reason: "another method",
			world:  list{say("a", Allow, app888, "web:orders", shop), protect(shop, enforce)},
			query:  ask(requesting("PUT", "/orders")),
			want:   DefaultDenied,
		},
		"HTTPUnknown": {
			reason: "an allow matches the connection while the request is unknown",
			world:  list{say("a", Allow, app888, "web:orders", shop), protect(shop, enforce)},
			query:  ask(requesting("", "")),
			want:   Allowed,
			by:     refs{a},
		},
		"HTTPAudit": {
			reason: "in Audit alone, an allow of requests is one",
			world:  list{say("a", Allow, app888, "web:orders", shop), protect(shop, audit)},
			query:  ask(requesting("POST", "/orders")),
			want:   Allowed,
			by:     refs{a},
		},
		"HTTPAuditOther": {
			reason: "in Audit alone, other requests are let through and reported",
			world:  list{say("a", Allow, app888, "web:orders", shop), protect(shop, audit)},
			query:  ask(requesting("PUT", "/orders")),
			want:   Audited,
		},
		"HTTPAuditClosed": {
			reason: "an allow of requests in Audit does not open what another resource of the pod closes",
			world:  list{say("a", Allow, app888, "web:orders", shop), protect(shop, audit), protect(bobs, enforce)},
			query:  ask(requesting("POST", "/orders"), on(shop, bobs)),
			want:   DefaultDenied,
		},
		"HTTPAuditFirst": {
			reason: "in whatever order the resources are named",
			world:  list{say("a", Allow, app888, "web:orders", shop), protect(shop, audit), protect(bobs, enforce)},
			query:  ask(requesting("", ""), on(bobs, shop)),
			want:   DefaultDenied,
		},
		"HTTPAuditWhole": {
			reason: "an allow of connections in Audit does open it",
			world:  list{say("a", Allow, app888, "web:connect", shop), protect(shop, audit), protect(bobs, enforce)},
			query:  ask(requesting("PUT", "/"), on(shop, bobs)),
			want:   Allowed,
			by:     refs{a},
		},
		"HTTPDenyUnknown": {
			reason: "a deny of some requests does not deny the connection",
			world:  list{say("a", Allow, app888, "web:connect", shop), say("d", Deny, app888, "web:read", shop), protect(shop, enforce)},
			query:  ask(requesting("", "")),
			want:   Allowed,
			by:     refs{a},
		},
		"HTTPDeny": {
			reason: "a deny of a request that is known",
			world:  list{say("a", Allow, app888, "web:connect", shop), say("d", Deny, app888, "web:read", shop), protect(shop, enforce)},
			query:  ask(requesting("GET", "/")),
			want:   Denied,
			by:     refs{d},
		},
		"HTTPWithout": {
			reason: "an allow without HTTP on the same port wins over one with it",
			world:  list{say("b", Allow, app888, "web:orders", shop), say("a", Allow, app888, "web:connect", shop), protect(shop, enforce)},
			query:  ask(requesting("DELETE", "/")),
			want:   Allowed,
			by:     refs{a},
		},

		"HTTPByAction": {
			reason: "a request that is known by its action only",
			world:  list{say("a", Allow, app888, "web:orders", shop), protect(shop, enforce)},
			query:  ask(requesting("", ""), of("web:orders")),
			want:   Allowed,
			by:     refs{a},
		},
		"HTTPByOther": {
			reason: "an allow of other requests does not count for it",
			world:  list{say("a", Allow, app888, "web:orders", shop), protect(shop, enforce)},
			query:  ask(requesting("", ""), of("web:read")),
			want:   DefaultDenied,
		},
		"HTTPByNone": {
			reason: "no allow of requests counts for a request of no action",
			world:  list{say("a", Allow, app888, "web:orders", shop), protect(shop, enforce)},
			query:  ask(requesting("", ""), of(NoAction)),
			want:   DefaultDenied,
		},
		"HTTPByNoneWhole": {
			reason: "an allow of connections does",
			world:  list{say("a", Allow, app888, "web:connect", shop), protect(shop, enforce)},
			query:  ask(requesting("", ""), of(NoAction)),
			want:   Allowed,
			by:     refs{a},
		},
		"HTTPByActionDeny": {
			reason: "a deny of its action counts",
			world:  list{say("a", Allow, app888, "web:connect", shop), say("d", Deny, app888, "web:read", shop), protect(shop, enforce)},
			query:  ask(requesting("", ""), of("web:read")),
			want:   Denied,
			by:     refs{d},
		},

		"InvalidPart": {
			reason: "a malformed subject is left out, the others count",
			world:  list{say("a", Allow, app888, "redis:connect", bobs, alsoSubjects("app 889")), protect(bobs, enforce)},
			query:  ask(),
			want:   Allowed,
			by:     refs{a},
		},
	}
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

func TestDecideManySubjects(t *testing.T) {
	// More pairs than the index takes: found by looking through.
	st := say("a", Allow, app888, "redis:connect", bobs)
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

// A decision needs no memory: that keeps the collector's cost per flow flat.
func TestDecideAllocatesNothing(t *testing.T) {
	s := NewSnapshot(world(
		protect(bobs, v1alpha1.ModeEnforce),
		say("a", Allow, app888, "redis:connect", bobs),
		say("b", Allow, app889, "redis:connect", bobs),
		say(
			"c",
			Allow,
			appHead+"app/889*",
			"redis:*",
			allRedis,
		),
		say("d", Allow, appHead+"app/*", "redis:admin", bobs),
		say("e", Deny, cart, "redis:connect", allRedis),
	))
	var refs [4]Ref
	for name, tc := range map[string]struct {
		q    Query
		want Verdict
		by   int
	}{
		"Allowed":       {ask(on(bobs), by(app888)), Allowed, 1},
		"Several":       {ask(on(bobs), by(app889)), Allowed, 2},
		"Denied":        {ask(on(bobs), by(app888, cart)), Denied, 1},
		"DefaultDenied": {ask(on(bobs), by(teamApp)), DefaultDenied, 0},
		"Unknown":       {ask(on(redisHead+"unknown"), by(app889)), Allowed, 1},
		"Unmanaged":     {ask(on(orders), by(app888)), Unmanaged, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := s.DecideInto(&tc.q, refs[:])
			if d.Verdict != tc.want || len(d.Statements) != tc.by {
				t.Fatalf("%s by %v, want %s by %d", d.Verdict, d.Statements, tc.want, tc.by)
			}
			if n := testing.AllocsPerRun(100, func() { s.DecideInto(&tc.q, refs[:]) }); n > 0 {
				t.Errorf("%v allocations, want none", n)
			}
		})
	}
}

func TestDecideResolvedIsDecide(t *testing.T) {
	for seed := range uint64(300) {
		d := dice{rand.New(rand.NewPCG(seed, 11))}
		s := NewSnapshot(d.world())
		for range 20 {
			q := d.query()
			q.Source = netip.Addr{}
			q.Subjects, q.Resources = []string{pick(d, app888, app889, cart, "unknown")}, []string{pick(d, bobs, orders, shop, redisHead+"unknown")}
			want := s.Decide(q)
			got := s.DecideResolved(s.ResolveSubject(q.Subjects[0]), s.ResolveResource(q.Resources[0]), &q, nil)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, %+v: -Decide +DecideResolved:\n%s", seed, q, diff)
			}
		}
	}
}
