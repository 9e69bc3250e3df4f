package preflight

// Numbers of identities (pkg/identity and pkg/clustermesh/types of Cilium 1.20): a cluster numbers its own in 16 bits, or in
// 15 where a mesh may have 511 clusters. Without a cluster id of its own it leaves the lowest to reserved ones.
const (
	numbers     = 1 << 16
	largeMesh   = "511"
	reservedIDs = 256
)

// IdentityLimit is how many identities of pods the cluster can have. Of a configuration that was not read, it is that of the
// defaults.
func (c Cilium) IdentityLimit() int32 {
	limit := int32(numbers)
	if c.base("max-connected-clusters") == largeMesh {
		limit /= 2
	}
	if c.ClusterID() == noMeshID {
		limit -= reservedIDs
	}
	return limit
}
