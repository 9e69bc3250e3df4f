// Package ocm embeds what the pull engine needs besides Open Cluster Management itself: the rights of the work agent in a member, and those
// of the adapter in the member's namespace on the host. `kubectl acp cluster join --engine ocm` gives just that.
package ocm

import _ "embed"

// Roles are the roles of the work agent in a member, and their bindings.
//
//go:embed roles.yaml
var Roles []byte

// Istio are the roles of the work agent for Istio's policies, and their bindings. They need Istio's root namespace.
//
//go:embed istio.yaml
var Istio []byte

// Host are the role of the adapter in the member's namespace on the host, and its binding, without the namespace and the account.
//
//go:embed host.yaml
var Host []byte
