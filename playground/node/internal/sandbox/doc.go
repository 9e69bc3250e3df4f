// Package sandbox makes what a node runs in: namespaces and cgroups of its own, a root filesystem of which nothing is written to the
// machine's, and a network that no interface of the machine belongs to.
//
// It starts one program in there and removes everything at the end. It knows nothing of Kubernetes.
package sandbox
