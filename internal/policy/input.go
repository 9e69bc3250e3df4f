package policy

import "github.com/acp-io/acp/api/v1alpha1"

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
	// Clusters are the members; nil: not known.
	Clusters []Cluster
	// KnownNames are exact names in the members' identities. NamesUnknown tells that the program does not read them.
	KnownNames   []string
	NamesUnknown bool
	// Identities, Unnamed and MapEntries are as in Input: how many identities names have, and the room of a policy map.
	Identities map[string]int
	Unnamed    int
	MapEntries int
	// Lacks is what cannot be brought to the members.
	Lacks Lacks
}

// NewInput is what every program makes its snapshots of, so that the same objects and the same fleet give the same units
// whoever compiles.
func NewInput(o Objects, f Fleet) Input {
	return Input{Policies: o.Policies, ResourceClasses: o.ResourceClasses, SubjectClasses: o.SubjectClasses, Resources: o.Resources, Workloads: o.Workloads,
		KnownNames: f.KnownNames, NamesUnknown: f.NamesUnknown, Lacks: f.Lacks, Members: len(f.Clusters), Clusters: f.Clusters,
		Identities: f.Identities, Unnamed: f.Unnamed, MapEntries: f.MapEntries}
}

// Objects are those of the input.
func (in *Input) Objects() Objects {
	return Objects{Policies: in.Policies, ResourceClasses: in.ResourceClasses, SubjectClasses: in.SubjectClasses, Resources: in.Resources, Workloads: in.Workloads}
}

// FleetOf are the members as the adapter reports on them. It does not report names, so these are unknown.
func FleetOf(members []*v1alpha1.MemberCluster) Fleet {
	f := Fleet{NamesUnknown: true}
	for _, m := range members {
		c := Cluster{Name: m.Name, Labels: m.Status.Labels}
		if c.Labels == nil && m.Status.State != "" {
			c.Labels = map[string]string{} // it has none; before the first report they are not known
		}
		c.NoRequests = NoRequestsIn(m)
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
	for i := range m.Status.Findings {
		if f := &m.Status.Findings[i]; f.Code == v1alpha1.FindingNoHTTP {
			return f.Message
		}
	}
	return ""
}
