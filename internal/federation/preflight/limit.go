package preflight

// Limits of identities (pkg/identity and pkg/clustermesh/types of Cilium 1.20): a cluster numbers its identities in 16
// bits, or in 15 if a mesh may have 511 clusters. Without a cluster ID of its own the lowest numbers are reserved.
const (
	numbers     = 1 << 16
	largeMesh   = "511"
	reservedIDs = 256
)

// IdentityLimit returns the number of pod identities that the cluster can have. For a configuration that was not read,
// it is the limit of the defaults.
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
