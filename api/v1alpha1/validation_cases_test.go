package v1alpha1_test

import (
	"fmt"
	"strings"
)

const (
	pattern = "should match '"
	tooLong = "Too long"
)

func q(s string) string { return `"` + s + `"` }

// names are the rules of the name types, through the kinds that use them.
var names = []creation{
	{"a resource may be a wildcard", "AccessControlPolicy", map[string]string{"spec.statements.0.resources.0": q("trnv1:rsc:trip-com:redis:clusters:*")}, ""},
	{
		"an id may hold colons and slashes",
		"AccessControlPolicy",
		map[string]string{"spec.statements.0.resources.0": q("trnv1:rsc:trip-com:net:cidr:2001:db8::/32")},
		"",
	},
	{"a name has a scheme", "AccessControlPolicy", map[string]string{"spec.statements.0.resources.0": q("redis:clusters:bobs")}, pattern},
	{"org is a DNS label", "AccessControlPolicy", map[string]string{"spec.statements.0.resources.0": q("trnv1:rsc:Trip:redis:clusters:bobs")}, pattern},
	{
		"service is a DNS label",
		"AccessControlPolicy",
		map[string]string{"spec.statements.0.resources.0": q("trnv1:rsc:trip-com:-redis:clusters:bobs")},
		pattern,
	},
	{
		"type is at most 63 characters",
		"AccessControlPolicy",
		map[string]string{"spec.statements.0.resources.0": q("trnv1:rsc:trip-com:redis:" + strings.Repeat("c", 64) + ":bobs")},
		pattern,
	},
	{"an id is not empty", "AccessControlPolicy", map[string]string{"spec.statements.0.resources.0": q("trnv1:rsc:trip-com:redis:clusters:")}, pattern},
	{
		"a wildcard is only at the end",
		"AccessControlPolicy",
		map[string]string{"spec.statements.0.resources.0": q("trnv1:rsc:trip-com:redis:clusters:*bobs")},
		pattern,
	},
	{"an id has no spaces", "AccessControlPolicy", map[string]string{"spec.statements.0.resources.0": q("trnv1:rsc:trip-com:redis:clusters:b b")}, pattern},
	{
		"a name is at most 512 characters",
		"AccessControlPolicy",
		map[string]string{"spec.statements.0.resources.0": q("trnv1:rsc:trip-com:redis:clusters:" + strings.Repeat("b", 512))},
		tooLong,
	},
	{"a resource is not anyone", "AccessControlPolicy", map[string]string{"spec.statements.0.resources.0": q("*")}, pattern},
	{"a subject may be anyone", "AccessControlPolicy", map[string]string{"spec.statements.0.subjects.0": q("*")}, ""},
	{"a subject may be a prefix", "AccessControlPolicy", map[string]string{"spec.statements.0.subjects.0": q("trnv1:rsc:trip-com:iam:sa:app/team-*")}, ""},
	{"a subject is a name", "AccessControlPolicy", map[string]string{"spec.statements.0.subjects.0": q("app/888")}, pattern},
	{"an action may be a wildcard", "AccessControlPolicy", map[string]string{"spec.statements.0.actions.0": q("redis:*")}, ""},
	{"an action has a service", "AccessControlPolicy", map[string]string{"spec.statements.0.actions.0": "connect"}, pattern},
	{"an action has no partial wildcard", "AccessControlPolicy", map[string]string{"spec.statements.0.actions.0": q("redis:con*")}, pattern},
	{"a class's action has no wildcard", "ResourceClass", map[string]string{"spec.actions.0.name": q("redis:*")}, pattern},
	{"a class's pattern ends in a wildcard", "ResourceClass", map[string]string{"spec.pattern": q("trnv1:rsc:trip-com:redis:clusters:bobs")}, pattern},
	{"a class's pattern has one wildcard", "SubjectClass", map[string]string{"spec.pattern": q("trnv1:rsc:trip-com:iam:sa:*/*")}, pattern},
	{"a label key may have no prefix", "ResourceClass", map[string]string{"spec.labelKey": "app"}, ""},
	{"a label key is one", "ResourceClass", map[string]string{"spec.labelKey": "com.trip/redis/cluster"}, pattern},
	{"a cluster name is a DNS label", "ProtectedResource", map[string]string{"spec.clusterModes": "[{cluster: M1, mode: Audit}]"}, pattern},
}

