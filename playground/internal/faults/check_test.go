package faults

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/playground/internal/fleet"
)

// fixture is the input of a check: the statuses that the adapter reports, and the objects and verdicts of the members.
type fixture struct {
	resource  *v1alpha1.ProtectedResource
	policy    *v1alpha1.AccessControlPolicy
	member    *v1alpha1.MemberCluster
	federated *unstructured.Unstructured
	// revision is the present revision by member, and outcome the verdict of every connection.
	revision map[string]string
	outcome  string
	outage   *outage
	// istioObjects contains Istio's objects by member, and federatedIstio the Federated objects that they are propagated from.
	istioObjects   map[string][]*unstructured.Unstructured
	federatedIstio []runtime.Object
}

// addIstioObject adds an Istio object to members, with its Federated object.
func (f *fixture) addIstioObject(name, revision string, members ...string) {
	labels := map[string]any{v1alpha1.LabelUnit: "jobs", v1alpha1.LabelRevision: revision}
	spec := map[string]any{"action": "ALLOW"}
	var placement []any
	for _, m := range members {
		placement = append(placement, map[string]any{"name": m})
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "security.istio.io/v1", "kind": istioKind,
			"metadata": map[string]any{"name": name, "namespace": "istio-system", "labels": labels}, "spec": spec}}
		f.istioObjects[m] = append(f.istioObjects[m], o.DeepCopy())
	}
	f.federatedIstio = append(
		f.federatedIstio,
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "types.kubefed.io/v1beta1", "kind": "Federated" + istioKind,
			"metadata": map[string]any{"name": name, "namespace": "istio-system"},
			"spec": map[string]any{"placement": map[string]any{"clusters": placement},
				"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": spec}}}},
	)
}

// combinedRevision returns the revision of a unit with several objects.
func combinedRevision(revisions ...any) string {
	return enforcer.Revision(map[string]any{"parts": revisions})
}

// stateIn returns the reported state in a member.
func (f *fixture) stateIn(member string) *v1alpha1.ClusterState {
	i := slices.IndexFunc(f.resource.Status.Clusters, func(c v1alpha1.ClusterState) bool { return string(c.Name) == member })
	return &f.resource.Status.Clusters[i]
}

// group replaces the states of single members by those of groups.
func (f *fixture) group() {
	s := &f.resource.Status
	s.Clusters, s.Groups = nil, v1alpha1.GroupMembers(s.Clusters)
}

const (
	protects = "acp-jobs"
	revision = "r1"
)

// newFixture returns a healthy fleet in which one resource is enforced and all statuses are true.
func newFixture() *fixture {
	w := &fixture{revision: map[string]string{}, istioObjects: map[string][]*unstructured.Unstructured{}, outcome: "default-denied"}
	w.resource = &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "jobs", Generation: 1},
		Spec:   v1alpha1.ProtectedResourceSpec{Resource: queueStem + "jobs", Mode: v1alpha1.ModeEnforce},
		Status: v1alpha1.ProtectedResourceStatus{ObservedGeneration: 1}}
	w.policy = &v1alpha1.AccessControlPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 1},
		Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{
			{
				SID:    "s",
				Effect: v1alpha1.EffectDeny,
				Subjects: []v1alpha1.Subject{
					appStem + "888",
				},
				Actions:   []v1alpha1.Action{"queue:publish"},
				Resources: []v1alpha1.ResourceName{queueStem + "jobs"},
			},
		}},
		Status: v1alpha1.AccessControlPolicyStatus{
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionRealized, Status: metav1.ConditionTrue, ObservedGeneration: 1}},
		},
	}
	w.member = &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
	var placement []any
	for _, m := range fleet.Members() {
		w.revision[m] = revision
		placement = append(placement, map[string]any{"name": m})
		w.resource.Status.Clusters = append(w.resource.Status.Clusters, v1alpha1.ClusterState{Name: v1alpha1.ClusterName(m), State: v1alpha1.MemberRealized,
			Mode: v1alpha1.ModeEnforce, DesiredRevision: revision, ObservedRevision: revision})
	}
	w.federated = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "types.kubefed.io/v1beta1", "kind": "Federated" + kinds[0].kind,
		"metadata": map[string]any{"name": protects},
		"spec": map[string]any{
			"placement": map[string]any{"clusters": placement},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{v1alpha1.LabelRevision: revision}},
				"spec":     map[string]any{"ingress": "none"},
			},
		}}}
	return w
}

