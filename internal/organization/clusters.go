package organization

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// placementViolations returns the bounds that a placement exceeds. It reads no members, so that the result does not change when a member
// joins or its labels change.
func placementViolations(b *v1alpha1.ClusterBounds, p *v1alpha1.Placement) []message.Message {
	if b == nil {
		return nil
	}
	var out []message.Message
	if p.Clusters != nil {
		for _, c := range *p.Clusters {
			if !slices.Contains(b.Names, c) {
				out = append(out, message.OrganizationBoundCluster(string(c), texts(b.Names)))
			}
		}
	}
	if p.ClusterSelector == nil {
		return out
	}
	if len(b.MatchLabels) == 0 {
		return append(out, message.OrganizationBoundSelector(texts(b.Names)))
	}
	for _, key := range slices.Sorted(maps.Keys(b.MatchLabels)) {
		if value := b.MatchLabels[key]; !requires(p.ClusterSelector, key, value) {
			out = append(out, message.OrganizationBoundClusterLabel(key+"="+value))
		}
	}
	return out
}

// requires reports whether a selector selects only objects with a value of a label.
func requires(s *metav1.LabelSelector, key, value string) bool {
	if got, ok := s.MatchLabels[key]; ok && got == value {
		return true
	}
	return slices.ContainsFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		return r.Key == key && r.Operator == metav1.LabelSelectorOpIn && len(r.Values) == 1 && r.Values[0] == value
	})
}
