// Package istio embeds what a member needs before KubeFed can create Istio's policies in it: the kind, taken from Istio, the root
// namespace, and the rights of the accounts of KubeFed and of the adapter. Nothing of it enforces anything.
package istio

import _ "embed"

// Kind is the CustomResourceDefinition of AuthorizationPolicy; `make generate` writes it.
//
//go:embed authorizationpolicies.yaml
var Kind []byte

// Roles are the root namespace and the roles with their bindings.
//
//go:embed roles.yaml
var Roles []byte
