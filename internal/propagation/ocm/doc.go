// Package ocm is the propagation engine of members in which the work agent of Open Cluster Management runs. The host has no credentials of
// such a member: each object is a ManifestWork in the member's namespace on the host, the agent applies it, and reports in its status
// what the member has.
//
// Not every part of a status identifies the version of the ManifestWork that it was computed for, and a status stays as it is while the agent is
// disconnected. So every version contains a nonce, which the agent repeats together with the result of comparing the object in the member with the
// recorded content: a report with another nonce is about an earlier version. Two further kinds of ManifestWorks change nothing in the member: a
// heartbeat shows that the agent is alive, and a read request whether the member has an object.
package ocm
