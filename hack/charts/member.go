package main

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/internal/federation/guard"
)

const memberFolder = "deploy/charts/acp-member/templates/generated/"

// memberCondition holds in a release with the objects that kubectl acp cluster join would write.
const memberCondition = ".Values.member.enabled"

// members writes what a member gets: the roles of deploy/rbac/member, the guard, and what Istio's policies need.
func members(root string, files map[string]string) error {
	list, err := names(root, "deploy/rbac/member")
	if err != nil {
		return err
	}
	var all []*unstructured.Unstructured
	for _, name := range list {
		text, err := read(root, name)
		if err != nil {
			return err
		}
		objects, err := documents(text)
		if err != nil {
			return err
		}
		all = append(all, objects...)
	}
	text, err := template("acp-member", all, nil)
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"cilium-config": "config", "cilium": "agents", "cilium-envoy": "envoy"} {
		if text, err = extraName(text, name, value); err != nil {
			return err
		}
	}
	files[memberFolder+"roles.yaml"] = when(memberCondition, text)
	if err := guards(files); err != nil {
		return err
	}
	if err := nodeMember(root, files); err != nil {
		return err
	}
	return istioMember(root, files)
}

// nodeMember writes the kind of the reports of acp-node, and what acp-node may do. Reports are worth nothing without acp-node, so the kind is
// removed with it.
func nodeMember(root string, files map[string]string) error {
	for _, name := range []string{"nodereports", "rbac"} {
		text, err := read(root, "deploy/node/"+name+".yaml")
		if err != nil {
			return err
		}
		objects, err := documents(text)
		if err != nil {
			return err
		}
		if text, err = template("acp-member", objects, nil); err != nil {
			return err
		}
		files[memberFolder+"node-"+name+".yaml"] = when(".Values.node.enabled", text)
	}
	return nil
}

// extraName lets a role read an object of another name, too, where the dataplane's part has another one. In the roles, names of objects
// are entries of lists with this indent.
func extraName(text, name, value string) (string, error) {
	line := "  - " + name + "\n"
	if strings.Count(text, line) != 1 {
		return "", fmt.Errorf("the roles of members do not have %s once", name)
	}
	return strings.Replace(text, line, fmt.Sprintf("%s  {{- include \"acp-member.extraName\" (list .Values.cilium.%s %q) }}\n", line, value, name), 1), nil
}

// guards writes the guard.
func guards(files map[string]string) error {
	objects, err := guard.Objects(guard.Credentials{})
	if err != nil {
		return fmt.Errorf("render the guard: %w", err)
	}
	text, err := template("acp-member", objects, nil)
	if err != nil {
		return err
	}
	files[memberFolder+"guard.yaml"] = when("and "+memberCondition+" .Values.guard.enabled", text)
	return credentials(files)
}

// Marks of credentials stand for what a release lists.
const (
	labelCredential = "mark-label"
	prefixMark      = "mark-prefix"
	suffixMark      = "mark-suffix"
)

