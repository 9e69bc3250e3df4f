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

// word is all that the judge hears and sees: what the adapter says, and what the members have and enforce.
type word struct {
	resource  *v1alpha1.ProtectedResource
	policy    *v1alpha1.AccessControlPolicy
	federated *unstructured.Unstructured
	// present revision in each member, and what becomes of every connection in m1.
	revision map[string]string
	outcome  string
	outage   *outage
	// meshed are Istio's objects in each member, and carriers what asks for them.
	meshed   map[string][]*unstructured.Unstructured
	carriers []runtime.Object
}

// mesh has the host ask the members for an object of Istio's, which they have.
func (w *word) mesh(name, revision string, members ...string) {
	labels := map[string]any{v1alpha1.LabelUnit: "jobs", v1alpha1.LabelRevision: revision}
	spec := map[string]any{"action": "ALLOW"}
	var placement []any
	for _, m := range members {
		placement = append(placement, map[string]any{"name": m})
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "security.istio.io/v1", "kind": istioKind,
			"metadata": map[string]any{"name": name, "namespace": "istio-system", "labels": labels}, "spec": spec}}
		w.meshed[m] = append(w.meshed[m], o.DeepCopy())
	}
	w.carriers = append(w.carriers, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "types.kubefed.io/v1beta1", "kind": "Federated" + istioKind,
		"metadata": map[string]any{"name": name, "namespace": "istio-system"},
		"spec": map[string]any{"placement": map[string]any{"clusters": placement},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": spec}}}})
}

// together is the revision of a unit that has several objects.
func together(revisions ...any) string {
	return enforcer.Revision(map[string]any{"parts": revisions})
}

func (w *word) in(member string) *v1alpha1.ClusterState {
	i := slices.IndexFunc(w.resource.Status.Clusters, func(c v1alpha1.ClusterState) bool { return string(c.Name) == member })
	return &w.resource.Status.Clusters[i]
}

// group puts all members into groups.
func (w *word) group() {
	s := &w.resource.Status
	s.Clusters, s.Groups = nil, v1alpha1.GroupMembers(s.Clusters)
}

const (
	protects = "acp-jobs"
	revision = "r1"
)

// truth is a healthy fleet in which one resource is closed, and all that is said of it is true.
func truth() *word {
	w := &word{revision: map[string]string{}, meshed: map[string][]*unstructured.Unstructured{}, outcome: "default-denied"}
	w.resource = &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "jobs", Generation: 1},
		Spec:   v1alpha1.ProtectedResourceSpec{Resource: queueStem + "jobs", Mode: v1alpha1.ModeEnforce},
		Status: v1alpha1.ProtectedResourceStatus{ObservedGeneration: 1}}
	w.policy = &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 1},
		Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{{SID: "s", Effect: v1alpha1.EffectDeny,
			Subjects: []v1alpha1.Subject{appStem + "888"}, Actions: []v1alpha1.Action{"queue:publish"}, Resources: []v1alpha1.ResourceName{queueStem + "jobs"}}}},
		Status: v1alpha1.AccessControlPolicyStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionRealized, Status: metav1.ConditionTrue, ObservedGeneration: 1}}}}
	var placement []any
	for _, m := range fleet.Members() {
		w.revision[m] = revision
		placement = append(placement, map[string]any{"name": m})
		w.resource.Status.Clusters = append(w.resource.Status.Clusters, v1alpha1.ClusterState{Name: v1alpha1.ClusterName(m), State: v1alpha1.MemberRealized,
			Mode: v1alpha1.ModeEnforce, DesiredRevision: revision, ObservedRevision: revision})
	}
	w.federated = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "types.kubefed.io/v1beta1", "kind": "Federated" + kinds[0].kind,
		"metadata": map[string]any{"name": protects},
		"spec": map[string]any{"placement": map[string]any{"clusters": placement},
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{v1alpha1.LabelRevision: revision}}, "spec": map[string]any{"ingress": "none"}}}}}
	return w
}

