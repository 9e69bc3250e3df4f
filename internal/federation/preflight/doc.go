// Package preflight checks whether a cluster can be a member: whether pushing to it would stop KubeFed for other
// members, and whether what is pushed would be enforced there.
//
// Read collects facts from a member and changes nothing in it. Assess is pure. The callers decide what follows from the
// findings: `kubectl acp cluster` refuses to register the cluster, and the adapter quarantines it.
package preflight
