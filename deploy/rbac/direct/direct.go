// Package direct embeds what the account of the direct engine may do in a member that uses it, so that `kubectl acp cluster join
// --engine direct` gives it just that.
package direct

import _ "embed"

// Roles are the roles and their bindings.
//
//go:embed roles.yaml
var Roles []byte

// Istio are the roles for Istio's policies, and their bindings. They need Istio's root namespace.
//
//go:embed istio.yaml
var Istio []byte