func (w *word) drill(t *testing.T) *drill {
	t.Helper()
	s, open := onePair(t)
	world := closed(open)
	world.set(w.policy)
	d := &drill{scene: s, known: s.knownLabels(), world: world, outage: w.outage, members: map[string]dynamic.Interface{}, dogs: map[string]*watchdog{}}
	d.meaning = world.meaning(d.known)
	d.seen.begin(world)
	lists := map[schema.GroupVersionResource]string{v1alpha1.GroupVersion.WithResource("protectedresources"): "ProtectedResourceList",
		v1alpha1.GroupVersion.WithResource("accesscontrolpolicies"): "AccessControlPolicyList"}
	for _, k := range kinds {
		lists[k.target], lists[k.federated] = k.kind+"List", "Federated"+k.kind+"List"
	}
	fake := func(objects ...runtime.Object) dynamic.Interface {
		return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objects...)
	}
	d.host = fake(append(w.carriers, generic(t, w.resource, "ProtectedResource"), generic(t, w.policy, "AccessControlPolicy"), w.federated)...)
	for _, m := range fleet.Members() {
		var present []runtime.Object
		if w.revision[m] != "" {
			present = append(present, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cilium.io/v2", "kind": kinds[0].kind,
				"metadata": map[string]any{"name": protects, "labels": map[string]any{v1alpha1.LabelUnit: "jobs", v1alpha1.LabelRevision: w.revision[m]}}, "spec": map[string]any{"ingress": "none"}}})
		}
		for _, o := range w.meshed[m] {
			present = append(present, o)
		}
		d.members[m] = fake(present...)
		attempts := s.connections(m)
		d.dogs[m] = newWatchdog(m, answering(t, len(attempts), w.outcome), attempts, func(text string) { t.Error(text) })
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

