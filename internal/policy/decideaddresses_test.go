package policy

import (
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
)

// TestDecideAddresses checks ranges and external workloads, and which of several counts for an address.
func TestDecideAddresses(t *testing.T) {
	const (
		enforce = v1alpha1.ModeEnforce
		noClass = appHead + "robot/5"
	)
	allow := statementOf("a", Allow, app888, "redis:connect", bobs)
	deny := statementOf("d", Deny, app888, "redis:connect", bobs)
	a, d := Ref{"p-a", "a"}, Ref{"p-d", "d"}
	testDecide(t, map[string]decideCase{
		"Range": {
			reason: "an address range matches sources outside the fleet",
			world:  list{statementOf("a", Allow, cidrHead+"10.5.0.0/24", "redis:connect", bobs), protect(bobs, enforce)},
			query:  ask(outside("10.5.0.9")),
			want:   Allowed,
			by:     refs{a},
		},
		"RangeMapped": {
			reason: "an IPv4 source written as IPv6",
			world:  list{statementOf("a", Allow, cidrHead+"10.5.0.0/24", "redis:connect", bobs), protect(bobs, enforce)},
			query:  ask(outside("::ffff:10.5.0.9")),
			want:   Allowed,
			by:     refs{a},
		},
		"RangeOther": {
			reason: "and not others",
			world:  list{statementOf("a", Allow, cidrHead+"10.5.0.0/24", "redis:connect", bobs), protect(bobs, enforce)},
			query:  ask(outside("10.5.1.9")),
			want:   DefaultDenied,
		},
		"RangeAndPods": {
			reason: "nor pods, which have no source address",
			world:  list{statementOf("a", Allow, cidrHead+"0.0.0.0/0", "redis:connect", bobs), protect(bobs, enforce)},
			query:  ask(),
			want:   DefaultDenied,
		},
		"RangeNameIsNoName": {
			reason: "a range is matched by address, never by name",
			world:  list{statementOf("a", Allow, cidrHead+"10.5.0.0/24", "redis:connect", bobs), protect(bobs, enforce)},
			query:  ask(by(cidrHead + "10.5.0.0/24")),
			want:   DefaultDenied,
		},
		"Range6": {
			reason: "IPv6",
			world:  list{statementOf("d", Deny, cidrHead+"2001:db8::/32", "redis:connect", bobs), protect(bobs, enforce)},
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
				statementOf("a", Allow, "*", "redis:connect", bobs),
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
				statementOf("d", Deny, appHead+"app/*", "redis:connect", bobs),
				statementOf("a", Allow, appHead+"app/*", "redis:connect", bobs),
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
			world:  list{statementOf("a", Allow, cidrHead+"10.5.0.0/24", "redis:connect", bobs), protect(bobs, enforce), workload("vm", app889, "10.5.0.9")},
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
			world:  list{statementOf("a", Allow, appHead+"*", "redis:connect", bobs), protect(bobs, enforce), workload("vm", noClass, "10.5.0.9")},
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
				statementOf("a", Allow, "*", "redis:connect", bobs),
				protect(bobs, enforce),
				workload("net", app888, "10.5.0.9"),
				workload("vm", noClass, "10.5.0.9"),
			},
			query: ask(outside("10.5.0.9")),
			want:  Denied,
			by:    refs{d},
		},
	})
}
