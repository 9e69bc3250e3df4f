// Package preflight judges whether a cluster can be a member: whether pushing to it would stop KubeFed for the others,
// and whether what is pushed would be enforced there.
//
// Read gathers facts from a member and changes nothing in it. Assess is pure. What follows from the findings is decided
// by who asked: `kubectl acp cluster` refuses to register, the adapter quarantines.
package preflight