// credentials writes the policy about credentials of workloads. It has a rule for each label and each template of accounts, so the template
// of the chart repeats the rule of a mark.
func credentials(files map[string]string) error {
	both, err := credentialPolicy(guard.Credentials{Labels: []string{labelCredential}, ServiceAccounts: []string{prefixMark + "{id}" + suffixMark}})
	if err != nil {
		return err
	}
	labels, err := credentialPolicy(guard.Credentials{Labels: []string{labelCredential}})
	if err != nil {
		return err
	}
	bare, err := credentialPolicy(guard.Credentials{ServiceAccounts: []string{"{id}" + suffixMark}})
	if err != nil {
		return err
	}
	rule, err := items(both.validations[:1])
	if err != nil {
		return err
	}
	prefixed, err := items(both.validations[1:])
	if err != nil {
		return err
	}
	unprefixed, err := items(bare.validations)
	if err != nil {
		return err
	}
	variables, err := items(both.variables[len(labels.variables):])
	if err != nil {
		return err
	}
	const variablesMark, validationsMark = "mark-variables", "mark-validations"
	spec := both.objects[0].Object["spec"].(map[string]any)
	spec["variables"] = append(labels.variables, variablesMark)
	spec["validations"] = []any{validationsMark}
	text, err := template("acp-member", both.objects, nil)
	if err != nil {
		return err
	}
	accounts := "{{- if .Values.guard.serviceAccountTemplates }}\n%s{{- end }}\n"
	for from, to := range map[string]string{
		"      - serviceaccounts\n      - serviceaccounts/token\n": "      " +
			fmt.Sprintf(accounts, "      - serviceaccounts\n      - serviceaccounts/token\n      "),
		"  - " + variablesMark + "\n": "  " + fmt.Sprintf(accounts, variables+"  "),
		"  - " + validationsMark + "\n": `  {{- range .Values.guard.classLabels | uniq | sortAlpha }}
` + strings.ReplaceAll(rule, labelCredential, "{{ . }}") + `  {{- end }}
  {{- range .Values.guard.serviceAccountTemplates | uniq | sortAlpha }}
  {{- $parts := splitList "{id}" . }}
  {{- if first $parts }}
` + accountRule(prefixed) + `  {{- else }}
` + accountRule(unprefixed) + `  {{- end }}
  {{- end }}
`,
	} {
		if strings.Count(text, from) != 1 {
			return fmt.Errorf("the policy about credentials does not have %q once", from)
		}
		text = strings.Replace(text, from, to, 1)
	}
	condition := "and " + memberCondition + " .Values.guard.enabled (or .Values.guard.classLabels .Values.guard.serviceAccountTemplates)"
	files[memberFolder+"guard-credentials.yaml"] = when(condition, text)
	return nil
}

func accountRule(text string) string {
	return strings.NewReplacer(prefixMark, "{{ first $parts }}", suffixMark, "{{ last $parts }}").Replace(text)
}

type policyParts struct {
	objects                []*unstructured.Unstructured
	variables, validations []any
}

func credentialPolicy(c guard.Credentials) (policyParts, error) {
	objects, err := guard.Objects(c)
	if err != nil {
		return policyParts{}, fmt.Errorf("render the guard: %w", err)
	}
	p := policyParts{objects: objects[len(objects)-2:]}
	spec := p.objects[0].Object["spec"].(map[string]any)
	p.variables, p.validations = spec["variables"].([]any), spec["validations"].([]any)
	return p, nil
}

// items encodes the items of a list in the spec of an object.
func items(list []any) (string, error) {
	text, err := yaml.Marshal(list)
	if err != nil {
		return "", fmt.Errorf("encode a part of a policy: %w", err)
	}
	return "  " + strings.ReplaceAll(strings.TrimSuffix(string(text), "\n"), "\n", "\n  ") + "\n", nil
}

// istioMember writes what KubeFed needs before it can distribute Istio's policies. Istio's own chart may have installed its kind.
func istioMember(root string, files map[string]string) error {
	for name, condition := range map[string]string{
		"roles":                 "and " + memberCondition + " .Values.istio.enabled",
		"authorizationpolicies": "and " + memberCondition + " .Values.istio.enabled .Values.istio.installCRD",
	} {
		text, err := read(root, "deploy/istio/"+name+".yaml")
		if err != nil {
			return err
		}
		objects, err := documents(text)
		if err != nil {
			return err
		}
		for _, o := range objects {
			if k := o.GetKind(); k == "CustomResourceDefinition" || k == "Namespace" {
				keep(o)
			}
		}
		if text, err = template("acp-member", objects, nil); err != nil {
			return err
		}
		files[memberFolder+"istio-"+name+".yaml"] = when(condition, text)
	}
	return nil
}

// kubefed copies KubeFed's own kinds into the folder whose CRDs Helm creates before it looks at the templates, which hold an object of one
// of them. Helm neither changes nor deletes them; nor will KubeFed, whose project is archived.
func kubefed(root string, files map[string]string) error {
	text, err := read(root, "deploy/kubefed/control-plane/crds.yaml")
	if err != nil {
		return err
	}
	files["deploy/charts/acp-kubefed/crds/kubefed.yaml"] = text
	return nil
}
