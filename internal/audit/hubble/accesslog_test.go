package hubble

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/policy"
)

// accessLine returns an entry in the format of docs/flows.md: app/888 calls the resource fraud. A change to nil removes a field.
func accessLine(change map[string]any) string {
	x := map[string]any{
		"start_time": "2026-11-02T09:00:00.250Z", "duration": 40, "method": "POST", "path": "/fraud.Check/Score", "response_code": 200,
		"response_code_details": "via_upstream", "connection_termination_details": nil, "upstream_cluster": "inbound|9090||",
		"downstream_local_address": "10.0.0.2:9090", "downstream_direct_remote_address": "10.0.0.1:40000",
		"source_principal": "spiffe://cluster.local/ns/apps/sa/app-888", "destination_pod": "fraud-0", "destination_namespace": "risk",
		"destination_labels": map[string]any{"com.trip/grpc-service": "fraud", "com.trip/redis-cluster": "-"},
		"dry_run":            map[string]any{"http_allow": nil, "http_deny": "-"}, "audit_hint": "-",
	}
	maps.Copy(x, change)
	maps.DeleteFunc(x, func(_ string, v any) bool { return v == nil })
	out, err := json.Marshal(x)
	if err != nil {
		panic(err)
	}
	return string(out)
}

const fraud = "trnv1:rsc:trip-com:grpc:services:fraud"

// meshed returns policies of a member with sidecars: app/888 may call the resource fraud, which these enforcers enforce in a mode.
func meshed(mode v1alpha1.Mode, enforcers ...v1alpha1.EnforcerName) *policy.Snapshot {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	port := []v1alpha1.Port{{Port: 9090, Protocol: v1alpha1.ProtocolTCP}}
	web := []v1alpha1.Port{{Port: 8080, Protocol: v1alpha1.ProtocolTCP}}
	fleet := registry.FleetOf([]*v1alpha1.MemberCluster{{ObjectMeta: named("m1"),
		Status: v1alpha1.MemberClusterStatus{State: v1alpha1.MemberClusterReady, Istio: `{"dataplane": "sidecar", "version": "1.31.0", "strictMTLS": true}`}}})
	return policy.NewSnapshot(policy.NewInput(policy.Objects{
		ResourceClasses: []*v1alpha1.ResourceClass{{ObjectMeta: named("grpc"), Spec: v1alpha1.ResourceClassSpec{
			Pattern: "trnv1:rsc:trip-com:grpc:services:*", LabelKey: "com.trip/grpc-service", Enforcers: enforcers,
			Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}},
			Actions: []v1alpha1.ClassAction{
				{Name: "grpc:call", Ports: port},
				{Name: "grpc:read", Ports: web, HTTP: []v1alpha1.HTTPMatch{{Method: "GET", Path: "/x"}}},
			},
		}}},
		SubjectClasses: []*v1alpha1.SubjectClass{{ObjectMeta: named("applications"), Spec: v1alpha1.SubjectClassSpec{
			Pattern: "trnv1:rsc:trip-com:iam:sa:app/*", LabelKey: "com.trip/appid", ServiceAccountTemplate: "app-{id}"}}},
		Resources: []*v1alpha1.ProtectedResource{{ObjectMeta: named("fraud"), Spec: v1alpha1.ProtectedResourceSpec{Resource: fraud, Mode: mode}}},
		Policies: []*v1alpha1.AccessControlPolicy{{ObjectMeta: named("p"), Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{{
			SID: "call", Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{app888},
			Actions: []v1alpha1.Action{"grpc:call", "grpc:read"}, Resources: []v1alpha1.ResourceName{fraud},
		}}}}},
	}, fleet))
}

