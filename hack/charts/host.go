package main

import (
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/deploy"
)

const istioCondition = ".Values.global.istio.enabled"

// crds writes the CRDs into the chart acp-crds, and those of Istio's federated kinds under a condition. Helm keeps them: with a kind, an
// API server deletes all of its objects.
func crds(root string, files map[string]string) error {
	for folder, condition := range map[string]string{"deploy/crds": "", "deploy/kubefed": "", "deploy/kubefed/istio": istioCondition} {
		list, err := names(root, folder)
		if err != nil {
			return err
		}
		for _, name := range list {
			objects, err := objectsOf(root, name, "CustomResourceDefinition")
			if err != nil {
				return err
			}
			if len(objects) == 0 {
				continue
			}
			for _, o := range objects {
				keep(o)
			}
			text, err := template("acp-crds", objects, nil)
			if err != nil {
				return err
			}
			base := filepath.Base(name)
			if folder != "deploy/crds" {
				base = "types.kubefed.io_" + base
			}
			if condition != "" {
				text = when(condition, text)
			}
			files["deploy/charts/acp-crds/templates/crds/"+base] = text
		}
	}
	return nil
}

// objectsOf returns the objects of a kind in a file.
func objectsOf(root, name, kind string) ([]*unstructured.Unstructured, error) {
	text, err := read(root, name)
	if err != nil {
		return nil, err
	}
	all, err := documents(text)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, o := range all {
		if o.GetKind() == kind {
			out = append(out, o)
		}
	}
	return out, nil
}

// types writes the FederatedTypeConfigs. Helm keeps them: without them KubeFed no longer repairs what members enforce.
func types(root string, files map[string]string) error {
	for folder, condition := range map[string]string{
		"deploy/kubefed":       `include "acp.federatedTypes" .`,
		"deploy/kubefed/istio": `and (include "acp.federatedTypes" .) ` + istioCondition,
	} {
		list, err := names(root, folder)
		if err != nil {
			return err
		}
		var all []*unstructured.Unstructured
		for _, name := range list {
			objects, err := objectsOf(root, name, "FederatedTypeConfig")
			if err != nil {
				return err
			}
			all = append(all, objects...)
		}
		for _, o := range all {
			keep(o)
			o.SetNamespace(kubeFedMark)
		}
		text, err := template("acp", all, marks)
		if err != nil {
			return err
		}
		enforcer := "cilium"
		if strings.HasSuffix(folder, "istio") {
			enforcer = "istio"
		}
		files["deploy/charts/acp/templates/generated/types-"+enforcer+".yaml"] = when(condition, text)
	}
	return nil
}

// Marks stand for the names that a release chooses, until the template is written.
const (
	namespaceMark = "mark-namespace"
	kubeFedMark   = "mark-kubefed-namespace"
	adapterMark   = "mark-adapter"
	portalMark    = "mark-portal"
	collectorMark = "mark-collector"
)

var marks = map[string]string{
	namespaceMark: "{{ .Release.Namespace | quote }}",
	kubeFedMark:   "{{ .Values.kubefed.namespace | quote }}",
	adapterMark:   `{{ include "acp.adapter.name" . | quote }}`,
	portalMark:    `{{ include "acp.portal.name" . | quote }}`,
	collectorMark: `{{ include "acp.collector.name" . | quote }}`,
}

// registrationsRoles stands for the roles that the collector needs only if it follows the members that registrations name.
const registrationsRoles = "registrations"

// roles writes the roles of the programs, as deploy/rbac/host has them, and those for Istio.
func roles(root string, files map[string]string) error {
	text, err := deploy.Render(
		"rbac/host",
		deploy.Names{Namespace: namespaceMark, KubeFedNamespace: kubeFedMark, Adapter: adapterMark, Portal: portalMark, Collector: collectorMark},
	)
	if err != nil {
		return err
	}
	all, err := documents(text)
	if err != nil {
		return err
	}
	// Each program's roles are a file of their own: a program that does not run gets none.
	of := map[string][]*unstructured.Unstructured{}
	for _, o := range all {
		name := o.GetName()
		if name == collectorMark && o.GetNamespace() == kubeFedMark {
			name = registrationsRoles
		}
		of[name] = append(of[name], o)
	}
	for program, x := range map[string]struct{ mark, condition string }{
		"portal": {portalMark, ""}, "adapter": {adapterMark, ".Values.adapter.enabled"}, "collector": {collectorMark, ".Values.collector.enabled"},
		"collector-registrations": {registrationsRoles, "and .Values.collector.enabled .Values.collector.hubble.registrations"},
	} {
		text, err := template("acp", of[x.mark], marks)
		if err != nil {
			return err
		}
		if x.condition != "" {
			text = when(x.condition, text)
		}
		files["deploy/charts/acp/templates/generated/rbac-"+program+".yaml"] = text
	}
	if err := accessRequests(files); err != nil {
		return err
	}
	return istioRoles(root, files)
}

// portalNames matches names that begin with the portal's.
var portalNames = regexp.MustCompile(`\{\{ include "acp\.portal\.name" \. \| quote \}\}(-[a-z-]+)`)

// accessRequests writes what the portal's setting access-requests needs.
func accessRequests(files map[string]string) error {
	text, err := deploy.Render("access-requests", deploy.Names{Namespace: namespaceMark, Portal: portalMark})
	if err != nil {
		return err
	}
	all, err := documents(text)
	if err != nil {
		return err
	}
	if text, err = template("acp", all, marks); err != nil {
		return err
	}
	// The names begin with that of the portal, so that two releases in a cluster do not share them.
	text = portalNames.ReplaceAllString(text, `{{ printf "%s$1" (include "acp.portal.name" .) | quote }}`)
	files["deploy/charts/acp/templates/generated/access-requests.yaml"] = when(`get .Values.portal.settings "access-requests"`, text)
	return nil
}

func istioRoles(root string, files map[string]string) error {
	text, err := read(root, "deploy/kubefed/istio/3-roles.yaml")
	if err != nil {
		return err
	}
	all, err := documents(text)
	if err != nil {
		return err
	}
	for _, o := range all {
		o.SetName(adapterMark)
		if o.GetKind() != "RoleBinding" {
			continue
		}
		o.Object["roleRef"].(map[string]any)["name"] = adapterMark
		for _, s := range o.Object["subjects"].([]any) {
			subject := s.(map[string]any)
			subject["name"], subject["namespace"] = adapterMark, namespaceMark
		}
	}
	rendered, err := template("acp", all, marks)
	if err != nil {
		return err
	}
	files["deploy/charts/acp/templates/generated/rbac-istio.yaml"] = when("and .Values.adapter.enabled "+istioCondition, rendered)
	return nil
}

// monitoring copies the alerts and dashboards.
func monitoring(root string, files map[string]string) error {
	for _, folder := range []string{"alerts", "dashboards"} {
		list, err := names(root, "deploy/"+folder)
		if err != nil {
			return err
		}
		for _, name := range list {
			text, err := read(root, name)
			if err != nil {
				return err
			}
			files["deploy/charts/acp/files/"+folder+"/"+filepath.Base(name)] = text
		}
	}
	return nil
}
