package preflight

import (
	"fmt"

	"github.com/acp-io/acp/internal/federation"
)

// InNoMesh reports whether the cluster is in a mesh with no other cluster: it declares this, or it declares nothing and
// has the ID 0, with which Cilium connects to no other cluster.
func (f Facts) InNoMesh() bool {
	return f.Mesh == federation.NoMesh || f.Mesh == "" && f.Cilium.ClusterID() == noMeshID
}

// meshFindings compares names and IDs of the clusters of one mesh: identities of clusters with the same name or ID are
// mistaken for each other's. Clusters of different meshes do not see each other's identities.
func meshFindings(f Facts, others []Facts) []Finding {
	if f.Cilium.unread() != "" {
		return nil
	}
	var out []Finding
	for _, o := range others {
		if o.Member == f.Member || o.Cilium.unread() != "" || o.Unreachable != "" || f.InNoMesh() || o.InNoMesh() || o.Mesh != f.Mesh {
			continue
		}
		const apart = ", or declare its mesh (annotation " + federation.AnnotationMesh + " of the KubeFedCluster) if the two are not in one"
		if o.Cilium.ClusterName() == f.Cilium.ClusterName() {
			out = append(out, Finding{Severity: Fails, Code: SameClusterName,
				Message: fmt.Sprintf("Cilium's cluster-name %q is also that of member %s", f.Cilium.ClusterName(), o.Member), Do: "give each cluster of a mesh a name of its own" + apart})
		}
		if o.Cilium.ClusterID() == f.Cilium.ClusterID() {
			out = append(out, Finding{Severity: Fails, Code: SameClusterID,
				Message: fmt.Sprintf("Cilium's cluster-id %q is also that of member %s", f.Cilium.ClusterID(), o.Member), Do: "give each cluster of a mesh an id of its own" + apart})
		}
	}
	if f.Mesh != federation.NoMesh && f.Cilium.ClusterID() == noMeshID && len(others) > 0 {
		out = append(out, Finding{Severity: Warns, Code: MeshUndeclared, Message: "Cilium's cluster-id is 0, so it is in no mesh, and its KubeFedCluster does not say so: " +
			"nobody is told that policies there do not know pods of other clusters by name", Do: "annotate the KubeFedCluster with " + federation.AnnotationMesh + "=" + federation.NoMesh})
	}
	return out
}
