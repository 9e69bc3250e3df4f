package policy

import (
	"cmp"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Objects are the objects of the host cluster that take part in decisions.
type Objects struct {
	Policies        []*v1alpha1.AccessControlPolicy
	ResourceClasses []*v1alpha1.ResourceClass
	SubjectClasses  []*v1alpha1.SubjectClass
	Resources       []*v1alpha1.ProtectedResource
	Workloads       []*v1alpha1.ExternalWorkload
}

// Fleet is what a program knows of the members, which nobody writes into the host cluster's objects.
type Fleet struct {
	// Clusters are the members, by name; nil: not known.
	Clusters []Cluster
	// KnownNames are exact names in the members' identities. NamesUnknown tells that the program does not read them.
	KnownNames   []string
	NamesUnknown bool
	// Lacks is what cannot be brought to the members.
	Lacks Lacks
}

// NewInput is what every program makes its snapshots of, so that the same objects and the same fleet give the same units
// whoever compiles.
func NewInput(o Objects, f Fleet) Input {
	return Input{Policies: o.Policies, ResourceClasses: o.ResourceClasses, SubjectClasses: o.SubjectClasses, Resources: o.Resources, Workloads: o.Workloads,
		KnownNames: f.KnownNames, NamesUnknown: f.NamesUnknown, Lacks: f.Lacks, Members: len(f.Clusters), Clusters: f.Clusters}
}

// Objects are those of the input.
func (in *Input) Objects() Objects {
	return Objects{Policies: in.Policies, ResourceClasses: in.ResourceClasses, SubjectClasses: in.SubjectClasses, Resources: in.Resources, Workloads: in.Workloads}
}

// Fleet is that of the input.
func (in *Input) Fleet() Fleet {
	return Fleet{Clusters: in.Clusters, KnownNames: in.KnownNames, NamesUnknown: in.NamesUnknown, Lacks: in.Lacks}
}

// FleetOf are the members as the adapter reports on them: for each its labels, and what its dataplane can hold and do. The adapter
// does not report names, so these are unknown.
func FleetOf(reports []*v1alpha1.MemberCluster) Fleet {
	f := Fleet{NamesUnknown: true}
	for _, m := range reports {
		c := Cluster{Name: m.Name, Labels: m.Status.Labels, Dataplane: m.Status.Dataplane}
		if c.Labels == nil && m.Status.State != "" {
			c.Labels = map[string]string{} // it has none; before the first report they are not known
		}
		c.NoRequests = NoRequestsIn(m)
		f.Clusters = append(f.Clusters, c)
		f.Lacks.Groups = f.Lacks.Groups || c.Dataplane != nil && c.Dataplane.NoGroups
	}
	slices.SortFunc(f.Clusters, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
	return f
}

// Registered is the fleet of the members that are registered, in a program that reads the registrations. What is reported about
// them stays.
func (f Fleet) Registered(clusters []Cluster) Fleet {
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

// NoRequestsIn says why a member does not get Cilium's rules about requests, as far as the adapter reports; "": it gets them. Of a
// member that was not read yet that is not known, and what is not known is not enforced.
func NoRequestsIn(m *v1alpha1.MemberCluster) string {
	if m.Status.State == "" {
		return "the member was not read yet"
	}
	if d := m.Status.Dataplane; d != nil {
		return d.NoHTTP
	}
	for i := range m.Status.Findings {
		if f := &m.Status.Findings[i]; f.Code == v1alpha1.FindingNoHTTP {
			return f.Message
		}
	}
	return ""
}
