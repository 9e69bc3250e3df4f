package manifest

import (
	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// Fleet returns the registered members with the dataplanes that the adapter reports. If no registration was read,
// it contains the members that the adapter reports, and stores them in Members.
func (s *Set) Fleet() policy.Fleet {
	f := registry.FleetOf(s.Reports)
	f.NamesUnknown = false
	if len(s.Members) == 0 {
		for _, r := range s.Reports {
			s.Members = append(s.Members, Member{Name: r.Name, Labels: r.Status.Labels, Annotations: annotationsOf(r)})
		}
		return f
	}
	var registered []policy.Cluster
	for _, m := range s.Members {
		c := policy.Cluster{Name: m.Name, Labels: m.Labels, Istio: m.Annotations[federation.AnnotationIstio],
			IstioRoot: federation.ParseLocations(m.Annotations).NonDefaultIstioRoot()}
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		registered = append(registered, c)
	}
	return f.WithClusters(registered)
}

// annotationsOf returns the annotations of a member's registration that a report repeats.
func annotationsOf(r *v1alpha1.MemberCluster) map[string]string {
	out := map[string]string{federation.AnnotationIstio: r.Status.Istio, federation.AnnotationIstioRoot: r.Status.IstioRootNamespace}
	if r.Status.State == v1alpha1.MemberClusterLeaving {
		out[federation.AnnotationLeaving] = "reported"
	}
	return out
}
