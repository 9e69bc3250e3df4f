package dataplane

import (
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// Meshes returns the meshes of the registered members.
func Meshes(clusters []federation.Cluster, has func(member, key, value string) (has, read bool)) policy.Meshes {
	m := policy.Meshes{Has: has}
	for i := range clusters {
		m.Members = append(m.Members, policy.MeshMember{Name: clusters[i].Name, Mesh: clusters[i].Mesh})
	}
	return m
}

// HasSeveralMeshes reports whether the members are in more than one mesh, so that some cannot identify the pods of others.
func HasSeveralMeshes(clusters []federation.Cluster) bool { return Meshes(clusters, nil).HasSeveral() }
