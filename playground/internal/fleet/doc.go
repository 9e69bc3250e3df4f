// Package fleet starts a fleet of real Kubernetes API servers on this machine: a host cluster and two members, KubeFed, and
// everything that connects them (certificates, tokens, kubeconfigs, RBAC, CRDs).
//
// The package defines the layout of the state folder and the objects that are applied to the clusters at the start. It describes
// processes as supervisor.Spec values. It does not depend on the users of the portal or on the policies of the demo.
package fleet