// TestAccessLog checks how an entry is counted: its ends, the decision, and Istio's verdict.
func TestAccessLog(t *testing.T) {
	const (
		allowed  = policy.Allowed
		closed   = policy.DefaultDenied
		audited  = policy.Audited
		app889   = "trnv1:rsc:trip-com:iam:sa:app/889"
		denied   = "rbac_access_denied_matched_policy[none]"
		enforce  = v1alpha1.ModeEnforce
		auditing = v1alpha1.ModeAudit
		istio    = v1alpha1.EnforcerIstio
		cilium   = v1alpha1.EnforcerCilium
	)
	by := func(account string) string { return "spiffe://cluster.local/ns/apps/sa/" + account }
	ruleOf := func(suffix string) string {
		return "ns[istio-system]-policy[acp-" + policy.UnitID(fraud) + suffix + "]-rule[0]"
	}
	edge := func(decision policy.Verdict, verdict audit.Verdict, change ...func(*audit.Edge)) *audit.Edge {
		e := &audit.Edge{
			Cluster:  "m1",
			Subject:  app888,
			Resource: fraud,
			Action:   "grpc:call",
			Port:     9090,
			Protocol: "TCP",
			Decision: decision,
			Verdict:  verdict,
		}
		if decision == allowed {
			e.Statement = policy.Ref{Policy: "p", SID: "call"}
		}
		for _, c := range change {
			c(e)
		}
		return e
	}
	from := func(subject, source string) func(*audit.Edge) {
		return func(e *audit.Edge) { e.Subject, e.Source = subject, source }
	}
	for name, tc := range map[string]struct {
		reason    string
		mode      v1alpha1.Mode
		enforcers []v1alpha1.EnforcerName
		beside    bool
		change    map[string]any
		want      *audit.Edge
	}{
		"Allowed": {"a request that passes", enforce, []v1alpha1.EnforcerName{istio}, false, nil, edge(allowed, audit.VerdictForwarded)},
		"Refused": {"an AuthorizationPolicy refuses the request", enforce, []v1alpha1.EnforcerName{istio}, true,
			map[string]any{"source_principal": by("app-889"), "response_code_details": denied, "upstream_cluster": nil},
			edge(closed, audit.VerdictDropped, from(app889, ""))},
		"RefusedConnection": {"TCP has no request", enforce, []v1alpha1.EnforcerName{istio}, true,
			map[string]any{"source_principal": by("app-889"), "method": nil, "path": "-", "response_code_details": nil, "upstream_cluster": "-",
				"connection_termination_details": denied},
			edge(closed, audit.VerdictDropped, from(app889, ""))},
		"Disagrees": {"Istio lets through what the policies refuse", enforce, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"source_principal": by("app-889")}, edge(closed, audit.VerdictForwarded, from(app889, ""))},
		"OtherAccount": {"no class has a name for the account", enforce, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"source_principal": by("default"), "response_code_details": denied},
			edge(closed, audit.VerdictDropped, from("", "namespace=apps,serviceaccount=default"))},
		"PlainText": {"without a certificate, there is only the address", enforce, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"source_principal": "-", "response_code_details": denied}, edge(closed, audit.VerdictDropped, from("", "10.0.0.0/24"))},
		"OtherCertificate": {"a certificate that is not of a service account", enforce, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"source_principal": "spiffe://partner/service", "response_code_details": denied},
			edge(closed, audit.VerdictDropped, from("", "reserved:unknown"))},
		"TwoNames": {"several identities in one certificate", enforce, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"source_principal": by("app-888") + "," + by("app-889"), "response_code_details": denied},
			edge(closed, audit.VerdictDropped, from("", "reserved:unknown"))},
		"DryRun": {"a policy in dry-run would have refused it", auditing, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"source_principal": by("app-889"), "dry_run": map[string]any{"http_allow": "denied"}},
			edge(audited, audit.VerdictAudit, from(app889, ""))},
		"DryRunPasses": {"a policy in dry-run would have let it through", auditing, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"dry_run": map[string]any{"http_allow": "allowed"}}, edge(allowed, audit.VerdictForwarded)},
		"AuditMissed": {"no AUDIT policy matches, and the resource is in Audit", auditing, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"source_principal": by("app-889"), "audit_hint": false}, edge(audited, audit.VerdictAudit, from(app889, ""))},
		"AuditMissedConnection": {"Envoy reports no rules of connections", auditing, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"source_principal": by("app-889"), "audit_hint": "false", "method": nil, "path": "-", "response_code_details": nil},
			edge(audited, audit.VerdictAudit, from(app889, ""))},
		"AuditMatched": {"an AUDIT policy matches, and it is unknown which", auditing, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"source_principal": by("app-889"), "audit_hint": "true"}, edge(audited, audit.VerdictForwarded, from(app889, ""))},
		"AuditMatchedByAllow": {"the proxy would let it through", auditing, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"source_principal": by("app-889"), "audit_hint": true, "effective_rule": ruleOf("")},
			edge(audited, audit.VerdictForwarded, from(app889, ""))},
		"AuditMatchedByDeny": {"the proxy would refuse it", auditing, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"source_principal": by("app-889"), "audit_hint": true, "effective_rule": ruleOf("-deny")},
			edge(audited, audit.VerdictAudit, from(app889, ""))},
		"AuditMissedAndAllowed": {"an ALLOW policy of others lets it in, also in Enforce", auditing, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"source_principal": by("app-889"), "audit_hint": false, "effective_rule": "ns[risk]-policy[ours]-rule[0]"},
			edge(audited, audit.VerdictForwarded, from(app889, ""))},
		"AuditAbsent": {"the proxy has no AUDIT policies", auditing, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"source_principal": by("app-889"), "effective_rule": nil}, edge(audited, audit.VerdictForwarded, from(app889, ""))},
		"AuditNotLogged": {"the format lacks the field", auditing, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"source_principal": by("app-889"), "audit_hint": nil}, edge(audited, audit.VerdictForwarded, from(app889, ""))},
		"AuditContradicts": {"the policies allow what the proxy would refuse", auditing, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"audit_hint": "false", "effective_rule": "-"}, edge(allowed, audit.VerdictAudit)},
		"AuditContradictsByDeny": {"the policies allow what a deny of the proxy matches", auditing, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"audit_hint": "true", "effective_rule": ruleOf("-deny-2")}, edge(allowed, audit.VerdictAudit)},
		"AuditInconclusive": {"without the rule, an ALLOW policy of others may let it in", auditing, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"audit_hint": "false"}, edge(allowed, audit.VerdictForwarded)},
		"AuditOfConnection": {"for a connection, the rule is never known", auditing, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"audit_hint": "false", "effective_rule": "-", "method": nil, "path": "-", "response_code_details": nil},
			edge(allowed, audit.VerdictForwarded)},
		"AuditAgrees": {"an allow matches", auditing, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"audit_hint": "true", "effective_rule": ruleOf("")}, edge(allowed, audit.VerdictForwarded)},
		"AuditOfOthers": {"AUDIT policies of others mean nothing if only Cilium enforces the resource", auditing, []v1alpha1.EnforcerName{cilium}, false,
			map[string]any{"source_principal": by("app-889"), "audit_hint": "false", "effective_rule": "-"},
			edge(audited, audit.VerdictForwarded, from(app889, ""))},
		"OthersAudit": {"AUDIT policies of others mean nothing in Enforce", enforce, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"audit_hint": "false", "effective_rule": "-"}, edge(allowed, audit.VerdictForwarded)},
		"OthersAuditDisagrees": {"they do not hide that Istio lets through what the policies refuse", enforce, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"source_principal": by("app-889"), "audit_hint": "false", "effective_rule": "-"},
			edge(closed, audit.VerdictForwarded, from(app889, ""))},
		"RefusedBesideAudit": {"a refusal stays one, whatever AUDIT policies report", auditing, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"source_principal": by("app-889"), "audit_hint": "true", "response_code_details": denied, "effective_rule": ruleOf("")},
			edge(audited, audit.VerdictDropped, from(app889, ""))},
		"Request": {"the port has actions about requests", enforce, []v1alpha1.EnforcerName{istio}, true,
			map[string]any{"downstream_local_address": "10.0.0.2:8080", "method": "GET", "path": "/x?y"},
			edge(allowed, audit.VerdictForwarded, func(e *audit.Edge) { e.Port, e.Protocol, e.Action = 8080, "HTTP", "grpc:read" })},
		"Both": {"Hubble counts what passes", enforce, []v1alpha1.EnforcerName{cilium, istio}, true, nil, nil},
		"BothRefused": {"only Istio reports what it refuses", enforce, []v1alpha1.EnforcerName{cilium, istio}, true,
			map[string]any{"source_principal": by("app-889"), "response_code_details": denied}, edge(closed, audit.VerdictDropped, from(app889, ""))},
		"BothWithoutHubble": {"nothing else counts it", enforce, []v1alpha1.EnforcerName{cilium, istio}, false, nil, edge(allowed, audit.VerdictForwarded)},
		"NoResource":        {"Hubble counts it", enforce, []v1alpha1.EnforcerName{istio}, true, map[string]any{"destination_labels": nil}, nil},
		"NoResourceWithoutHubble": {"nothing else counts it", enforce, []v1alpha1.EnforcerName{istio}, false, map[string]any{"destination_labels": nil},
			edge(policy.Unmanaged, audit.VerdictForwarded, func(e *audit.Edge) { e.Resource, e.Action, e.Destination = "", "", "namespace=risk" })},
		"Outgoing": {"the proxy of the client reports it, too", enforce, []v1alpha1.EnforcerName{istio}, false,
			map[string]any{"upstream_cluster": "outbound|9090||fraud.risk.svc.cluster.local"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := newMemorySink()
			cfg := config("unused", l)
			cfg.Policies, cfg.Lines, cfg.AccessLog, cfg.BesideHubble = always(meshed(tc.mode, tc.enforcers...)), &lineList{}, true, tc.beside
			in := ingesterOf(t, &cfg, audit.Resume{})
			s := scannedLine{line: []byte(accessLine(tc.change))}
			s.err = scanAccessLine(s.line, &s.event)
			in.ingestAccessLine(&s)
			want := map[audit.Edge]int64{}
			if tc.want != nil {
				want[*tc.want] = 1
			}
			if diff := cmp.Diff(want, l.edges); diff != "" || len(l.losses) > 0 {
				t.Errorf("%s: (-want +got):\n%s%v", tc.reason, diff, l.losses)
			}
		})
	}
}

