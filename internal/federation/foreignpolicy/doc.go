// Package foreignpolicy decides whether policies that ACP does not manage let connections in to a protected workload
// beyond those that ACP's own policies let in.
//
// It parses NetworkPolicies, CiliumNetworkPolicies, CiliumClusterwideNetworkPolicies and ClusterNetworkPolicies as
// Cilium 1.20 compiles them, and compares by effect: clients, ports and requests. Content that it cannot parse counts
// as opening, so it never misses an opening. The conformance module compares it with Cilium's own parser and engine.
// The package is pure: it has no client and no clock, and depends on no other package of ACP.
package foreignpolicy
