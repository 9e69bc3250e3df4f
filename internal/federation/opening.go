package federation

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// Opening is what a policy in a member lets in, as far as that matters beside ACP's: to whom it opens. Allows of several
// policies add up, so anything here is more than ACP's policies say. What it opens, for which clients and ports, is not
// looked at.
type Opening struct {
	Kind, Namespace, Name string
	// to are the selectors of the pods; one that cannot be read selects everything.
	to []labels.Selector
	// keys are the requirements of each selector.
	keys []metav1.LabelSelector
	// mesh: it is Istio's, and opens the pods with all of these labels, of which one is their namespace unless it is about
	// all. Istio looks at the pods, of whose labels identities may have only some.
	mesh   bool
	labels []Label
}

// String names the policy for people.
func (o Opening) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Equal tells whether two openings are of one policy and open the same pods.
func (o Opening) Equal(p Opening) bool {
	return o.Kind == p.Kind && o.Namespace == p.Namespace && o.Name == p.Name && reflect.DeepEqual(o.keys, p.keys) && o.mesh == p.mesh && slices.Equal(o.labels, p.labels)
}

// Opens tells whether the policy lets anybody in at all.
func (o Opening) Opens() bool { return o.mesh || len(o.to) > 0 }

// namespaceKey is that of the label which holds a pod's namespace in its identity.
const namespaceKey = "io.kubernetes.pod.namespace"

// Selects tells whether pods of an identity with these labels are opened. Of a label that no identity has nobody knows which
// pods have it: known are the keys that identities have.
func (o Opening) Selects(identity map[string]string, known func(key string) bool) bool {
	if o.mesh {
		return mayMatch(o.labels, identity, known)
	}
	if o.Namespace != "" && identity[namespaceKey] != o.Namespace {
		return false
	}
	for _, s := range o.to {
		if s.Matches(labels.Set(identity)) {
			return true
		}
	}
	return false
}

// MaySelect tells whether some pod with one label, of which nothing else is known, may be opened.
func (o Opening) MaySelect(key, value string) bool {
	if o.mesh {
		return !slices.ContainsFunc(o.labels, func(l Label) bool { return l.Key == key && l.Value != value })
	}
	for i := range o.keys {
		if !excludes(&o.keys[i], key, value) {
			return true
		}
	}
	return false
}

// excludes tells that no pod with the label matches the selector.
func excludes(s *metav1.LabelSelector, key, value string) bool {
	if want, ok := s.MatchLabels[key]; ok && want != value {
		return true
	}
	for _, e := range s.MatchExpressions {
		if e.Key != key {
			continue
		}
		in := false
		for _, v := range e.Values {
			in = in || v == value
		}
		switch e.Operator {
		case metav1.LabelSelectorOpIn:
			if !in {
				return true
			}
		case metav1.LabelSelectorOpNotIn:
			if in {
				return true
			}
		case metav1.LabelSelectorOpDoesNotExist:
			return true
		case metav1.LabelSelectorOpExists:
		}
	}
	return false
}

// add takes in a selector as it is written.
func (o *Opening) add(written map[string]any) {
	var s metav1.LabelSelector
	everything := func() { o.to, o.keys = append(o.to, labels.Everything()), append(o.keys, metav1.LabelSelector{}) }
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(written, &s); err != nil {
		everything()
		return
	}
	plain := metav1.LabelSelector{MatchLabels: map[string]string{}}
	for k, v := range s.MatchLabels {
		plain.MatchLabels[bare(k)] = v
	}
	for _, e := range s.MatchExpressions {
		e.Key = bare(e.Key)
		plain.MatchExpressions = append(plain.MatchExpressions, e)
	}
	selector, err := metav1.LabelSelectorAsSelector(&plain)
	if err != nil {
		everything()
		return
	}
	o.to, o.keys = append(o.to, selector), append(o.keys, plain)
}

// bare is a label's key without the source that Cilium's selectors may name.
func bare(key string) string {
	for _, source := range []string{"k8s:", "any:"} {
		if rest, ok := strings.CutPrefix(key, source); ok {
			return rest
		}
	}
	return key
}

// parseOpening reads a NetworkPolicy, a CiliumNetworkPolicy, a CiliumClusterwideNetworkPolicy or an AuthorizationPolicy.
func parseOpening(u *unstructured.Unstructured) (Opening, error) {
	o := Opening{Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
	if o.Kind == IstioPolicy.Target.Kind {
		o.addIstio(u)
		return o, nil
	}
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	if o.Kind == "NetworkPolicy" {
		if rules, _, _ := unstructured.NestedSlice(spec, "ingress"); len(rules) > 0 && isolatesIngress(spec) {
			pods, _, _ := unstructured.NestedMap(spec, "podSelector")
			o.add(pods)
		}
		return o, nil
	}
	all, _, _ := unstructured.NestedSlice(u.Object, "specs")
	for _, s := range append(all, spec) {
		rule, _ := s.(map[string]any)
		endpoints, of, _ := unstructured.NestedMap(rule, "endpointSelector")
		if of && opens(rule) {
			o.add(endpoints)
		}
	}
	return o, nil
}

// isolatesIngress: without policyTypes a NetworkPolicy is about ingress; one that is about egress alone lets nobody in.
func isolatesIngress(spec map[string]any) bool {
	types, given, _ := unstructured.NestedStringSlice(spec, "policyTypes")
	if !given || len(types) == 0 {
		return true
	}
	for _, t := range types {
		if t == "Ingress" {
			return true
		}
	}
	return false
}

// opens tells whether some ingress rule lets somebody in whom Cilium would not let in anyway.
func opens(rule map[string]any) bool {
	ingress, _, _ := unstructured.NestedSlice(rule, "ingress")
	for _, r := range ingress {
		if m, ok := r.(map[string]any); !ok || !lets(m) {
			continue
		}
		return true
	}
	return false
}

// lets is false for a rule that is empty, which lets nobody in, and for one that names only the pod's own node, which is
// always let in. Everything else counts.
func lets(rule map[string]any) bool {
	if len(rule) == 0 {
		return false
	}
	entities, given, _ := unstructured.NestedStringSlice(rule, "fromEntities")
	if !given || len(entities) == 0 {
		return true
	}
	for _, e := range entities {
		if e != "host" && e != "health" {
			return true
		}
	}
	for k := range rule {
		if strings.HasPrefix(k, "from") && k != "fromEntities" {
			return true
		}
	}
	return false
}
