// Package federation owns what ACP knows of KubeFed and of the member clusters: the Federated objects on the wire,
// placement, propagation status, the registry of members, and reading the members back.
//
// It reports what is there and writes nothing to members; preflight and membership below it judge clusters, and let them
// join and leave. It knows no policies and decides no state of a unit; that is the controllers' work. It may import api,
// client-go and KubeFed's API types.
package federation