// TestTheJudgeCatchesLies changes the truth by one lie, or by what makes a lie of what was said, and has it caught.
func TestTheJudgeCatchesLies(t *testing.T) {
	away := func(o outage) *outage {
		o.members = []string{"m1"}
		return &o
	}
	open := func(w *word) { w.outcome = "no-policy" }
	for name, c := range map[string]struct {
		reason string
		lie    func(w *word)
		// want is what the judge says; "": nothing is wrong.
		want string
	}{
		"Truth":       {"all is as it is said", func(*word) {}, ""},
		"NotEnforced": {"a healthy member has to follow, whatever is said", open, "is not as wanted"},
		"RealizedInAnOpen": {"Realized in a member that lets everybody in", func(w *word) {
			open(w)
			w.outage = away(outage{})
		}, "said to be realized in m1, but"},
		"PendingInAnOpen": {"a member that did not follow, and is not said to have", func(w *word) {
			open(w)
			w.outage = away(outage{})
			w.in("m1").State = v1alpha1.MemberPending
			w.policy.Status.Conditions[0].Status = metav1.ConditionFalse
		}, ""},
		"PolicyRealized": {"the policy says Realized, and the resource does not", func(w *word) {
			open(w)
			w.outage = away(outage{})
			w.in("m1").State = v1alpha1.MemberPending
		}, "AccessControlPolicy p is said to be realized, but in m1"},
		"Unread":       {"nobody can know that", func(w *word) { w.outage = away(outage{unreadable: true}) }, "which cannot be read"},
		"VoidSettings": {"a member that enforces something else, or nobody knows what", func(w *word) { w.outage = &outage{void: "m1"} }, "whose settings void policies"},
		"VoidSettingsTold": {"and is not said to", func(w *word) {
			w.outage = &outage{void: "m1"}
			w.in("m1").State = v1alpha1.MemberPending
			w.policy.Status.Conditions[0].Status = metav1.ConditionFalse
		}, ""},
		"AnotherRevision": {"the member has something else", func(w *word) { w.revision["m2"] = "r0" }, "revision r1 is said to be in m2"},
		"NothingThere":    {"the member has nothing", func(w *word) { w.revision["m2"] = "" }, "revision r1 is said to be in m2, which has []"},
		"BothDataplanes": {"the objects of a unit have one revision together", func(w *word) {
			w.mesh(protects, "i1", "m2")
			w.mesh(protects+"-deny", "i2", "m2")
			w.in("m2").ObservedRevision = together("r1", "i1", "i2")
		}, ""},
		"AnotherRevisionInTheMesh": {"one of them is another", func(w *word) {
			w.mesh(protects, "i0", "m2")
			w.in("m2").ObservedRevision = together("r1", "i1")
		}, "is said to be in m2"},
		"HalfOfTheMesh": {"one of them is not there", func(w *word) {
			w.mesh(protects, "i1", "m2")
			w.in("m2").ObservedRevision = together("r1", "i1", "i2")
		}, "is said to be in m2"},
		"LeakedInTheMesh": {"Istio closes in a member what nobody asks for", func(w *word) {
			w.mesh(protects, "i1", "m2")
			w.carriers = nil
		}, "AuthorizationPolicy istio-system/acp-jobs leaked in m2"},
		"NarrowedInTheMesh": {"the host asks only the other member for it", func(w *word) {
			w.mesh(protects, "i1", "m1")
			w.meshed["m2"] = w.meshed["m1"]
		}, "AuthorizationPolicy istio-system/acp-jobs leaked in m2"},
		"CopiedInTheMesh": {"somebody copied it into a namespace where nothing asks for it", func(w *word) {
			w.mesh(protects, "i1", "m1")
			copied := w.meshed["m1"][0].DeepCopy()
			copied.SetNamespace("default")
			w.meshed["m1"] = append(w.meshed["m1"], copied)
		}, "AuthorizationPolicy default/acp-jobs leaked in m1"},
		"DeletedInTheMesh": {"a hand deleted what the host asks for, and Cilium enforces all the same", func(w *word) {
			w.mesh(protects, "i1", "m1", "m2")
			w.meshed["m1"] = nil
		}, "m1 lacks AuthorizationPolicy istio-system/acp-jobs"},
		"OpenedInTheMesh": {"a hand opened it", func(w *word) {
			w.mesh(protects, "i1", "m1", "m2")
			w.meshed["m1"][0].Object["spec"] = map[string]any{"action": "ALLOW", "rules": []any{map[string]any{}}}
		}, "AuthorizationPolicy istio-system/acp-jobs in m1 is not as the host asks: its spec"},
		"RelabelledInTheMesh": {"a hand took a label away", func(w *word) {
			w.mesh(protects, "i1", "m1", "m2")
			w.meshed["m2"][0].SetLabels(map[string]string{v1alpha1.LabelRevision: "i1"})
		}, "AuthorizationPolicy istio-system/acp-jobs in m2 is not as the host asks: its label acp.io/unit"},
		"Modest":    {"in force, and not said to be", func(w *word) { w.in("m2").State = v1alpha1.MemberPending }, "in m2 it is in force, but said to be"},
		"Untold":    {"in force, and nothing said of it", func(w *word) { w.resource.Status.Clusters = w.resource.Status.Clusters[:1] }, "in m2 it is in force"},
		"Mode":      {"Enforce, and said to be Audit", func(w *word) { w.in("m1").Mode = v1alpha1.ModeAudit }, "its mode is Enforce"},
		"Old":       {"the status is about what was before", func(w *word) { w.resource.Generation = 2 }, "older generation"},
		"OldPolicy": {"the policy's status is about what was before", func(w *word) { w.policy.Generation = 2 }, "older generation"},
		"Leaked": {"a member has what nobody asks for", func(w *word) {
			if err := unstructured.SetNestedSlice(w.federated.Object, []any{map[string]any{"name": "m1"}}, "spec", "placement", "clusters"); err != nil {
				t.Fatal(err)
			}
		}, "leaked in m2"},
		"Grouped": {"the members are in groups, and all is well", (*word).group, ""},
		"ModestInAGroup": {"in force, and a group says that it is not", func(w *word) {
			w.in("m2").State = v1alpha1.MemberPending
			w.group()
		}, "in m2 it is in force, but said to be"},
	} {
		t.Run(name, func(t *testing.T) {
			w := truth()
			c.lie(w)
			err := w.drill(t).judge(t.Context())
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: the judge says %v, want %q", c.reason, err, c.want)
			}
		})
	}
}
