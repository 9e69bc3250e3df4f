package preflight

import (
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

// InNoMesh reports whether the cluster is in a mesh with no other cluster: it declares this, or it declares nothing and
// has the ID 0, with which Cilium connects to no other cluster.
func (f Facts) InNoMesh() bool {
	return f.Mesh == federation.NoMesh || f.Mesh == "" && f.Cilium.ClusterID() == noMeshID
}

// meshFindings compares names and IDs of the clusters of one mesh: identities of clusters with the same name or ID are
// mistaken for each other's. Clusters of different meshes do not see each other's identities.
func meshFindings(f Facts, others []Facts) []Finding {
	if !f.Cilium.unread().IsZero() {
		return nil
	}
	var out []Finding
	for _, o := range others {
		if o.Member == f.Member || !o.Cilium.unread().IsZero() || !o.ConfigRead() || f.InNoMesh() || o.InNoMesh() || o.Mesh != f.Mesh {
			continue
		}
		if o.Cilium.ClusterName() == f.Cilium.ClusterName() {
			out = append(out, Finding{
				Severity: Fails,
				Code:     SameClusterName,
				Message: message.PreflightSameClusterName(
					message.Quoted(f.Cilium.ClusterName()),
					o.Member,
				),
				Remedy: message.RemedyOwnClusterName(federation.AnnotationMesh),
			})
		}
		if o.Cilium.ClusterID() == f.Cilium.ClusterID() {
			out = append(out, Finding{
				Severity: Fails,
				Code:     SameClusterID,
				Message: message.PreflightSameClusterID(
					message.Quoted(f.Cilium.ClusterID()),
					o.Member,
				),
				Remedy: message.RemedyOwnClusterID(federation.AnnotationMesh),
			})
		}
	}
	if f.Mesh != federation.NoMesh && f.Cilium.ClusterID() == noMeshID && len(others) > 0 {
		out = append(out, Finding{Severity: Warns, Code: MeshUndeclared, Message: message.PreflightMeshUndeclared(),
			Remedy: message.RemedyAnnotate(federation.AnnotationMesh + "=" + federation.NoMesh)})
	}
	return out
}
