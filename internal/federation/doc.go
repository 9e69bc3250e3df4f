// Package federation represents what ACP reads from KubeFed and the member clusters: the Federated objects, placement,
// propagation status, the registry of members, and the read-back of members.
//
// It only reads members. The subpackages preflight and membership check clusters, and register and unregister them. It
// does not depend on policies and does not compute the state of a unit, which the controllers do. It may import api,
// client-go and KubeFed's API types.
package federation
