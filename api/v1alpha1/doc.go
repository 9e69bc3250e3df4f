// Package v1alpha1 defines the Kubernetes kinds of ACP (group acp.io): the objects that people and GitOps write, and the
// statuses that the control plane reports. It contains types, CEL validation markers, condition types and reasons, and no
// behavior. It may import only apimachinery.
//
// docs/semantics.md specifies the meaning of the kinds. Every kind is cluster-scoped and stored in the host cluster.
//
// +kubebuilder:object:generate=true
// +groupName=acp.io
package v1alpha1
