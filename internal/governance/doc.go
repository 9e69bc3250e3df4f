// Package governance computes the overview for auditors and the security team: who can reach what and how, issues of
// policies and who wrote them, the state of the members, and the findings that follow. Everything is derived from a
// policy snapshot and from the statuses that the adapter wrote. The package is pure: no I/O, no clock, no tickets, no
// people. It may import policy, api and the root of audit.
package governance
