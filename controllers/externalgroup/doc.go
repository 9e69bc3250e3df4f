// Package externalgroup distributes the addresses of external workloads to the members: one group for each subject, and
// one more for the addresses that several subjects have.
//
// A group has no effect alone, so every registered member gets it as soon as there is a workload, before any unit
// refers to it. A group is removed with the last workload of its subject, even if units refer to it: the addresses must
// stop counting at once, and a missing group matches nothing in the dataplane. The package owns the Federated objects
// of groups, and writes nothing else. How urgent its writes are, such as those of a revocation, is decided in priority.go.
package externalgroup
