// Package sandbox isolates a node from the machine: by namespaces and cgroups of its own, a root filesystem whose changes are not
// written to that of the machine, and a network without any interface of the machine.
//
// It starts one program in the sandbox and removes everything at the end. It does not depend on Kubernetes.
package sandbox
