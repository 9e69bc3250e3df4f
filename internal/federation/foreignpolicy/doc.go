// Package foreignpolicy decides whether policies that ACP does not manage let connections in to a protected workload beside
// those that ACP's own policies let in.
//
// It reads NetworkPolicies, CiliumNetworkPolicies, CiliumClusterwideNetworkPolicies and ClusterNetworkPolicies as Cilium 1.20
// compiles them, and compares by effect: clients, ports and requests. What it cannot read opens; it never misses an opening.
// The conformance module holds it against Cilium's own parser and engine. It is pure: it has no client and no clock, and it
// depends on nothing else of ACP.
package foreignpolicy
