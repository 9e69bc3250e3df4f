package main

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const header = "{{- /* Written by hack/charts; make generate writes it again. */ -}}\n"

// documents returns the objects of a YAML text.
func documents(text string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, doc := range regexp.MustCompile(`(?m)^---\s*$`).Split(text, -1) {
		data, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			return nil, fmt.Errorf("parse YAML: %w", err)
		}
		if string(data) == "null" {
			continue
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(data); err != nil {
			return nil, fmt.Errorf("parse an object: %w", err)
		}
		unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
		unstructured.RemoveNestedField(u.Object, "status")
		out = append(out, u)
	}
	return out, nil
}

// labelMark stands where a template includes the chart's labels.
const labelMark = "CHART-LABELS"

var labelLine = regexp.MustCompile(`(?m)^( *)` + labelMark + `: ""$`)

// keep makes Helm leave an object behind when it is removed from the chart or the release is uninstalled.
func keep(u *unstructured.Unstructured) {
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["helm.sh/resource-policy"] = "keep"
	u.SetAnnotations(annotations)
}

// template returns the objects as a template that includes the chart's labels. Replacements maps marks in the objects to expressions of
// the template; everything else is taken literally.
func template(chart string, objects []*unstructured.Unstructured, replacements map[string]string) (string, error) {
	var b strings.Builder
	b.WriteString(header)
	for _, o := range objects {
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[labelMark] = ""
		o.SetLabels(labels)
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return "", fmt.Errorf("encode %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		b.WriteString("---\n")
		b.WriteString(strings.ReplaceAll(string(text), "{{", `{{ "{{" }}`))
	}
	out := labelLine.ReplaceAllStringFunc(b.String(), func(line string) string {
		indent := strings.Repeat(" ", strings.Index(line, labelMark))
		return fmt.Sprintf("%s{{- include %q . | nindent %d }}", indent, chart+".labels", len(indent))
	})
	for mark, expression := range replacements {
		out = strings.ReplaceAll(out, mark, expression)
	}
	return out, nil
}

// when puts a template between a condition and its end.
func when(condition, text string) string {
	return header + "{{- if " + condition + " }}\n" + strings.TrimPrefix(text, header) + "{{- end }}\n"
}
