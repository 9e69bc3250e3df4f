// Package externalgroup brings the addresses of external workloads to the members: one group for each subject, and one
// more for the addresses that others claim, too.
//
// A group does nothing by itself, so every registered member gets it as soon as there is a workload, before any unit
// refers to it. It goes when the last workload of its subject goes, whoever refers to it: the addresses must stop counting
// at once, and to the dataplane a group that is missing matches nothing. The package owns the Federated objects of groups,
// and writes nothing else.
package externalgroup
