// Package membership registers clusters as members and unregisters them: it creates the accounts in the member, and the
// Secrets and the KubeFedCluster on the host. It uses the credentials of an administrator of both, for `kubectl acp
// cluster`.
//
// A cluster is registered only if it passes the preflight, and unregistered only if no policies are left behind, unless
// that is forced. Every step can be repeated: what exists stays, and an interrupted call is continued.
package membership
