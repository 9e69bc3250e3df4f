// Package membercluster reports the state of each member in a MemberCluster and as metrics: health, versions, findings,
// headroom, and how much of what is placed there is in force.
//
// It decides nothing and writes to no member; its input is collected by other packages. A MemberCluster is created and
// deleted with the registration of the member.
package membercluster
