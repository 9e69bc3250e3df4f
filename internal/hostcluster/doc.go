// Package hostcluster contains what all programs need that watch ACP's kinds in the host cluster: how to connect,
// whether the cluster serves the kinds, which objects make up a policy snapshot, and which of their changes can alter
// one. It may import api, internal/policy and Kubernetes clients. It starts no watches, writes nothing and keeps no
// state.
package hostcluster