var policies = []creation{
	{"the smallest one", "AccessControlPolicy", nil, ""},
	{"no statements", "AccessControlPolicy", map[string]string{"spec.statements": ""}, ""},
	{
		"a time window",
		"AccessControlPolicy",
		map[string]string{"spec.statements.0.notBefore": q("2026-01-01T00:00:00Z"), "spec.statements.0.notAfter": q("2026-01-01T00:00:01Z")},
		"",
	},
	{
		"an empty time window",
		"AccessControlPolicy",
		map[string]string{"spec.statements.0.notBefore": q("2026-01-01T00:00:00Z"), "spec.statements.0.notAfter": q("2026-01-01T00:00:00Z")},
		"notAfter must be later",
	},
	{
		"times in two zones are compared as instants",
		"AccessControlPolicy",
		map[string]string{"spec.statements.0.notBefore": q("2026-01-01T00:00:00+02:00"), "spec.statements.0.notAfter": q("2025-12-31T23:00:00Z")},
		"",
	},
	{"a sid is needed", "AccessControlPolicy", map[string]string{"spec.statements.0.sid": ""}, "sid"},
	{"a sid with a separator inside", "AccessControlPolicy", map[string]string{"spec.statements.0.sid": "t1.item_2-a"}, ""},
	{"a sid begins with a letter or digit", "AccessControlPolicy", map[string]string{"spec.statements.0.sid": "-one"}, pattern},
	{"a sid is at most 63 characters", "AccessControlPolicy", map[string]string{"spec.statements.0.sid": strings.Repeat("s", 64)}, tooLong},
	{"sids are unique", "AccessControlPolicy", map[string]string{"spec.statements": `
- {sid: one, effect: Allow, subjects: ["*"], actions: ["a:b"], resources: ["trnv1:rsc:a:b:c:d"]}
- {sid: one, effect: Deny, subjects: ["*"], actions: ["a:b"], resources: ["trnv1:rsc:a:b:c:d"]}`}, "Duplicate value"},
	{"an effect is Allow or Deny", "AccessControlPolicy", map[string]string{"spec.statements.0.effect": "Audit"}, "Unsupported value"},
	{"somebody is needed", "AccessControlPolicy", map[string]string{"spec.statements.0.subjects": "[]"}, "should have at least 1 items"},
	{"something is needed", "AccessControlPolicy", map[string]string{"spec.statements.0.resources": "[]"}, "should have at least 1 items"},
	{"an action is needed", "AccessControlPolicy", map[string]string{"spec.statements.0.actions": "[]"}, "should have at least 1 items"},
	{
		"at most 512 statements",
		"AccessControlPolicy",
		map[string]string{"spec.statements": "[" + strings.Repeat("{},", 513) + "]"},
		"must have at most 512 items",
	},
	{
		"at most 256 subjects",
		"AccessControlPolicy",
		map[string]string{"spec.statements.0.subjects": "[" + strings.Repeat(q("*")+",", 257) + "]"},
		"must have at most 256 items",
	},
	{
		"at most 256 resources",
		"AccessControlPolicy",
		map[string]string{"spec.statements.0.resources": "[" + strings.Repeat(q("trnv1:rsc:a:b:c:d")+",", 257) + "]"},
		"must have at most 256 items",
	},
	{
		"at most 32 actions",
		"AccessControlPolicy",
		map[string]string{"spec.statements.0.actions": "[" + strings.Repeat(q("a:b")+",", 33) + "]"},
		"must have at most 32 items",
	},
	{"a subject is named once", "AccessControlPolicy", map[string]string{"spec.statements.0.subjects": `["*", "*"]`}, "Duplicate value"},
}

