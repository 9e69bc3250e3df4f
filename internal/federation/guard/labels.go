package guard

import (
	"fmt"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Credentials are the labels and service accounts that identify workloads. A user who can set one of them can change a
// workload's access.
type Credentials struct {
	// Labels are the keys of the pod labels that classes select by.
	Labels []string
	// ServiceAccounts are the templates of the service accounts that Istio identifies clients by. A template contains
	// "{id}" once.
	ServiceAccounts []string
}

// Empty reports whether there is nothing to guard.
func (c Credentials) Empty() bool { return len(c.Labels) == 0 && len(c.ServiceAccounts) == 0 }

// Expressions of the pod template in a request; %[1]s is "object" or "oldObject". Every write of a pod's metadata is
// covered: the pod itself, each of its subresources (pods/status and pods/binding can set labels), the older Binding
// resource, and what controllers make pods from, the revisions of a StatefulSet or DaemonSet included. Fields that an object
// of another kind lacks (an Eviction, for example) are read as absent.
const (
	podMetadata = "request.resource.resource in ['pods', 'bindings']"
	jobTemplate = "request.resource.resource == 'cronjobs'"
	revision    = "request.resource.resource == 'controllerrevisions'"

	podLabels = "%[1]s == null ? {} : " +
		podMetadata + " ? %[1]s.metadata.?labels.orValue({}) : " +
		jobTemplate + " ? %[1]s.?spec.?jobTemplate.?spec.?template.?metadata.?labels.orValue({}) : " +
		revision + " ? %[1]s.?data.?spec.?template.?metadata.?labels.orValue({}) : " +
		"%[1]s.?spec.?template.?metadata.?labels.orValue({})"

	podSpec = podMetadata + " ? %[1]s.?spec : " +
		jobTemplate + " ? %[1]s.?spec.?jobTemplate.?spec.?template.?spec : " +
		revision + " ? %[1]s.?data.?spec.?template.?spec : " +
		"%[1]s.?spec.?template.?spec"

	// podAccount is the name of the service account that the pods run as. "serviceAccount" is the older name of the field,
	// which the API server copies in pods and not in templates.
	podAccount = "%[1]s == null ? '' : " +
		"request.resource.resource == 'serviceaccounts' ? (" + accountName + ") : " +
		"((" + podSpec + ").?serviceAccountName.orValue('') != '' ? (" + podSpec + ").?serviceAccountName.orValue('') : " +
		"(" + podSpec + ").?serviceAccount.orValue(''))"

	// accountName is the name of the service account that is written, or for which a token is requested. A generated name
	// counts by its prefix until it is known.
	accountName = "request.?subResource.orValue('') != '' ? request.?name.orValue('') : " +
		"%[1]s.metadata.?name.orValue('') != '' ? %[1]s.metadata.?name.orValue('') : %[1]s.metadata.?generateName.orValue('')"
)

// credentials lets a label that a class selects by be set, changed or removed, and a service account that identifies a
// client be created or used, only by those who have the right to. The cluster's own controllers are admitted, because
// the templates from which they make pods were checked. Each key and each template has a rule of its own, since the API
// server limits the cost of authorizer calls for each rule.
func credentials(c Credentials) admission.ValidatingAdmissionPolicySpec {
	fail := admission.Fail
	core := []string{"pods", "pods/*", "bindings", "replicationcontrollers"}
	if len(c.ServiceAccounts) > 0 {
		core = append(core, "serviceaccounts", "serviceaccounts/token")
	}
	spec := admission.ValidatingAdmissionPolicySpec{
		FailurePolicy: &fail,
		MatchConstraints: match([]admission.NamedRuleWithOperations{
			creations("", core...),
			creations("apps", "deployments", "replicasets", "statefulsets", "daemonsets", "controllerrevisions"),
			creations("batch", "jobs", "cronjobs"),
		}),
		Variables: []admission.Variable{
			{Name: "now", Expression: fmt.Sprintf(podLabels, "object")},
			{Name: "before", Expression: fmt.Sprintf(podLabels, "oldObject")},
			{Name: "controller", Expression: "request.userInfo.?groups.orValue([]).exists(g, g == 'system:serviceaccounts:kube-system') || " +
				"request.userInfo.?username.orValue('') == 'system:kube-controller-manager'"},
		},
	}
	for _, key := range unique(c.Labels) {
		spec.Validations = append(spec.Validations, labelValidation(key))
	}
	if len(c.ServiceAccounts) == 0 {
		return spec
	}
	spec.Variables = append(
		spec.Variables,
		admission.Variable{Name: "account", Expression: fmt.Sprintf(podAccount, "object")},
		admission.Variable{Name: "accountBefore", Expression: fmt.Sprintf(podAccount, "oldObject")},
		// The kubelet requests the tokens of the pods that run on its node, which were checked when they were created.
		admission.Variable{
			Name:       "kubelet",
			Expression: "request.?subResource.orValue('') == 'token' && request.userInfo.?groups.orValue([]).exists(g, g == 'system:nodes')",
		},
	)
	for _, template := range unique(c.ServiceAccounts) {
		spec.Validations = append(spec.Validations, accountValidation(template))
	}
	return spec
}

// labelValidation returns the rule about a label: the values before and after the request are the same, or the user has the right to both.
func labelValidation(key string) admission.Validation {
	forbidden := metav1.StatusReasonForbidden
	right := func(labels string) string {
		return fmt.Sprintf(
			"(!(%[1]s in variables.%[2]s) || authorizer.group('%[3]s').resource('%[4]s').namespace(request.namespace).name('%[5]s=' + "+
				"variables.%[2]s[%[1]s]).check('%[6]s').allowed())",
			quote(key),
			labels,
			LabelGroup,
			LabelResource,
			key,
			LabelVerb,
		)
	}
	same := fmt.Sprintf("variables.now[?%[1]s] == variables.before[?%[1]s]", quote(key))
	return admission.Validation{
		Expression: "variables.controller || " + same + " || " + right("now") + " && " + right("before"),
		Reason:     &forbidden,
		Message: fmt.Sprintf(
			"the label %s decides what a pod may reach and who may reach it: setting it needs the verb %s on %s.%s, resource name %s=VALUE, "+
				"in this namespace",
			key,
			LabelVerb,
			LabelResource,
			LabelGroup,
			key,
		),
	}
}

// accountValidation returns the rule about the service accounts whose names match a template: the account stays the same, or the user has the
// right to use it.
func accountValidation(template string) admission.Validation {
	forbidden := metav1.StatusReasonForbidden
	prefix, suffix, _ := strings.Cut(template, "{id}")
	names := fmt.Sprintf("variables.account.startsWith(%s) && variables.account.endsWith(%s)", quote(prefix), quote(suffix))
	if prefix != "" {
		// A name that is about to be generated has no suffix yet.
		names = fmt.Sprintf(
			"variables.account.startsWith(%s) && (variables.account.endsWith(%s) || request.?name.orValue('') == '')",
			quote(prefix),
			quote(suffix),
		)
	}
	right := fmt.Sprintf("authorizer.group('%s').resource('%s').namespace(request.namespace).name(variables.account).check('%s').allowed()",
		LabelGroup, AccountResource, AccountVerb)
	return admission.Validation{
		Expression: "variables.controller || variables.kubelet || variables.account == '' || " +
			"request.?subResource.orValue('') != 'token' && variables.account == variables.accountBefore || !(" + names + ") || " + right,
		Reason: &forbidden,
		Message: fmt.Sprintf(
			"service accounts named %s identify clients to Istio: creating one, running pods as one or requesting its token needs the verb %s "+
				"on %s.%s, resource name = name of the account, in this namespace",
			template,
			AccountVerb,
			AccountResource,
			LabelGroup,
		),
	}
}

func unique(in []string) []string { return slices.Compact(slices.Sorted(slices.Values(in))) }

// creations matches requests that create or update the resources.
func creations(group string, resources ...string) admission.NamedRuleWithOperations {
	r := rule(group, admission.NamespacedScope, resources...)
	r.Operations = []admission.OperationType{admission.Create, admission.Update}
	return r
}

func quote(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'" }
