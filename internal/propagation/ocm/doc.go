// Package ocm is the propagation engine of members in which the work agent of Open Cluster Management runs. The host has no credentials of
// such a member: each object is a ManifestWork in the member's namespace on the host, the agent applies it, and reports in its status
// what the member has.
//
// A status says for which version of a ManifestWork it was computed only in part, and stays as it is while the agent is away. So every
// version contains a nonce, which the agent repeats together with the result of comparing the object in the member with the recorded
// content: an answer with another nonce is about an earlier version. A heartbeat of the same kind shows that the agent works at all.
package ocm