var classes = []creation{
	{"the smallest one", "ResourceClass", nil, ""},
	{"a port range", "ResourceClass", map[string]string{"spec.actions.0.ports.0": "{port: 6379, endPort: 6379, protocol: UDP}"}, ""},
	{"a port range runs upwards", "ResourceClass", map[string]string{"spec.actions.0.ports.0": "{port: 6379, endPort: 6378}"}, "endPort must not be less"},
	{"a port is at least 1", "ResourceClass", map[string]string{"spec.actions.0.ports.0.port": "0"}, "greater than or equal to 1"},
	{"a port is at most 65535", "ResourceClass", map[string]string{"spec.actions.0.ports.0.port": "65536"}, "less than or equal to 65535"},
	{"an end port is at most 65535", "ResourceClass", map[string]string{"spec.actions.0.ports.0": "{port: 1, endPort: 65536}"}, "less than or equal to 65535"},
	{"a protocol is known", "ResourceClass", map[string]string{"spec.actions.0.ports.0": "{port: 1, protocol: ICMP}"}, "Unsupported value"},
	{"a port is needed", "ResourceClass", map[string]string{"spec.actions.0.ports": "[]"}, "should have at least 1 items"},
	{
		"at most 40 ports, as dataplanes have it",
		"ResourceClass",
		map[string]string{"spec.actions.0.ports": "[" + strings.Repeat("{port: 1},", 41) + "]"},
		"must have at most 40 items",
	},
	{"an action is needed", "ResourceClass", map[string]string{"spec.actions": "[]"}, "should have at least 1 items"},
	{
		"action names are unique",
		"ResourceClass",
		map[string]string{"spec.actions": `[{name: "a:b", ports: [{port: 1}]}, {name: "a:b", ports: [{port: 2}]}]`},
		"Duplicate value",
	},
	{"HTTP by path alone", "ResourceClass", map[string]string{"spec.actions.0.http": "[{path: /}]"}, ""},
	{"HTTP by nothing", "ResourceClass", map[string]string{"spec.actions.0.http": "[{}]"}, "needs a method or a path"},
	{
		"HTTP over UDP",
		"ResourceClass",
		map[string]string{"spec.actions.0": `{name: "a:b", ports: [{port: 1, protocol: UDP}], http: [{method: GET}]}`},
		"must use TCP ports only",
	},
	{"clusters by name", "ResourceClass", map[string]string{"spec.placement": "{clusters: [m1]}"}, ""},
	{"explicitly no cluster", "ResourceClass", map[string]string{"spec.placement": "{clusters: []}"}, ""},
	{"clusters by name and selector", "ResourceClass", map[string]string{"spec.placement": "{clusters: [], clusterSelector: {}}"}, "exactly one of"},
	{"a placement that says nothing", "ResourceClass", map[string]string{"spec.placement": "{}"}, "exactly one of"},
	{"a placement is needed", "ResourceClass", map[string]string{"spec.placement": ""}, "Required value"},
	{"other ports open", "ResourceClass", map[string]string{"spec.otherPorts": "Allow"}, ""},
	{"other ports are Deny or Allow", "ResourceClass", map[string]string{"spec.otherPorts": "Audit"}, "Unsupported value"},
	{"an enforcer is known", "ResourceClass", map[string]string{"spec.enforcers": "[calico]"}, "Unsupported value"},
	{"an enforcer is needed", "ResourceClass", map[string]string{"spec.enforcers": "[]"}, "should have at least 1 items"},
	{"waves", "ResourceClass", map[string]string{
		"spec.rollout": "{waves: [{name: canary, clusterSelector: {matchLabels: {a: b}}, soak: 90m}, {name: all, clusterSelector: {}}]}"}, ""},
	{"a wave is needed", "ResourceClass", map[string]string{"spec.rollout": "{waves: []}"}, "should have at least 1 items"},
	{"a wave selects members", "ResourceClass", map[string]string{"spec.rollout": "{waves: [{name: all}]}"}, "Required value"},
	{"waves have names of their own", "ResourceClass", map[string]string{
		"spec.rollout": "{waves: [{name: a, clusterSelector: {}}, {name: a, clusterSelector: {}}]}"}, "Duplicate value"},
	{"a wave's name is a DNS label", "ResourceClass", map[string]string{"spec.rollout": "{waves: [{name: A, clusterSelector: {}}]}"}, pattern},
	{"a soak time is a duration", "ResourceClass", map[string]string{"spec.rollout": "{waves: [{name: a, clusterSelector: {}, soak: soon}]}"}, "soak"},
	{"a soak time is not negative", "ResourceClass", map[string]string{
		"spec.rollout": "{waves: [{name: a, clusterSelector: {}, soak: -1s}]}"}, "between 0s and 720h"},
	{"a soak time is at most 30 days", "ResourceClass", map[string]string{
		"spec.rollout": "{waves: [{name: a, clusterSelector: {}, soak: 721h}]}"}, "between 0s and 720h"},
	{"a default mode", "ResourceClass", map[string]string{"spec.defaultMode": "Enforce"}, ""},
	{"a default mode is a mode", "ResourceClass", map[string]string{"spec.defaultMode": "Closed"}, "Unsupported value"},
	{"the smallest one", "SubjectClass", nil, ""},
	{"a template with the id", "SubjectClass", map[string]string{"spec.serviceAccountTemplate": "app-{id}-sa"}, ""},
	{"a template without the id", "SubjectClass", map[string]string{"spec.serviceAccountTemplate": "app"}, "exactly once"},
	{"a template with the id twice", "SubjectClass", map[string]string{"spec.serviceAccountTemplate": q("{id}-{id}")}, "exactly once"},
}