// drill returns a drill with fake clients for the fixture.
func (f *fixture) drill(t *testing.T) *drill {
	t.Helper()
	s, open := newPair(t)
	wanted := withEnforcement(open)
	wanted.set(f.policy)
	d := &drill{
		topology:    s,
		knownLabels: s.knownLabels(),
		model:       wanted,
		outage:      f.outage,
		members:     map[string]dynamic.Interface{},
		probes:      map[string]*continuousProbe{},
	}
	d.evaluator = wanted.evaluator(d.knownLabels)
	d.observable.reset(wanted)
	lists := map[schema.GroupVersionResource]string{v1alpha1.GroupVersion.WithResource("protectedresources"): "ProtectedResourceList",
		v1alpha1.GroupVersion.WithResource("accesscontrolpolicies"): "AccessControlPolicyList",
		v1alpha1.GroupVersion.WithResource("memberclusters"):        "MemberClusterList"}
	for _, k := range kinds {
		lists[k.target], lists[k.federated] = k.kind+"List", "Federated"+k.kind+"List"
	}
	fake := func(objects ...runtime.Object) dynamic.Interface {
		return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objects...)
	}
	d.host = fake(append(f.federatedIstio, generic(t, f.resource, "ProtectedResource"), generic(t, f.policy, "AccessControlPolicy"),
		generic(t, f.member, "MemberCluster"), f.federated)...)
	for _, m := range fleet.Members() {
		var present []runtime.Object
		if f.revision[m] != "" {
			present = append(present, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "cilium.io/v2",
				"kind":       kinds[0].kind,
				"metadata": map[string]any{
					"name":   protects,
					"labels": map[string]any{v1alpha1.LabelUnit: "jobs", v1alpha1.LabelRevision: f.revision[m]},
				},
				"spec": map[string]any{"ingress": "none"},
			}})
		}
		for _, o := range f.istioObjects[m] {
			present = append(present, o)
		}
		d.members[m] = fake(present...)
		attempts := s.connections(m)
		d.probes[m] = newContinuousProbe(m, fixedReader(t, len(attempts), f.outcome), attempts, func(text string) { t.Error(text) })
	}
	return d
}

func generic(t *testing.T, obj runtime.Object, kind string) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetAPIVersion(v1alpha1.GroupVersion.String())
	u.SetKind(kind)
	return u
}

