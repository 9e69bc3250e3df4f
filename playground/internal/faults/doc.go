// Package faults breaks a real fleet at random while it changes what the fleet has to enforce, and fails when a connection
// passes that must not, when one is lost that must pass, when something is left behind, or when a status lies.
//
// It owns the sequence of steps, which follows from a seed, the model of what is wanted, the wires between the host and the
// members, and the judgement after each step. What is enforced is asked of Cilium's own engine (acp-dataplane ask), and what
// is meant of internal/policy, the reference evaluator. It changes the fleet only as its people could: through the API
// servers, the portal, the processes and the network.
package faults