var resources = []creation{
	{"the smallest one", "ProtectedResource", nil, ""},
	{"a wildcard is no server", "ProtectedResource", map[string]string{"spec.resource": q("trnv1:rsc:trip-com:redis:clusters:*")}, "without wildcard"},
	{"a mode is known", "ProtectedResource", map[string]string{"spec.mode": "Off"}, "Unsupported value"},
	{"a mode per member", "ProtectedResource", map[string]string{"spec.clusterModes": "[{cluster: m1, mode: Audit}]"}, ""},
	{
		"one mode per member",
		"ProtectedResource",
		map[string]string{"spec.clusterModes": "[{cluster: m1, mode: Audit}, {cluster: m1, mode: Enforce}]"},
		"Duplicate value",
	},
	{"a temporary audit", "ProtectedResource", map[string]string{"spec.temporaryAudit": `{until: "2026-01-01T00:00:00Z", reason: an outage, by: bob}`}, ""},
	{
		"a temporary audit has a reason",
		"ProtectedResource",
		map[string]string{"spec.temporaryAudit": `{until: "2026-01-01T00:00:00Z", reason: "", by: bob}`},
		"should be at least 1 chars long",
	},
	{
		"a temporary audit is somebody's",
		"ProtectedResource",
		map[string]string{"spec.temporaryAudit": `{until: "2026-01-01T00:00:00Z", reason: an outage}`},
		"Required value",
	},
	{"a temporary audit ends", "ProtectedResource", map[string]string{"spec.temporaryAudit": `{reason: an outage, by: bob}`}, "Required value"},
}

var workloads = []creation{
	{"the smallest one", "ExternalWorkload", nil, ""},
	{"prefixes of both families", "ExternalWorkload", map[string]string{"spec.addresses": `["10.0.0.0/8", "2001:db8::/32", "2001:db8::1"]`}, ""},
	{"an address is one", "ExternalWorkload", map[string]string{"spec.addresses": "[example.com]"}, "IP address or a CIDR"},
	{"a prefix is one", "ExternalWorkload", map[string]string{"spec.addresses": "[10.0.0.0/33]"}, "IP address or a CIDR"},
	{"an address is needed", "ExternalWorkload", map[string]string{"spec.addresses": "[]"}, "should have at least 1 items"},
	{"a subject is exact", "ExternalWorkload", map[string]string{"spec.subject": q("trnv1:rsc:trip-com:iam:sa:app/*")}, "without wildcard"},
}

