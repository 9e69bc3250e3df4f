package host_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/host"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// everything is an input whose units have lines of nearly every form: denies, clients of every kind, requests, open ports, modes of
// members and selectors.
func everything() policy.Input {
	in := classes()
	protects(&in, v1alpha1.ModeEnforce)
	c := &in.ResourceClasses[0].Spec
	c.Placement = v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "eu"}}}
	c.OtherPorts = v1alpha1.OtherPortsAllow
	c.Actions = append(c.Actions, v1alpha1.ClassAction{Name: "redis:read", Ports: []v1alpha1.Port{{Port: 8080, EndPort: new(int32(8090)), Protocol: "TCP"}},
		HTTP: []v1alpha1.HTTPMatch{{Method: "GET", Path: "/x"}}})
	in.Resources[0].Spec.ClusterModes = []v1alpha1.ClusterMode{{Cluster: "m1", Mode: v1alpha1.ModeAudit}}
	in.Workloads = []*v1alpha1.ExternalWorkload{workload("vm", portaltest.App888)}
	deny, anyone := statement("deny", portaltest.BobsCluster), statement("anyone", portaltest.BobsCluster)
	requests := statement("requests", portaltest.BobsCluster)
	deny.Effect, deny.Subjects = v1alpha1.EffectDeny, []v1alpha1.Subject{portaltest.App889}
	anyone.Subjects, requests.Actions = []v1alpha1.Subject{"*"}, []v1alpha1.Action{"redis:read"}
	in.Policies[0].Spec.Statements = append(in.Policies[0].Spec.Statements, deny, anyone, requests)
	return in
}

// TestLinesOfEveryFormHaveMessages fails if a line is written in a form that approval.LineMessage does not have, so that it would be shown
// in English only.
func TestLinesOfEveryFormHaveMessages(t *testing.T) {
	access := approval.Item{ApplicationName: portaltest.App888, ResourceName: portaltest.BobsCluster, Actions: []string{"redis:connect", "redis:read"}}
	spec := classes().ResourceClasses[0].Spec
	wide := *spec.DeepCopy()
	wide.Actions[0].Ports = append(wide.Actions[0].Ports, v1alpha1.Port{Port: 6380, Protocol: "TCP"})
	class := approval.Item{
		Change: &approval.Change{Kind: approval.ObjectResourceClass, Name: "redis", Verb: approval.VerbUpdate, Before: text(t, spec), After: text(t, wide)},
	}
	mode := approval.Item{ResourceName: portaltest.BobsCluster, Change: &approval.Change{Kind: approval.ObjectProtectedResource, Name: "bobs",
		Verb: approval.VerbUpdate, ToMode: v1alpha1.ModeAudit,
		After: text(t, v1alpha1.ProtectedResourceSpec{Resource: portaltest.BobsCluster, Mode: v1alpha1.ModeAudit,
			ClusterModes: []v1alpha1.ClusterMode{{Cluster: "m1", Mode: v1alpha1.ModeEnforce}}})}}
	every := everything()
	every.ResourceClasses[0].Spec.Placement = v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}
	unknown := access
	unknown.ResourceName = "trnv1:rsc:trip-com:redis:elsewhere:x"
	outside, err := host.WorkloadLines(policy.NewSnapshot(everything()), everything(), registering(t, "192.0.2.0/24"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	found := strings.Builder{}
	for _, lines := range [][]string{
		host.CompiledLines(everything(), access), host.CompiledLines(classes(), access), host.CompiledLines(every, access),
		host.CompiledLines(everything(), unknown),
		changed(everything(), class).Lines, changed(everything(), mode).Lines, outside,
	} {
		if len(lines) == 0 {
			t.Error("an item has no lines")
		}
		for _, l := range lines {
			m := approval.LineMessage(l)
			if m.Code == message.Verbatim("x").Code || m.Text != l {
				t.Errorf("the line %q has no message", l)
			}
			found.WriteString(m.Code + m.Params)
		}
	}
	for _, code := range []string{"line.added", "line.allow", "line.deny", "line.by-istio", "line.no-action", "line.allow-action", "line.connections",
		"line.outside-address", "line.outside-address-of", "line.mode", "line.mode-in-member", "line.in-member",
		"line.in-every-member", "line.in-members-with", "line.enforced-by",
		"line.not-compiled", "line.anyone", "line.pods", "line.addresses", "line.outside", "line.service-account"} {
		if !strings.Contains(found.String(), code) {
			t.Errorf("the test has no line with the message %s", code)
		}
	}
	if shown := changed(everything(), class).Lines; !slices.ContainsFunc(shown, func(l string) bool { return strings.HasPrefix(l, approval.LineAdded) }) {
		t.Errorf("a change of a class adds nothing: %q", shown)
	}
}
