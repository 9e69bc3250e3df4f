// Package memberhealth checks the members themselves: it repeats the preflight of each member, quarantines a member that would
// block KubeFed's propagation to the others, and suspends propagation to a member that an operator downgraded.
//
// It writes KubeFedClusters and nothing else. The controller of units reads the quarantine from the registration and
// reports it.
package memberhealth