var approvals = []creation{
	{"the smallest one", "ApprovalPolicy", nil, ""},
	{
		"every kind of approver",
		"ApprovalPolicy",
		map[string]string{"spec.steps.0.approvers": `[requester.leader, resource.owner, application.owner, "group:security", "person:bob@trip.com"]`},
		"",
	},
	{"an approver is known", "ApprovalPolicy", map[string]string{"spec.steps.0.approvers": "[anyone]"}, pattern},
	{"a group has a name", "ApprovalPolicy", map[string]string{"spec.steps.0.approvers": `["group:"]`}, pattern},
	{"an approver is needed", "ApprovalPolicy", map[string]string{"spec.steps.0.approvers": "[]"}, "should have at least 1 items"},
	{"a step is needed", "ApprovalPolicy", map[string]string{"spec.steps": "[]"}, "should have at least 1 items"},
	{"a step's name is a DNS label", "ApprovalPolicy", map[string]string{"spec.steps.0.name": "Leader"}, pattern},
	{"two of three", "ApprovalPolicy", map[string]string{"spec.steps.0": `{name: a, approvers: ["group:a"], quorum: Count, count: 2}`}, ""},
	{
		"a count without quorum Count",
		"ApprovalPolicy",
		map[string]string{"spec.steps.0": `{name: a, approvers: ["group:a"], count: 2}`},
		"count needs quorum Count",
	},
	{
		"quorum Count without count",
		"ApprovalPolicy",
		map[string]string{"spec.steps.0": `{name: a, approvers: ["group:a"], quorum: Count}`},
		"quorum Count needs count",
	},
	{"a quorum is known", "ApprovalPolicy", map[string]string{"spec.steps.0.quorum": "Most"}, "Unsupported value"},
	{"an escalation", "ApprovalPolicy", map[string]string{"spec.steps.0.timeout": `{after: 24h, action: Escalate, escalateTo: ["group:security"]}`}, ""},
	{"an escalation to nobody", "ApprovalPolicy", map[string]string{"spec.steps.0.timeout": "{after: 24h, action: Escalate}"}, "needs escalateTo"},
	{"a timeout never approves", "ApprovalPolicy", map[string]string{"spec.steps.0.timeout": "{after: 24h, action: Approve}"}, "Unsupported value"},
	{
		"reminders",
		"ApprovalPolicy",
		map[string]string{"spec.steps.0.timeout": `{after: 24h, action: Deny, remindEvery: 1h}`},
		"",
	},
	{"on call", "ApprovalPolicy", map[string]string{"spec.steps.0.limitTo": `'onCall("shop.first", 16)'`}, ""},
	{
		"on call with a fallback",
		"ApprovalPolicy",
		map[string]string{"spec.steps.0.limitTo": `'onCall("shop",1)'`, "spec.steps.0.limitFallback": "Approvers"},
		"",
	},
	{"on call in a tier", "ApprovalPolicy", map[string]string{"spec.steps.0.limitTo": `'onCall("shop")'`}, pattern},
	{"tiers begin at 1", "ApprovalPolicy", map[string]string{"spec.steps.0.limitTo": `'onCall("shop", 0)'`}, pattern},
	{"there are 16 tiers", "ApprovalPolicy", map[string]string{"spec.steps.0.limitTo": `'onCall("shop", 17)'`}, pattern},
	{"on call is no approver", "ApprovalPolicy", map[string]string{"spec.steps.0.approvers": `['onCall("shop", 1)']`}, pattern},
	{
		"two people on call",
		"ApprovalPolicy",
		map[string]string{"spec.steps.0": `{name: a, approvers: ["group:a"], quorum: All, limitTo: 'onCall("shop", 1)'}`},
		"limitTo needs quorum Any",
	},
	{"a fallback of nothing", "ApprovalPolicy", map[string]string{"spec.steps.0.limitFallback": "Wait"}, "limitFallback needs limitTo"},
	{
		"a fallback never approves",
		"ApprovalPolicy",
		map[string]string{"spec.steps.0.limitTo": `'onCall("shop", 1)'`, "spec.steps.0.limitFallback": "Approve"},
		"Unsupported value",
	},
	{"denies", "ApprovalPolicy", map[string]string{"spec.denyAutoApprove": `["true", "request.permanent"]`}, ""},
	{"an empty deny", "ApprovalPolicy", map[string]string{"spec.denyAutoApprove": `[""]`}, "should be at least 1 chars long"},
	{"a priority is not negative", "ApprovalPolicy", map[string]string{"spec.priority": "-1"}, "greater than or equal to 0"},
	{
		"break glass for named people",
		"ApprovalPolicy",
		map[string]string{"spec.breakGlass": `{people: [dave], maxDuration: 4h, reviewers: ["group:security"]}`},
		"",
	},
	{
		"break glass is reviewed",
		"ApprovalPolicy",
		map[string]string{"spec.breakGlass": `{people: [dave], maxDuration: 4h, reviewers: []}`},
		"should have at least 1 items",
	},
}