// TestUnreadableAccessLog checks what is a loss, and what is no entry.
func TestUnreadableAccessLog(t *testing.T) {
	labels := map[string]string{}
	for i := range maxDestinationLabels + 1 {
		labels[fmt.Sprint("k", i)] = "v"
	}
	for name, tc := range map[string]struct {
		line string
		want error
	}{
		"Message":   {"2026-11-02T10:00:00.000000Z\tinfo\tEnvoy proxy is ready", errNotAccess},
		"Empty":     {"", errNotAccess},
		"OtherJSON": {`{"level": "info", "msg": "ready"}`, errNotAccess},
		"Outgoing":  {accessLine(map[string]any{"upstream_cluster": "PassthroughCluster"}), errNotAccess},
		"Truncated": {accessLine(nil)[:200], errUnreadable},
		"NoTime":    {accessLine(map[string]any{"start_time": nil}), errUnreadable},
		"Duration":  {accessLine(map[string]any{"duration": -1}), errUnreadable},
		"Address":   {accessLine(map[string]any{"downstream_local_address": "envoy://connect_originate/"}), errUnreadable},
		"Remote":    {accessLine(map[string]any{"downstream_direct_remote_address": nil}), errUnreadable},
		"DefaultFormat": {
			accessLine(map[string]any{"downstream_direct_remote_address": nil, "downstream_remote_address": "10.0.0.1:40000"}), errUnreadable,
		},
		"ManyLabels":  {accessLine(map[string]any{"destination_labels": labels}), errUnreadable},
		"LabelObject": {accessLine(map[string]any{"destination_labels": map[string]any{"k": map[string]any{}}}), errUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			if err := scanAccessLine([]byte(tc.line), &event{}); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

// TestAccessLogIsDecidedByItsBeginning checks that the policies of the time at which a connection was opened decide, while the
// position follows the time at which its entry was written.
func TestAccessLogIsDecidedByItsBeginning(t *testing.T) {
	l := newMemorySink()
	cfg := config("unused", l)
	began := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	cfg.Policies = fixed{[]audit.Epoch{
		{Evaluator: meshed(v1alpha1.ModeEnforce, v1alpha1.EnforcerIstio), Since: began.Add(time.Minute)},
		{Evaluator: meshed(v1alpha1.ModeAudit, v1alpha1.EnforcerIstio)},
	}}
	cfg.Lines, cfg.AccessLog = &lineList{}, true
	in := ingesterOf(t, &cfg, audit.Resume{})
	s := scannedLine{line: []byte(accessLine(map[string]any{"start_time": "2026-11-02T09:00:00Z", "duration": "120000",
		"source_principal": "spiffe://cluster.local/ns/apps/sa/app-889"}))}
	s.err = scanAccessLine(s.line, &s.event)
	in.ingestAccessLine(&s)
	for e := range l.edges {
		if e.Decision != policy.Audited || e.Disagrees() {
			t.Errorf("decided by the policies of the end: %+v", e)
		}
	}
	if len(l.edges) != 1 || !l.resume.Position.Equal(began.Add(2*time.Minute)) {
		t.Errorf("position %s, edges %v", l.resume.Position, l.edges)
	}
}

// TestAuditOfLaggingMember checks that AUDIT policies show nothing while the member does not have the current policies of the resource.
func TestAuditOfLaggingMember(t *testing.T) {
	policies := meshed(v1alpha1.ModeAudit, v1alpha1.EnforcerIstio)
	for name, tc := range map[string]struct {
		lags audit.Lags
		want audit.Verdict
	}{
		"Current": {nil, audit.VerdictAudit},
		"Before":  {audit.Lags{fraud: {{Kind: audit.LagUnknown, From: t0.Add(-2 * time.Hour), Until: t0.Add(-time.Hour)}}}, audit.VerdictAudit},
		"Unknown": {audit.Lags{fraud: {{Kind: audit.LagUnknown}}}, audit.VerdictForwarded},
		"Older":   {audit.Lags{fraud: {{Kind: audit.LagOlder, Has: policies}}}, audit.VerdictForwarded},
		"Nothing": {audit.Lags{fraud: {{Kind: audit.LagNothing}}}, audit.VerdictForwarded},
		"Open":    {audit.Lags{fraud: {{Kind: audit.LagOpen}}}, audit.VerdictForwarded},
	} {
		t.Run(name, func(t *testing.T) {
			l := newMemorySink()
			cfg := config("unused", l)
			cfg.Policies, cfg.Lines, cfg.AccessLog = always(policies), &lineList{}, true
			cfg.Lags = func(string) audit.Lags { return tc.lags }
			in := ingesterOf(t, &cfg, audit.Resume{})
			s := scannedLine{line: []byte(accessLine(map[string]any{"audit_hint": false, "effective_rule": "-", "start_time": t0.Format(time.RFC3339Nano),
				"source_principal": "spiffe://cluster.local/ns/apps/sa/app-889"}))}
			s.err = scanAccessLine(s.line, &s.event)
			in.ingestAccessLine(&s)
			for e := range l.edges {
				if e.Verdict != tc.want {
					t.Errorf("got %s, want %s", e.Verdict, tc.want)
				}
			}
			if len(l.edges) != 1 {
				t.Errorf("edges %v", l.edges)
			}
		})
	}
}

// FuzzAccessLine checks that no line counts twice, or for another member, or for more than one connection, that a refusal stays one, and that
// no connection is audited about which the line contains nothing of policies in Audit.
func FuzzAccessLine(f *testing.F) {
	f.Add([]byte(accessLine(nil)))
	f.Add([]byte(accessLine(map[string]any{"response_code_details": "rbac_access_denied_matched_policy[none]", "upstream_cluster": nil})))
	f.Add([]byte(accessLine(map[string]any{"source_principal": "-", "method": nil, "duration": "7"})))
	for _, hint := range []any{true, false, "true", "false", "-", nil} {
		for _, rule := range []any{"ns[istio-system]-policy[acp-" + policy.UnitID(fraud) + "-deny]-rule[0]", "ns[risk]-policy[ours]-rule[0]", "-", nil} {
			f.Add([]byte(accessLine(map[string]any{"audit_hint": hint, "effective_rule": rule,
				"source_principal": "spiffe://cluster.local/ns/apps/sa/app-889"})))
		}
	}
	f.Add([]byte(accessLine(map[string]any{"audit_hint": "true", "response_code_details": "rbac_access_denied_matched_policy[none]"})))
	f.Add([]byte(`{"start_time": "2026-11-02T09:00:00Z", "audit_hint": {}, "effective_rule": []}`))
	f.Add([]byte(`{"start_time": 1, "downstream_local_address": {}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := newMemorySink()
		cfg := config("unused", l)
		cfg.Policies, cfg.Lines, cfg.AccessLog = always(meshed(v1alpha1.ModeAudit, v1alpha1.EnforcerIstio)), &lineList{}, true
		in := ingesterOf(t, &cfg, audit.Resume{})
		var s scannedLine
		for range 2 {
			s = scannedLine{line: b}
			s.err = scanAccessLine(b, &s.event)
			in.ingestAccessLine(&s)
		}
		if l.total() > 1 {
			t.Errorf("%d connections", l.total())
		}
		for e := range l.edges {
			if e.Cluster != "m1" || len(e.Source) > 600 || len(e.Destination) > 600 {
				t.Errorf("edge %+v", e)
			}
			if refused := s.event.verdict == flowpb.Verdict_DROPPED; refused != (e.Verdict == audit.VerdictDropped) {
				t.Errorf("refused %v: %+v", refused, e)
			}
			if e.Verdict == audit.VerdictAudit && s.event.audit == nil && s.event.verdict != flowpb.Verdict_AUDIT {
				t.Errorf("audited: %+v", e)
			}
		}
	})
}
