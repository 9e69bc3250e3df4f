package guard

import (
	"fmt"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation/objectkind"
)

// reservedLabels are the prefixes of the label keys that only ACP may write, because policies select a group of
// addresses by a class's label, whoever created the group.
var reservedLabels = []string{"acp.io/", "class.acp.io/"}

// managed returns a variable that is true for an object that ACP manages, before or after the request. Its expression
// never fails.
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

// guarded returns rules for the kinds that ACP pushes, one for each group and scope.
func guarded() []admission.NamedRuleWithOperations {
	var out []admission.NamedRuleWithOperations
	for _, k := range objectkind.All() {
		scope := admission.ClusterScope
		if k.Namespace != "" {
			scope = admission.NamespacedScope
		}
		group, resource := k.TargetResource.Group, k.TargetResource.Resource
		i := slices.IndexFunc(out, func(r admission.NamedRuleWithOperations) bool { return r.APIGroups[0] == group && *r.Scope == scope })
		if i < 0 {
			out = append(out, rule(group, scope, resource))
			continue
		}
		out[i].Resources = append(out[i].Resources, resource)
	}
	return out
}

// rule matches every write of resources in every version, except writes of their status. It names no objects, because a
// request to delete a collection names none either.
func rule(group string, scope admission.ScopeType, resources ...string) admission.NamedRuleWithOperations {
	return admission.NamedRuleWithOperations{RuleWithOperations: admission.RuleWithOperations{
		Operations: []admission.OperationType{admission.Create, admission.Update, admission.Delete},
		Rule:       admission.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources, Scope: &scope},
	}}
}

// match returns constraints with all defaults of the API server filled in, so that they can be compared with what is
// installed.
func match(rules []admission.NamedRuleWithOperations, namespaces ...string) *admission.MatchResources {
	equivalent, selector := admission.Equivalent, &metav1.LabelSelector{}
	if len(namespaces) > 0 {
		selector.MatchExpressions = []metav1.LabelSelectorRequirement{
			{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: namespaces}}
	}
	return &admission.MatchResources{NamespaceSelector: selector, ObjectSelector: &metav1.LabelSelector{}, ResourceRules: rules, MatchPolicy: &equivalent}
}

// isPusher returns an expression that is true for requests of the engines' users.
func isPusher(pushers []string) string {
	const user = "request.userInfo.?username.orValue('')"
	if len(pushers) == 1 {
		return fmt.Sprintf("%s == '%s'", user, pushers[0])
	}
	return fmt.Sprintf("%s in ['%s']", user, strings.Join(pushers, "', '"))
}

// isNotPusher returns an expression that is true for requests of all others.
func isNotPusher(pushers []string) string {
	if len(pushers) == 1 {
		return fmt.Sprintf("request.userInfo.?username.orValue('') != '%s'", pushers[0])
	}
	return "!(" + isPusher(pushers) + ")"
}

// writers lets only the pusher and the break-glass group write managed objects, and only the latter the mark.
func writers(pushers []string) admission.ValidatingAdmissionPolicySpec {
	fail, forbidden := admission.Fail, metav1.StatusReasonForbidden
	rules := append(guarded(), rule("", admission.NamespacedScope, "configmaps"))
	return admission.ValidatingAdmissionPolicySpec{
		FailurePolicy:    &fail,
		MatchConstraints: match(rules, append([]string{Namespace}, objectkind.Namespaces()...)...),
		Variables: []admission.Variable{managed(), breakGlass(),
			{Name: "configMap", Expression: "request.resource.resource == 'configmaps'"},
			{Name: "mark", Expression: fmt.Sprintf("variables.configMap && request.namespace == '%s' && "+
				"[object, oldObject].exists(o, o != null && o.metadata.?name.orValue('') == '%s')", Namespace, DowngradeMarkName)},
			{Name: "pusher", Expression: isPusher(pushers)}},
		Validations: []admission.Validation{
			{
				Expression: "variables.configMap || !variables.managed || variables.pusher || variables.breakGlass",
				Reason:     &forbidden,
				MessageExpression: fmt.Sprintf(
					"'ACP manages ' + request.resource.resource + ' whose name begins with %s or that carry its labels: change the policy in ACP; "+
						"in an emergency the group %s may change them here'",
					v1alpha1.ObjectPrefix,
					BreakGlass,
				),
				Message: "ACP manages this object: change the policy in ACP",
			},
			{Expression: "!variables.mark || variables.breakGlass", Reason: &forbidden,
				Message: fmt.Sprintf("only the group %s may downgrade this cluster or resume: use kubectl acp downgrade and kubectl acp resume", BreakGlass)},
		},
	}
}

// downgraded refuses the pusher. Its binding admits everything while there is no mark.
func downgraded(pushers []string) admission.ValidatingAdmissionPolicySpec {
	fail, forbidden := admission.Fail, metav1.StatusReasonForbidden
	return admission.ValidatingAdmissionPolicySpec{
		ParamKind:        &admission.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
		FailurePolicy:    &fail,
		MatchConstraints: match(guarded(), objectkind.Namespaces()...),
		Variables:        []admission.Variable{{Name: "reason", Expression: "params == null ? '' : params.?data.?reason.orValue('')"}},
		Validations: []admission.Validation{
			{Expression: isNotPusher(pushers), Reason: &forbidden,
				MessageExpression: "'this cluster is downgraded and takes no policies until kubectl acp resume: ' + variables.reason",
				Message:           "this cluster is downgraded and takes no policies until kubectl acp resume"},
		},
	}
}

// markParam returns a reference to the mark that admits everything if the mark does not exist.
func markParam() *admission.ParamRef {
	allow := admission.AllowAction
	return &admission.ParamRef{Name: DowngradeMarkName, Namespace: Namespace, ParameterNotFoundAction: &allow}
}
