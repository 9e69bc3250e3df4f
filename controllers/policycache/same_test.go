package policycache

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/hostcluster"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/testenv"
)

// TestEveryProgramCompilesTheSame: the adapter from its index, the portal and the flow collector from the host's cache, and the
// command line from files compile one fleet to the same bytes.
func TestEveryProgramCompilesTheSame(t *testing.T) {
	const head = "trnv1:rsc:o:redis:clusters:"
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	zone := map[string]string{"zone": "a"}
	app := &v1alpha1.SubjectClass{ObjectMeta: named("app"), Spec: v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:o:iam:sa:app/*", LabelKey: "app"}}
	redis := &v1alpha1.ResourceClass{ObjectMeta: named("redis"), Spec: v1alpha1.ResourceClassSpec{Pattern: head + "*", LabelKey: "redis",
		Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{MatchLabels: zone}},
		Actions:   []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379}}}}}}
	bobs := &v1alpha1.ProtectedResource{ObjectMeta: named("bobs"), Spec: v1alpha1.ProtectedResourceSpec{Resource: head + "bobs", Mode: v1alpha1.ModeEnforce}}
	grant := &v1alpha1.AccessControlPolicy{ObjectMeta: named("p"), Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{{SID: "s", Effect: v1alpha1.EffectAllow,
		Subjects: []v1alpha1.Subject{"trnv1:rsc:o:iam:sa:app/1", "trnv1:rsc:o:iam:sa:app/2"}, Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{head + "bobs"}}}}}
	vm := &v1alpha1.ExternalWorkload{ObjectMeta: named("vm"), Spec: v1alpha1.ExternalWorkloadSpec{Subject: "trnv1:rsc:o:iam:sa:app/1", Addresses: []string{"10.5.0.0/24"}}}
	objects := []client.Object{app, redis, bobs, grant, vm}
	clusters := []policy.Cluster{{Name: "m1", Labels: zone}, {Name: "m2", Labels: zone}, {Name: "m3", Labels: map[string]string{}}}
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	compiled := func(s *policy.Snapshot) string {
		text, err := json.MarshalIndent([]any{s.Compile(at), s.ExternalGroups()}, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}

	x := New(NewQueues())
	var informed testenv.Objects
	if _, err := x.Listen(t.Context(), &informed); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	host := fake.NewClientBuilder().WithScheme(scheme)
	for _, o := range objects {
		if err := informed.Change(nil, o); err != nil {
			t.Fatal(err)
		}
		host = host.WithObjects(o)
	}
	for _, c := range clusters {
		host = host.WithObjects(&v1alpha1.MemberCluster{ObjectMeta: named(c.Name), Status: v1alpha1.MemberClusterStatus{State: v1alpha1.MemberClusterReady, Labels: c.Labels}})
	}
	x.Carry(true)
	x.Know(nil, true)
	x.Join(clusters)
	adapter := x.View().Snapshot
	in, err := hostcluster.Input(t.Context(), host.Build())
	if err != nil {
		t.Fatal(err)
	}
	portal := policy.NewSnapshot(in)
	line := policy.NewSnapshot(policy.NewInput(in.Objects(), policy.Fleet{Clusters: clusters}))
	want := compiled(adapter)
	for who, s := range map[string]*policy.Snapshot{"the portal": portal, "the command line": line} {
		if diff := cmp.Diff(want, compiled(s)); diff != "" {
			t.Errorf("%s compiles something else; -adapter +it:\n%s", who, diff)
		}
	}
	u, ok := adapter.CompileResource(head+"bobs", at)
	if !ok || u.Entries < 2*len(clusters) {
		t.Errorf("%d entries are estimated for two subjects in %d members", u.Entries, len(clusters))
	}
}
