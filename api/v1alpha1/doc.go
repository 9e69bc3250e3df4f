// Package v1alpha1 owns the Kubernetes kinds of ACP (group acp.io): what people and GitOps write, and what the
// control plane reports back. It holds types, CEL validation markers, condition types and reasons, and nothing that
// acts. It may import apimachinery only.
//
// What the kinds mean is specified in docs/semantics.md; every kind is cluster-scoped and lives in the host cluster.
//
// +kubebuilder:object:generate=true
// +groupName=acp.io
package v1alpha1