var organizations = []creation{
	{"the smallest one", "Organization", nil, ""},
	{"all bounds", "Organization", map[string]string{"spec.bounds": `{classes: {patterns: ["trnv1:rsc:trip-com:redis:clusters:*"], labelKeys: [com.trip/redis],
enforcers: [cilium], sensitivities: [low], actions: ["redis:*"], defaultModes: [Audit]}, approvals: {maxDuration: 1h}}`}, ""},
	{"a part of the catalog", "Organization", map[string]string{"spec.bounds": `{catalog: {patterns: ["trnv1:rsc:trip-com:redis:clusters:*"],
kinds: [application, resource], sensitivities: [low], environments: [test]}}`}, ""},
	{"groups are not delegated", "Organization", map[string]string{"spec.bounds": `{catalog: {patterns: ["trnv1:rsc:trip-com:redis:clusters:*"],
kinds: [group]}}`}, "Unsupported value"},
	{"resources need sensitivities", "Organization", map[string]string{"spec.bounds": `{catalog: {patterns: ["trnv1:rsc:trip-com:redis:clusters:*"],
kinds: [resource]}}`}, "set sensitivities if kinds contains resource"},
	{"bounds on members are of names or labels", "Organization", map[string]string{"spec.bounds": `{classes: {clusters: {},
patterns: ["trnv1:rsc:trip-com:redis:clusters:*"], labelKeys: [a], enforcers: [cilium], sensitivities: [low]}}`}, "set names, matchLabels or both"},
	{"a team is needed", "Organization", map[string]string{"spec.teams": "[]"}, "should have at least 1 items"},
	{"an administrator is needed", "Organization", map[string]string{"spec.administrators": "[]"}, "should have at least 1 items"},
	{"an administrator is a person or a group", "Organization", map[string]string{"spec.administrators": "[resource.owner]"}, pattern},
	{"classes need labels", "Organization", map[string]string{"spec.bounds": `{classes: {patterns: ["trnv1:rsc:trip-com:redis:clusters:*"], labelKeys: [],
enforcers: [cilium], sensitivities: [low]}}`}, "should have at least 1 items"},
	{"a sensitivity is known", "Organization", map[string]string{"spec.bounds": `{classes: {patterns: ["trnv1:rsc:trip-com:redis:clusters:*"], labelKeys: [a],
enforcers: [cilium], sensitivities: [none]}}`}, "Unsupported value"},
	{"the class of an organization", "ResourceClass", map[string]string{"spec.organization": "shop"}, ""},
	{"the policy of an organization", "ApprovalPolicy", map[string]string{"spec.organization": "shop", "spec.replaceOwners": "true"}, ""},
	{"owners are replaced in an organization only", "ApprovalPolicy", map[string]string{"spec.replaceOwners": "true"}, "replaceOwners needs organization"},
}

var members = []creation{
	{"the smallest one", "MemberCluster", nil, ""},
	{"nothing is asked by it", "MemberCluster", map[string]string{"spec": ""}, ""},
}

// standing are statuses of MemberClusters.
var standing = []creation{
	{"nothing is known yet", "MemberCluster", map[string]string{"status": "{}"}, ""},
	{"everything is known", "MemberCluster", map[string]string{"status": `
state: Quarantined
since: "2026-01-01T00:00:00Z"
message: it does not serve ciliumcidrgroups.cilium.io in version v2
kubernetesVersion: v1.36.3
ciliumVersion: v1.20.2
istioVersion: 1.31.1
findings:
- {code: KindMissing, severity: Stops, message: install the kind}
- {code: LabelNotInIdentities, severity: Fails, message: add the label, object: redis}
identities: {used: 10, limit: 65280, labels: [{key: com.trip/appid, values: 7}], observedAt: "2026-01-01T00:00:00Z"}
objects: {managed: 6, realized: 1, pending: 2, drifted: 1, leaked: 1, overridden: 1}
policyMap: {highest: 100, limit: 16384, unit: "trnv1:rsc:trip-com:redis:clusters:bobs"}
guard: Changed
downgrade: {since: "2026-01-01T00:00:00Z", by: bob, reason: an outage}
observedAt: "2026-01-01T00:00:00Z"`}, ""},
	{"a state is known", "MemberCluster", map[string]string{"status": "{state: Fine}"}, "Unsupported value"},
	{"a guard's state is known", "MemberCluster", map[string]string{"status": "{guard: Asleep}"}, "Unsupported value"},
	{"a severity is known", "MemberCluster", map[string]string{"status": "{findings: [{code: A, severity: Bad, message: m}]}"}, "Unsupported value"},
	{
		"a finding has a code",
		"MemberCluster",
		map[string]string{"status": `{findings: [{code: "", severity: Warns, message: m}]}`},
		"should be at least 1 chars long",
	},
	{
		"findings are bounded",
		"MemberCluster",
		map[string]string{"status": "{findings: [" + strings.Repeat("{code: A, severity: Warns, message: m},", 65) + "]}"},
		"must have at most 64 items",
	},
	{
		"ten labels at most",
		"MemberCluster",
		map[string]string{
			"status": "{identities: {used: 1, limit: 2, observedAt: '2026-01-01T00:00:00Z', labels: [" + numbered(11, "{key: k%d, values: 1}") + "]}}",
		},
		"must have at most 10 items",
	},
	{
		"a label once",
		"MemberCluster",
		map[string]string{
			"status": "{identities: {used: 1, limit: 2, observedAt: '2026-01-01T00:00:00Z', labels: [{key: k, values: 1}, {key: k, values: 2}]}}",
		},
		"Duplicate value",
	},
	{
		"no fewer than none",
		"MemberCluster",
		map[string]string{"status": "{objects: {managed: -1, realized: 0, pending: 0, drifted: 0, leaked: 0, overridden: 0}}"},
		"greater than or equal to 0",
	},
	{"all are counted, or none", "MemberCluster", map[string]string{"status": "{objects: {managed: 1}}"}, "Required value"},
}

