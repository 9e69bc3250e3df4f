// Package membercluster tells how each member stands: its state, versions, findings, headroom, and how much of what is
// placed there is in force, in a MemberCluster and as metrics.
//
// It decides nothing and writes to no member: what it tells was found by others, who hand it in. A MemberCluster is made
// with the registration of a member and goes with it.
package membercluster
