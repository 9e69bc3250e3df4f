package policy

import (
	"cmp"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// Objects are the objects of the host cluster that decisions depend on.
type Objects struct {
	Policies        []*v1alpha1.AccessControlPolicy
	ResourceClasses []*v1alpha1.ResourceClass
	SubjectClasses  []*v1alpha1.SubjectClass
	Resources       []*v1alpha1.ProtectedResource
	Workloads       []*v1alpha1.ExternalWorkload
}

// Fleet is the part of the input that is read from the members and their registrations, not from objects of the host
// cluster.
type Fleet struct {
	// Clusters are the members, by name, or nil if they are not known.
	Clusters []Cluster
	// KnownNames are exact names in the members' identities. NamesUnknown reports whether the program does not read them.
	KnownNames   []string
	NamesUnknown bool
	// Unsupported lists what cannot be pushed to the members.
	Unsupported Unsupported
	// Translators determine what the enforcers other than Cilium leave out; see Input.
	Translators map[v1alpha1.EnforcerName]Translator
}

// NewInput combines objects and fleet. Every program builds its snapshots from it, so that the same objects and the
// same fleet give the same units in every program.
func NewInput(o Objects, f Fleet) Input {
	return Input{
		Policies:        o.Policies,
		ResourceClasses: o.ResourceClasses,
		SubjectClasses:  o.SubjectClasses,
		Resources:       o.Resources,
		Workloads:       o.Workloads,
		KnownNames:      f.KnownNames,
		NamesUnknown:    f.NamesUnknown,
		Unsupported:     f.Unsupported,
		Members:         len(f.Clusters),
		Clusters:        f.Clusters,
		Translators:     f.Translators,
	}
}

// Objects returns the objects of the input.
func (in *Input) Objects() Objects {
	return Objects{
		Policies:        in.Policies,
		ResourceClasses: in.ResourceClasses,
		SubjectClasses:  in.SubjectClasses,
		Resources:       in.Resources,
		Workloads:       in.Workloads,
	}
}

// Fleet returns the fleet of the input.
func (in *Input) Fleet() Fleet {
	return Fleet{Clusters: in.Clusters, KnownNames: in.KnownNames, NamesUnknown: in.NamesUnknown, Unsupported: in.Unsupported, Translators: in.Translators}
}

// FleetOf returns the members as the adapter reports them: their labels, and the limits and capabilities of their
// dataplanes. The adapter does not report names, so NamesUnknown is set. Programs call registry.FleetOf, which adds the
// translators of the built-in enforcers.
func FleetOf(reports []*v1alpha1.MemberCluster, translators map[v1alpha1.EnforcerName]Translator) Fleet {
	f := Fleet{NamesUnknown: true, Translators: translators}
	for _, m := range reports {
		c := Cluster{Name: m.Name, Labels: m.Status.Labels, Dataplane: m.Status.Dataplane, Istio: m.Status.Istio, IstioRoot: m.Status.IstioRootNamespace}
		if c.Labels == nil && m.Status.State != "" {
			c.Labels = map[string]string{} // no labels; before the first report the labels are not known
		}
		c.NoRequests = NoRequestsIn(m)
		f.Clusters = append(f.Clusters, c)
		f.Unsupported.Groups = f.Unsupported.Groups || c.Dataplane != nil && c.Dataplane.NoGroups
	}
	slices.SortFunc(f.Clusters, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
	return f
}

// WithClusters returns the fleet with the given registered members, for a program that reads the registrations: their
// labels, and what they declare about their Istio. Reported data about their dataplanes is kept.
func (f Fleet) WithClusters(clusters []Cluster) Fleet {
	reported := f.Clusters
	f.Clusters = nil
	for _, c := range clusters {
		if i := slices.IndexFunc(reported, func(r Cluster) bool { return r.Name == c.Name }); i >= 0 {
			c.Dataplane, c.NoRequests = reported[i].Dataplane, reported[i].NoRequests
		}
		f.Clusters = append(f.Clusters, c)
	}
	return f
}

// NoRequestsIn returns the reason why Cilium's HTTP rules are not enforced in a member, or the zero Message if they are. For a member
// that was not read yet that is unknown, and unknown counts as not enforced.
func NoRequestsIn(m *v1alpha1.MemberCluster) message.Message {
	if m.Status.State == "" {
		return message.MemberNotReadYet()
	}
	if d := m.Status.Dataplane; d != nil {
		return message.Restore(d.NoHTTP, d.NoHTTPCode, d.NoHTTPParams)
	}
	for i := range m.Status.Findings {
		if f := &m.Status.Findings[i]; f.Code == v1alpha1.FindingNoHTTP {
			return message.Restore(f.Message, f.MessageCode, f.MessageParams)
		}
	}
	return message.Message{}
}
