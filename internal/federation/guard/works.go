package guard

import (
	"fmt"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation/objectkind"
)

// Works is the name of the policy on the host that restricts the ManifestWorks of the adapter, and of its binding.
const Works = "acp-manifestworks"

// WorksObjects returns the policy on the host with which the adapter can only make work agents write objects of ACP's, and read one
// namespace, and can change no ManifestWorks of others, and its binding. An agent can write more than that, usually everything in its
// cluster. adapter is the adapter's user.
func WorksObjects(adapter string) ([]*unstructured.Unstructured, error) {
	fail, forbidden := admission.Fail, metav1.StatusReasonForbidden
	constraints := match([]admission.NamedRuleWithOperations{rule("work.open-cluster-management.io", admission.NamespacedScope, "manifestworks")})
	spec := admission.ValidatingAdmissionPolicySpec{
		FailurePolicy:    &fail,
		MatchConstraints: constraints,
		MatchConditions:  []admission.MatchCondition{{Name: "adapter", Expression: fmt.Sprintf("request.userInfo.username == '%s'", adapter)}},
		Validations: []admission.Validation{{
			Expression: "[object, oldObject].all(o, o == null || o.metadata.?name.orValue('').startsWith('" + v1alpha1.ObjectPrefix + "'))",
			Reason:     &forbidden,
			Message: "the adapter may only write and delete ManifestWorks whose name begins with " + v1alpha1.ObjectPrefix +
				"; kubectl acp cluster join installs this policy",
		}, {
			Expression: "object == null || object.spec.?workload.?manifests.orValue([]).all(m, " + distributed("m") + " || " + onlyReadsSystem("m") + ") && " +
				"!has(object.spec.executor)",
			Reason: &forbidden,
			Message: "the adapter may only distribute ACP's own objects, and read the namespace " + metav1.NamespaceSystem +
				"; kubectl acp cluster join installs this policy",
		}},
	}
	meta := metav1.TypeMeta{APIVersion: admission.SchemeGroupVersion.String(), Kind: kindPolicy}
	policy, err := toUnstructured(&admission.ValidatingAdmissionPolicy{TypeMeta: meta, ObjectMeta: metav1.ObjectMeta{Name: Works}, Spec: spec})
	if err != nil {
		return nil, err
	}
	meta.Kind = kindBinding
	binding, err := toUnstructured(&admission.ValidatingAdmissionPolicyBinding{TypeMeta: meta, ObjectMeta: metav1.ObjectMeta{Name: Works},
		Spec: admission.ValidatingAdmissionPolicyBindingSpec{PolicyName: Works, ValidationActions: []admission.ValidationAction{admission.Deny}}})
	if err != nil {
		return nil, err
	}
	return []*unstructured.Unstructured{policy, binding}, nil
}

// distributed returns an expression that is true for a manifest of an object that ACP distributes.
func distributed(m string) string {
	var kinds []string
	for _, k := range objectkind.All() {
		is := fmt.Sprintf("%[1]s.apiVersion == '%[2]s' && %[1]s.kind == '%[3]s'", m, k.Target.GroupVersion(), k.Target.Kind)
		if k.Namespace != "" {
			is += fmt.Sprintf(" && %s.metadata.?namespace.orValue('') == '%s'", m, k.Namespace)
		}
		kinds = append(kinds, is)
	}
	return fmt.Sprintf("%s.metadata.?name.orValue('').startsWith('%s') && (%s)", m, v1alpha1.ObjectPrefix, strings.Join(kinds, " || "))
}

// onlyReadsSystem returns an expression that is true for the manifest of the namespace of the heartbeat, if the ManifestWork changes nothing.
func onlyReadsSystem(m string) string {
	return fmt.Sprintf("%[1]s.apiVersion == 'v1' && %[1]s.kind == 'Namespace' && %[1]s.metadata.?name.orValue('') == '%[2]s' && "+
		"size(object.spec.workload.manifests) == 1 && size(object.spec.?manifestConfigs.orValue([])) == 1 && "+
		"object.spec.manifestConfigs[0].resourceIdentifier.?group.orValue('') == '' && "+
		"object.spec.manifestConfigs[0].resourceIdentifier.?namespace.orValue('') == '' && "+
		"object.spec.manifestConfigs[0].resourceIdentifier.resource == 'namespaces' && "+
		"object.spec.manifestConfigs[0].resourceIdentifier.name == '%[2]s' && "+
		"object.spec.manifestConfigs[0].?updateStrategy.?type.orValue('') == 'ReadOnly'", m, metav1.NamespaceSystem)
}
