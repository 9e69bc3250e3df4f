// Package membership makes clusters members and takes them out again: the accounts in the member, the Secrets and the
// KubeFedCluster on the host. It acts with the credentials of an administrator of both, for `kubectl acp cluster`.
//
// Nothing is registered that preflight speaks against, and nothing is unregistered that would leave policies behind,
// unless that is forced. Every step can be repeated: what is there already stays, and what was interrupted goes on.
package membership
