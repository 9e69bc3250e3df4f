// Package membercluster reports the state of each member in a MemberCluster and as metrics: health, versions, findings,
// the remaining capacity for identities and policy entries, and how many of the units that are placed there are Realized.
//
// It decides nothing and writes to no member; its input is collected by other packages. A MemberCluster is created and
// deleted with the registration of the member.
package membercluster
