// Package hostcluster owns what every program that follows ACP's kinds has in common: how the host cluster is reached,
// whether it serves the kinds, what of them a policy snapshot is made of, and which of their changes can alter one. It
// may import api, internal/policy and Kubernetes clients; it watches nothing, writes nothing and keeps no state.
package hostcluster
