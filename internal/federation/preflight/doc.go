// Package preflight checks whether a cluster can be a member: whether pushing to it would stop KubeFed for other
// members, and whether what is pushed would be enforced there.
//
// Read collects facts from a member and changes nothing in it. Assess is pure. The callers decide what follows from the severity of a finding:
// `kubectl acp cluster` registers a cluster only if it Passes, and the adapter quarantines a member with a finding of the severity Stops, and calls
// no unit Realized that a finding invalidates (Finding.Invalidates).
package preflight
