// Package fleet makes a fleet of real Kubernetes API servers on this machine: a host cluster and two members, with
// KubeFed between them, and everything that they need to know each other (certificates, tokens, kubeconfigs, RBAC,
// CRDs).
//
// It owns the layout of the state folder and what is applied to the clusters at the start. It knows processes only as
// supervisor.Spec values, and nothing of the portal's people or of the demo's policies.
package fleet
