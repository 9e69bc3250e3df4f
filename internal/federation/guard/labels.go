package guard

import (
	"fmt"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podLabels are the labels of a pod, or those that the pods of a workload will have.
const podLabels = "%[1]s == null ? {} : " +
	"request.resource.resource == 'pods' ? %[1]s.metadata.?labels.orValue({}) : " +
	"request.resource.resource == 'cronjobs' ? %[1]s.spec.jobTemplate.spec.template.?metadata.?labels.orValue({}) : " +
	"%[1]s.spec.?template.?metadata.?labels.orValue({})"

// classLabels lets a label that a class selects by be set, changed or taken away only by who has the right to, and by
// the cluster's own controllers, which make pods of workloads that were looked at. One rule for each key: the cost of
// asking the authorizer is counted for each.
func classLabels(keys []string) admission.ValidatingAdmissionPolicySpec {
	fail, forbidden := admission.Fail, metav1.StatusReasonForbidden
	spec := admission.ValidatingAdmissionPolicySpec{
		FailurePolicy: &fail,
		MatchConstraints: match([]admission.NamedRuleWithOperations{
			settings("", "pods", "replicationcontrollers"),
			settings("apps", "deployments", "replicasets", "statefulsets", "daemonsets"),
			settings("batch", "jobs", "cronjobs"),
		}),
		Variables: []admission.Variable{
			{Name: "now", Expression: fmt.Sprintf(podLabels, "object")},
			{Name: "before", Expression: fmt.Sprintf(podLabels, "oldObject")},
			{Name: "controller", Expression: "request.userInfo.?groups.orValue([]).exists(g, g == 'system:serviceaccounts:kube-system') || " +
				"request.userInfo.?username.orValue('') == 'system:kube-controller-manager'"},
		},
	}
	for _, key := range slices.Compact(slices.Sorted(slices.Values(keys))) {
		right := func(labels string) string {
			return fmt.Sprintf("(!(%[1]s in variables.%[2]s) || authorizer.group('%[3]s').resource('%[4]s').namespace(request.namespace).name('%[5]s=' + variables.%[2]s[%[1]s]).check('%[6]s').allowed())",
				quote(key), labels, LabelGroup, LabelResource, key, LabelVerb)
		}
		same := fmt.Sprintf("variables.now[?%[1]s] == variables.before[?%[1]s]", quote(key))
		spec.Validations = append(spec.Validations, admission.Validation{
			Expression: "variables.controller || " + same + " || " + right("now") + " && " + right("before"), Reason: &forbidden,
			Message: fmt.Sprintf("the label %s decides what a pod may reach and who may reach it: setting it needs the verb %s on %s.%s, resource name %s=VALUE, in this namespace",
				key, LabelVerb, LabelResource, LabelGroup, key),
		})
	}
	return spec
}

// settings matches what sets labels of pods.
func settings(group string, resources ...string) admission.NamedRuleWithOperations {
	r := rule(group, admission.NamespacedScope, resources...)
	r.Operations = []admission.OperationType{admission.Create, admission.Update}
	return r
}

func quote(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'" }