// TestCheckDetectsFalseStatuses makes one status false in each case, by a change of the status or of the fleet, and expects check to
// return an error.
func TestCheckDetectsFalseStatuses(t *testing.T) {
	away := func(o outage) *outage {
		o.members = []string{"m1"}
		return &o
	}
	open := func(w *fixture) { w.outcome = "no-policy" }
	for name, c := range map[string]struct {
		reason string
		change func(w *fixture)
		// want is a part of the error, or "" when check must succeed.
		want string
	}{
		"Valid":       {"all statuses are true", func(*fixture) {}, ""},
		"NotEnforced": {"a healthy member must enforce, whatever its status", open, "has a wrong verdict"},
		"RealizedInAnOpenMember": {"Realized in a member that allows every source", func(w *fixture) {
			open(w)
			w.outage = away(outage{})
		}, "reported as Realized in m1, but"},
		"PendingInAnOpenMember": {"a member that does not enforce and is reported as Pending", func(w *fixture) {
			open(w)
			w.outage = away(outage{})
			w.stateIn("m1").State = v1alpha1.MemberPending
			w.policy.Status.Conditions[0].Status = metav1.ConditionFalse
		}, ""},
		"PolicyRealized": {"the policy is reported as Realized, and the resource is not", func(w *fixture) {
			open(w)
			w.outage = away(outage{})
			w.stateIn("m1").State = v1alpha1.MemberPending
		}, "AccessControlPolicy p is reported as Realized, but in m1"},
		"Unreadable": {"Realized in a member that cannot be read", func(w *fixture) { w.outage = away(outage{unreadable: true}) }, "which cannot be read"},
		"UnsafeSettings": {
			"Realized in a member whose enforcement is unknown",
			func(w *fixture) { w.outage = &outage{misconfigured: "m1", invalidates: bothModes} }, "whose agent settings change the meaning of Enforce",
		},
		"UnsafeSettingsReported": {"such a member is reported as Pending", func(w *fixture) {
			w.outage = &outage{misconfigured: "m1", invalidates: bothModes}
			w.stateIn("m1").State = v1alpha1.MemberPending
			w.policy.Status.Conditions[0].Status = metav1.ConditionFalse
		}, ""},
		"SettingsOfAudit": {"settings that change only the meaning of Audit are no reason why Enforce is not Realized", func(w *fixture) {
			w.outage = &outage{misconfigured: "m1", invalidates: auditOnly}
			w.stateIn("m1").State = v1alpha1.MemberPending
		}, "in m1 it is enforced, but reported as"},
		"FindingNotReported": {
			"settings that change what can be enforced, which the adapter does not report",
			func(w *fixture) { w.outage = &outage{misconfigured: "m1", finding: "NoHTTP"} }, "NoHTTP is not reported for member m1",
		},
		"FindingReported": {"such settings that it reports", func(w *fixture) {
			w.outage = &outage{misconfigured: "m1", finding: "NoHTTP"}
			w.member.Status.Findings = []v1alpha1.MemberFinding{{Code: "NoHTTP"}}
		}, ""},
		"AnotherRevision": {"the member has another revision", func(w *fixture) { w.revision["m2"] = "r0" }, "revision r1 is reported in m2"},
		"NothingThere":    {"the member has no object", func(w *fixture) { w.revision["m2"] = "" }, "revision r1 is reported in m2, which has []"},
		"BothDataplanes": {"the objects of a unit have a combined revision", func(w *fixture) {
			w.addIstioObject(protects, "i1", "m2")
			w.addIstioObject(protects+"-deny", "i2", "m2")
			w.stateIn("m2").ObservedRevision = combinedRevision("r1", "i1", "i2")
		}, ""},
		"AnotherRevisionInTheMesh": {"one object has another revision", func(w *fixture) {
			w.addIstioObject(protects, "i0", "m2")
			w.stateIn("m2").ObservedRevision = combinedRevision("r1", "i1")
		}, "is reported in m2"},
		"HalfOfTheMesh": {"one object is missing", func(w *fixture) {
			w.addIstioObject(protects, "i1", "m2")
			w.stateIn("m2").ObservedRevision = combinedRevision("r1", "i1", "i2")
		}, "is reported in m2"},
		"LeakedInTheMesh": {"an Istio object has no Federated object", func(w *fixture) {
			w.addIstioObject(protects, "i1", "m2")
			w.federatedIstio = nil
		}, "AuthorizationPolicy istio-system/acp-jobs leaked in m2"},
		"NarrowedInTheMesh": {"the Federated object is placed only in the other member", func(w *fixture) {
			w.addIstioObject(protects, "i1", "m1")
			w.istioObjects["m2"] = w.istioObjects["m1"]
		}, "AuthorizationPolicy istio-system/acp-jobs leaked in m2"},
		"CopiedInTheMesh": {"a copy in another namespace has no Federated object", func(w *fixture) {
			w.addIstioObject(protects, "i1", "m1")
			copied := w.istioObjects["m1"][0].DeepCopy()
			copied.SetNamespace("default")
			w.istioObjects["m1"] = append(w.istioObjects["m1"], copied)
		}, "AuthorizationPolicy default/acp-jobs leaked in m1"},
		"DeletedInTheMesh": {"a manual change deleted an object, and Cilium still enforces", func(w *fixture) {
			w.addIstioObject(protects, "i1", "m1", "m2")
			w.istioObjects["m1"] = nil
		}, "m1 lacks AuthorizationPolicy istio-system/acp-jobs"},
		"OpenedInTheMesh": {"a manual change opened it", func(w *fixture) {
			w.addIstioObject(protects, "i1", "m1", "m2")
			w.istioObjects["m1"][0].Object["spec"] = map[string]any{"action": "ALLOW", "rules": []any{map[string]any{}}}
		}, "AuthorizationPolicy istio-system/acp-jobs in m1 differs from its Federated object: its spec"},
		"RelabelledInTheMesh": {"a manual change removed a label", func(w *fixture) {
			w.addIstioObject(protects, "i1", "m1", "m2")
			w.istioObjects["m2"][0].SetLabels(map[string]string{v1alpha1.LabelRevision: "i1"})
		}, "AuthorizationPolicy istio-system/acp-jobs in m2 differs from its Federated object: its label acp.io/unit"},
		"EnforcedButPending": {
			"enforced, but reported as Pending", func(w *fixture) { w.stateIn("m2").State = v1alpha1.MemberPending },
			"in m2 it is enforced, but reported as",
		},
		"NotReported": {"enforced, but not reported", func(w *fixture) { w.resource.Status.Clusters = w.resource.Status.Clusters[:1] }, "in m2 it is enforced"},
		"Mode":        {"Enforce, but reported as Audit", func(w *fixture) { w.stateIn("m1").Mode = v1alpha1.ModeAudit }, "its mode is Enforce"},
		"Old":         {"the status is of an older generation", func(w *fixture) { w.resource.Generation = 2 }, "older generation"},
		"OldPolicy":   {"the status of the policy is of an older generation", func(w *fixture) { w.policy.Generation = 2 }, "older generation"},
		"Leaked": {"an object is in a member outside the placement", func(w *fixture) {
			if err := unstructured.SetNestedSlice(w.federated.Object, []any{map[string]any{"name": "m1"}}, "spec", "placement", "clusters"); err != nil {
				t.Fatal(err)
			}
		}, "leaked in m2"},
		"Grouped": {"the members are in groups, and all statuses are true", (*fixture).group, ""},
		"EnforcedButPendingInAGroup": {"enforced, but reported as Pending in a group", func(w *fixture) {
			w.stateIn("m2").State = v1alpha1.MemberPending
			w.group()
		}, "in m2 it is enforced, but reported as"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture()
			c.change(w)
			err := w.drill(t).check(t.Context())
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: check returned %v, want %q", c.reason, err, c.want)
			}
		})
	}
}
