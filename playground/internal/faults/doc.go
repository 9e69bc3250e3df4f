// Package faults runs the fault drill: it injects random faults into a real fleet while it changes the policies that the fleet
// enforces. A run fails when a connection passes that must be refused, when a connection is refused that must pass, when an
// object is left behind, or when a status is false.
//
// The package contains the sequence of steps, which follows from a seed, the model of the wanted objects, the proxies between
// the host and the members, and the checks after each step. It reads the enforced verdicts from Cilium's policy engine
// (acp-dataplane ask) and computes the expected verdicts with internal/policy, the reference evaluator. It changes the fleet
// only in ways that are open to users and operators: through the API servers, the portal, the processes and the network.
package faults
