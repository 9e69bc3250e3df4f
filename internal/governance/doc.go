// Package governance owns what those who govern see of the whole: who can reach what and how, what is odd about the
// policies and who wrote them, how the members stand, and the findings that follow. All of it is derived, from a policy
// snapshot and from the statuses that the adapter wrote. Pure: no I/O, no clock, no tickets, no people. It may import
// policy, api and the root of audit.
package governance
