// Package federation is the access to the fleet: on the host, the records of what members must have (Federated objects, Objects), the
// registrations of the members (KubeFedClusters, Cluster) and their quarantine (Registrations); in the members, the watches that read back ACP's
// objects (Fleet), the policies of others (ForeignPolicies, IstioAllows), pod identities (Identities), and the reports about nodes (NodeReports).
//
// It writes on the host only. What is recorded there is written into members by the engines of package propagation. Of the subpackages, preflight
// checks clusters, membership registers and unregisters them, and memberdowngrade opens the policies of one member without the host. The package
// does not depend on policies and does not compute the state of a unit, which the controllers do. It may import api, client-go and KubeFed's API
// types.
package federation
