// Package scale measures the adapter with many members. The host is a real kube-apiserver with its etcd, the adapter is the real
// program, and the members are those of package memberapi. docs/scale.md describes the figures.
package scale
