package change

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/policy"
)

const (
	app   = "trnv1:rsc:trip-com:iam:sa:app/888"
	redis = "trnv1:rsc:trip-com:redis:clusters:bobs-cluster"
)

var at = time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)

func input() policy.Input {
	return policy.Input{
		ResourceClasses: []*v1alpha1.ResourceClass{{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{Pattern: "trnv1:rsc:trip-com:redis:clusters:*",
			LabelKey: "com.trip/redis-cluster", Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: "TCP"}}}},
			Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}, Enforcers: []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium}}}},
		SubjectClasses: []*v1alpha1.SubjectClass{{ObjectMeta: metav1.ObjectMeta{Name: "application"}, Spec: v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:trip-com:iam:sa:app/*", LabelKey: "com.trip/appid"}}},
		Resources:      []*v1alpha1.ProtectedResource{{ObjectMeta: metav1.ObjectMeta{Name: "bobs-cluster"}, Spec: v1alpha1.ProtectedResourceSpec{Resource: redis, Mode: v1alpha1.ModeEnforce}}},
	}
}

func grant(sid string) approval.Item {
	return approval.Item{Application: "app-888", ApplicationName: app, Resource: "bobs-cluster", ResourceName: redis, Actions: []string{"redis:connect"}, SID: sid}
}

func view(in policy.Input, kind approval.Kind, items ...approval.Item) View {
	return Of(policy.NewSnapshot(in), in, nil, kind, items, at)
}

func raw(t *testing.T, v any) json.RawMessage {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func kinds(v View) string {
	var out []string
	for _, o := range v.Objects {
		out = append(out, o.Layer+"/"+o.Kind)
	}
	return strings.Join(out, " ")
}

func TestGrant(t *testing.T) {
	in := input()
	v := view(in, approval.KindGrant, grant("t-1-1"))
	if kinds(v) != "acp/AccessControlPolicy dataplane/CiliumClusterwideNetworkPolicy" || len(v.Refused) != 0 || v.Message != "" {
		t.Fatalf("%s %v %s", kinds(v), v.Refused, v.Message)
	}
	if o := v.Objects[0]; o.Before != "" || !strings.Contains(o.After, app) {
		t.Errorf("the policy is new: %+v", o)
	}
	if o := v.Objects[1]; o.Enforcer != "cilium" || strings.Contains(o.Before, "888") || !strings.Contains(o.Before, "ingress") || !strings.Contains(o.After, `"888"`) {
		t.Errorf("the enforced resource is closed before, and lets the application in after:\n%s\n%s", o.Before, o.After)
	}
	if len(in.Policies) != 0 {
		t.Error("the input is not changed")
	}

	// The view of a ticket that is in force is the same, and that of its revocation is the opposite.
	in.Policies = []*v1alpha1.AccessControlPolicy{{ObjectMeta: metav1.ObjectMeta{Name: policy.PolicyNameFor(redis)},
		Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{approval.Statement(grant("t-1-1"))}}}}
	again := view(in, approval.KindGrant, grant("t-1-1"))
	if fmt.Sprint(again) != fmt.Sprint(v) {
		t.Errorf("once it is written:\n%+v\nbefore that:\n%+v", again, v)
	}
	end := grant("t-2-1")
	end.Target = &approval.Target{Ticket: 1, Item: 0}
	revoke := view(in, approval.KindRevoke, end)
	for i, o := range revoke.Objects {
		if o.Before != v.Objects[i].After || o.After != v.Objects[i].Before {
			t.Errorf("revoking is the opposite of granting: %+v", o)
		}
	}
	if len(revoke.Objects) != 2 {
		t.Errorf("%s", kinds(revoke))
	}
}

func TestModes(t *testing.T) {
	in := input()
	in.Resources[0].Spec.Mode = v1alpha1.ModeAudit
	base := in.Resources[0].Spec
	enforce := base
	enforce.Mode = v1alpha1.ModeEnforce
	enforce.ClusterModes = []v1alpha1.ClusterMode{{Cluster: "m2", Mode: v1alpha1.ModeAudit}}
	for name, tc := range map[string]struct {
		reason        string
		before, after any
		want          string
	}{
		"stricter":  {"but for one member, which gets a spec of its own", base, enforce, "acp/ProtectedResource dataplane/CiliumClusterwideNetworkPolicy"},
		"offboard":  {"the dataplane's object goes", base, nil, "acp/ProtectedResource dataplane/CiliumClusterwideNetworkPolicy"},
		"unchanged": {"nothing reaches a dataplane", base, base, "acp/ProtectedResource"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &approval.Change{Kind: "ProtectedResource", Name: "bobs-cluster", Before: raw(t, tc.before)}
			if tc.after != nil {
				c.After = raw(t, tc.after)
			}
			v := view(in, approval.KindMode, approval.Item{ResourceName: redis, Change: c})
			if !strings.HasPrefix(kinds(v), tc.want) || v.Message != "" {
				t.Errorf("%s: %s %s", tc.reason, kinds(v), v.Message)
			}
			if last := v.Objects[len(v.Objects)-1]; name == "offboard" && (last.Before == "" || last.After != "") {
				t.Errorf("%s: %+v", tc.reason, last)
			}
		})
	}
}

func TestClassesAndOthers(t *testing.T) {
	in := input()
	for i := range mostUnits + 5 {
		name := fmt.Sprintf("r%03d", i)
		in.Resources = append(in.Resources, &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName("trnv1:rsc:trip-com:redis:clusters:" + name), Mode: v1alpha1.ModeEnforce}})
	}
	wide := in.ResourceClasses[0].Spec
	wide.OtherPorts = v1alpha1.OtherPortsAllow
	v := view(in, approval.KindClass, approval.Item{Change: &approval.Change{Kind: "ResourceClass", Name: "redis", Before: raw(t, in.ResourceClasses[0].Spec), After: raw(t, wide)}})
	if len(v.Objects) != 1+mostUnits || !strings.Contains(v.Message, "36 resources") {
		t.Errorf("a class changes all its resources, of which some are shown: %d, %s", len(v.Objects), v.Message)
	}
	v = view(in, approval.KindApprovalPolicy, approval.Item{Change: &approval.Change{Kind: "ApprovalPolicy", Name: "p", After: raw(t, map[string]any{"priority": 1})}})
	if kinds(v) != "acp/ApprovalPolicy" {
		t.Errorf("an approval policy reaches no dataplane: %s", kinds(v))
	}
	v = view(in, approval.KindClass, approval.Item{Change: &approval.Change{Kind: "ResourceClass", Name: "redis", After: json.RawMessage(`{"actions":7}`)}})
	if v.Message == "" {
		t.Error("a spec that cannot be read is said")
	}
	bad := grant("t-1-1")
	bad.ApplicationName = "trnv1:rsc:trip-com:iam:sa:robot/1"
	if v := view(input(), approval.KindGrant, bad); len(v.Refused) == 0 {
		t.Error("what no dataplane could enforce is said")
	}
}

func TestLargePolicy(t *testing.T) {
	in := input()
	p := &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: policy.PolicyNameFor(redis)}}
	for i := range mostStatements + 10 {
		p.Spec.Statements = append(p.Spec.Statements, approval.Statement(grant(fmt.Sprintf("s-%d", i))))
	}
	in.Policies = []*v1alpha1.AccessControlPolicy{p}
	o := view(in, approval.KindGrant, grant("t-1-1")).Objects[0]
	if strings.Count(o.After, "sid:") != 1 || !strings.Contains(o.After, "beside 50 statements") || strings.Count(o.Before, "sid:") != 0 {
		t.Errorf("of a large policy only what changes is shown:\n%s\n%s", o.Before, o.After)
	}
	if len(p.Spec.Statements) != mostStatements+10 {
		t.Error("the input is not changed")
	}
}

// A class that names Istio shows what each member is given, by what the members declare.
func TestIstioIsShownAsTheMembersDeclare(t *testing.T) {
	in := input()
	in.ResourceClasses[0].Spec.Enforcers = append(in.ResourceClasses[0].Spec.Enforcers, v1alpha1.EnforcerIstio)
	in.SubjectClasses[0].Spec.ServiceAccountTemplate = "app-{id}"
	const able = `{"dataplane": "sidecar", "version": "1.31.1", "strictMTLS": true}`
	v := Of(policy.NewSnapshot(in), in, map[string]string{"m1": able, "m2": able, "m3": ""}, approval.KindGrant, []approval.Item{grant("one")}, at)
	i := slices.IndexFunc(v.Objects, func(o Object) bool { return o.Kind == "AuthorizationPolicy" })
	if i < 0 {
		t.Fatalf("no AuthorizationPolicy in %+v", v)
	}
	o := v.Objects[i]
	if !strings.HasPrefix(o.Name, "istio-system/acp-") || strings.Contains(o.Before, "app-888") || !strings.Contains(o.After, `*/sa/app-888`) {
		t.Errorf("%+v", o)
	}
	if !slices.ContainsFunc(v.Refused, func(s string) bool { return strings.HasPrefix(s, "m3: ") }) {
		t.Errorf("the member without Istio refuses nothing: %q", v.Refused)
	}
	if v = view(in, approval.KindGrant, grant("one")); !strings.Contains(v.Message, "no member is known yet") {
		t.Errorf("without members: %q", v.Message)
	}
}
