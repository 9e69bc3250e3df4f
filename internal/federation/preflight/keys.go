package preflight

import (
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation/guard"
)

// EnforcedBy reports whether a class names an enforcer. A class that names none is enforced by Cilium.
func EnforcedBy(c *v1alpha1.ResourceClass, name v1alpha1.EnforcerName) bool {
	return slices.Contains(c.Spec.Enforcers, name) || len(c.Spec.Enforcers) == 0 && name == v1alpha1.EnforcerCilium
}

// LabelKeys returns the labels by which classes identify pods. Cilium needs the labels of the classes that it enforces and
// those of all clients. Istio identifies clients by service accounts, and its policies select servers by labels.
func LabelKeys(resources []*v1alpha1.ResourceClass, subjects []*v1alpha1.SubjectClass) []Key {
	var out []Key
	cilium, istio := false, false
	for _, c := range resources {
		byCilium := EnforcedBy(c, v1alpha1.EnforcerCilium)
		cilium = cilium || byCilium
		byIstio := EnforcedBy(c, v1alpha1.EnforcerIstio)
		istio = istio || byIstio
		out = append(out, Key{Class: c.Name, Label: string(c.Spec.LabelKey), GuardedOnly: !byCilium, Istio: byIstio})
	}
	for _, c := range subjects {
		key := Key{Class: c.Name, Label: string(c.Spec.LabelKey), GuardedOnly: !cilium}
		if istio {
			key.ServiceAccount = c.Spec.ServiceAccountTemplate
		}
		if cilium || key.ServiceAccount != "" {
			out = append(out, key)
		}
	}
	return out
}

// CiliumLabels returns the labels that Cilium has to know, sorted.
func CiliumLabels(keys []Key) []string {
	return labelsOf(keys, func(k Key) bool { return !k.GuardedOnly })
}

// IstioLabels returns the labels by which Istio's policies select pods, sorted.
func IstioLabels(keys []Key) []string { return labelsOf(keys, func(k Key) bool { return k.Istio }) }

func labelsOf(keys []Key, include func(Key) bool) []string {
	var out []string
	for _, k := range keys {
		if include(k) {
			out = append(out, k.Label)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ClassOfAccount returns the class of subjects whose template gives a service account with a name, or "". A template without any other text than the id
// gives every name, and is not considered.
func ClassOfAccount(keys []Key, account string) string {
	for _, k := range keys {
		prefix, suffix, _ := strings.Cut(k.ServiceAccount, "{id}")
		if prefix+suffix != "" && len(account) > len(prefix+suffix) && strings.HasPrefix(account, prefix) && strings.HasSuffix(account, suffix) {
			return k.Class
		}
	}
	return ""
}

// Credentials returns the part of keys that the guard protects.
func Credentials(keys []Key) guard.Credentials {
	var out guard.Credentials
	for _, k := range keys {
		out.Labels = append(out.Labels, k.Label)
		if k.ServiceAccount != "" {
			out.ServiceAccounts = append(out.ServiceAccounts, k.ServiceAccount)
		}
	}
	return out
}
