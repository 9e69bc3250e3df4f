package guard

import (
	"fmt"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

// reservedLabels begin the keys of the labels that only ACP writes. A group of addresses with a class's label is selected
// by policies whoever made it.
var reservedLabels = []string{"acp.io/", "class.acp.io/"}

// managed is true of an object that ACP manages, as it is or as it was. It is total: no object makes it fail.
func managed() admission.Variable {
	labels := ""
	for i, prefix := range reservedLabels {
		if i > 0 {
			labels += " || "
		}
		labels += fmt.Sprintf("k.startsWith('%s')", prefix)
	}
	return admission.Variable{Name: "managed", Expression: fmt.Sprintf(
		"[object, oldObject].exists(o, o != null && "+
			"(o.metadata.?name.orValue('').startsWith('%[1]s') || o.metadata.?generateName.orValue('').startsWith('%[1]s') || "+
			"o.metadata.?labels.orValue({}).exists(k, %[2]s)))", v1alpha1.ObjectPrefix, labels)}
}

func breakGlass() admission.Variable {
	return admission.Variable{Name: "breakGlass", Expression: fmt.Sprintf("request.userInfo.?groups.orValue([]).exists(g, g == '%s')", BreakGlass)}
}

// guarded are the kinds that ACP pushes.
func guarded() []admission.NamedRuleWithOperations {
	return []admission.NamedRuleWithOperations{
		rule("cilium.io", admission.ClusterScope, "ciliumclusterwidenetworkpolicies", "ciliumcidrgroups"),
		rule("security.istio.io", admission.NamespacedScope, "authorizationpolicies"),
	}
}

// rule matches every write of resources in every version; writes of their status are none. It names no objects, because a
// request to delete all of them names none either.
func rule(group string, scope admission.ScopeType, resources ...string) admission.NamedRuleWithOperations {
	return admission.NamedRuleWithOperations{RuleWithOperations: admission.RuleWithOperations{
		Operations: []admission.OperationType{admission.Create, admission.Update, admission.Delete},
		Rule:       admission.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources, Scope: &scope},
	}}
}

// match is written in full, as the API server would complete it, so that what is there can be compared.
func match(rules []admission.NamedRuleWithOperations, namespaces ...string) *admission.MatchResources {
	equivalent, selector := admission.Equivalent, &metav1.LabelSelector{}
	if len(namespaces) > 0 {
		selector.MatchExpressions = []metav1.LabelSelectorRequirement{
			{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: namespaces}}
	}
	return &admission.MatchResources{NamespaceSelector: selector, ObjectSelector: &metav1.LabelSelector{}, ResourceRules: rules, MatchPolicy: &equivalent}
}

// writers lets the pusher and the break-glass group write managed objects, and only the latter the mark.
func writers() admission.ValidatingAdmissionPolicySpec {
	fail, forbidden := admission.Fail, metav1.StatusReasonForbidden
	return admission.ValidatingAdmissionPolicySpec{
		FailurePolicy:    &fail,
		MatchConstraints: match(append(guarded(), rule("", admission.NamespacedScope, "configmaps")), Namespace, istioRoot),
		Variables: []admission.Variable{managed(), breakGlass(),
			{Name: "configMap", Expression: "request.resource.resource == 'configmaps'"},
			{Name: "mark", Expression: fmt.Sprintf("variables.configMap && request.namespace == '%s' && "+
				"[object, oldObject].exists(o, o != null && o.metadata.?name.orValue('') == '%s')", Namespace, Mark)},
			{Name: "pusher", Expression: fmt.Sprintf("request.userInfo.?username.orValue('') == '%s'", Pusher)}},
		Validations: []admission.Validation{
			{Expression: "variables.configMap || !variables.managed || variables.pusher || variables.breakGlass", Reason: &forbidden,
				MessageExpression: fmt.Sprintf("'ACP manages ' + request.resource.resource + ' whose name begins with %s or that carry its labels: change the policy in ACP; "+
					"in an emergency the group %s may change them here'", v1alpha1.ObjectPrefix, BreakGlass),
				Message: "ACP manages this object: change the policy in ACP"},
			{Expression: "!variables.mark || variables.breakGlass", Reason: &forbidden,
				Message: fmt.Sprintf("only the group %s may downgrade this cluster or resume: use kubectl acp downgrade and kubectl acp resume", BreakGlass)},
		},
	}
}

// downgraded refuses the pusher. Its binding lets everything through while there is no mark.
func downgraded() admission.ValidatingAdmissionPolicySpec {
	fail, forbidden := admission.Fail, metav1.StatusReasonForbidden
	return admission.ValidatingAdmissionPolicySpec{
		ParamKind:        &admission.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
		FailurePolicy:    &fail,
		MatchConstraints: match(guarded(), istioRoot),
		Variables:        []admission.Variable{{Name: "reason", Expression: "params == null ? '' : params.?data.?reason.orValue('')"}},
		Validations: []admission.Validation{
			{Expression: fmt.Sprintf("request.userInfo.?username.orValue('') != '%s'", Pusher), Reason: &forbidden,
				MessageExpression: "'this cluster is downgraded and takes no policies until kubectl acp resume: ' + variables.reason",
				Message:           "this cluster is downgraded and takes no policies until kubectl acp resume"},
		},
	}
}

// markParam: without a mark there is nothing to refuse.
func markParam() *admission.ParamRef {
	allow := admission.AllowAction
	return &admission.ParamRef{Name: Mark, Namespace: Namespace, ParameterNotFoundAction: &allow}
}