var requests = []creation{
	{"the smallest one", "AccessRequest", map[string]string{"spec.duration": ""}, ""},
	{"with all fields", "AccessRequest", map[string]string{"spec.requestedBy": "alice", "spec.onDelete": "Keep"}, ""},
	{"access is needed", "AccessRequest", map[string]string{"spec.access": "[]"}, "should have at least 1 items"},
	{
		"a resource is named once",
		"AccessRequest",
		map[string]string{"spec.access": `[{resource: "trnv1:rsc:a:b:c:d", actions: ["a:b"]}, {resource: "trnv1:rsc:a:b:c:d", actions: ["a:c"]}]`},
		"Duplicate value",
	},
	{"a resource is no wildcard", "AccessRequest", map[string]string{"spec.access.0.resource": q("trnv1:rsc:a:b:c:*")}, "without wildcard"},
	{"an action is no wildcard", "AccessRequest", map[string]string{"spec.access.0.actions.0": q("redis:*")}, "without wildcard"},
	{"an action is needed", "AccessRequest", map[string]string{"spec.access.0.actions": "[]"}, "should have at least 1 items"},
	{
		"at most 32 actions",
		"AccessRequest",
		map[string]string{"spec.access.0.actions": "[" + numbered(33, "a:b%d") + "]"},
		"must have at most 32 items",
	},
	{
		"at most 20 resources",
		"AccessRequest",
		map[string]string{"spec.access": "[" + numbered(21, `{resource: "trnv1:rsc:a:b:c:%d", actions: ["a:b"]}`) + "]"},
		"must have at most 20 items",
	},
	{"a reason is needed", "AccessRequest", map[string]string{"spec.reason": ""}, "Required value"},
	{"a reason is not blank", "AccessRequest", map[string]string{"spec.reason": q("  ")}, "must not be blank"},
	{"a reason is at most 2000 characters", "AccessRequest", map[string]string{"spec.reason": strings.Repeat("r", 2001)}, tooLong},
	{"a duration is not too short", "AccessRequest", map[string]string{"spec.duration": "4m59s"}, "between 5m and 8784h"},
	{"a duration is not too long", "AccessRequest", map[string]string{"spec.duration": "8784h1s"}, "between 5m and 8784h"},
	{"a duration is positive", "AccessRequest", map[string]string{"spec.duration": q("-1h")}, pattern},
	{"a duration has a unit", "AccessRequest", map[string]string{"spec.duration": q("30d")}, pattern},
	{"a duration does not overflow", "AccessRequest", map[string]string{"spec.duration": "99999999999999999999h"}, "spec.duration"},
	{"what happens at the deletion is known", "AccessRequest", map[string]string{"spec.onDelete": "Forget"}, "Unsupported value"},
	{"an author has at most 256 characters", "AccessRequest", map[string]string{"spec.requestedBy": strings.Repeat("a", 257)}, tooLong},
}

// numbered are n list items of a format with a number.
func numbered(n int, format string) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(format, i))
	}
	return strings.Join(out, ", ")
}
