package policy

import (
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
)

// TestDecideByModeAndTime checks the modes of members, temporary audit, and the time in which a statement counts.
func TestDecideByModeAndTime(t *testing.T) {
	const (
		enforce = v1alpha1.ModeEnforce
		audit   = v1alpha1.ModeAudit
		observe = v1alpha1.ModeObserve
	)
	a := Ref{"p-a", "a"}
	testDecide(t, map[string]decideCase{
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
			world:  list{statementOf("a", Allow, app888, "redis:connect", bobs, from(hours(1))), protect(bobs, enforce)},
			query:  ask(),
			want:   DefaultDenied,
		},
		"FirstInstant": {
			reason: "notBefore is within",
			world:  list{statementOf("a", Allow, app888, "redis:connect", bobs, from(hours(0)), until(hours(1))), protect(bobs, enforce)},
			query:  ask(),
			want:   Allowed,
			by:     refs{a},
		},
		"LastInstant": {
			reason: "notAfter is not",
			world:  list{statementOf("a", Allow, app888, "redis:connect", bobs, until(hours(1))), protect(bobs, enforce)},
			query:  ask(when(hours(1).Time)),
			want:   DefaultDenied,
		},
	})
}

// TestDecideOtherPorts checks ports of a class that no action names.
func TestDecideOtherPorts(t *testing.T) {
	const (
		enforce = v1alpha1.ModeEnforce
		audit   = v1alpha1.ModeAudit
		observe = v1alpha1.ModeObserve
	)
	testDecide(t, map[string]decideCase{
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
	})
}
