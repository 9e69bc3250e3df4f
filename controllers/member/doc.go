// Package member looks after the members themselves: it repeats the preflight of each, and quarantines one that would stop
// KubeFed for the others before it does, and keeps KubeFed from one that somebody downgraded by hand.
//
// It writes KubeFedClusters and nothing else. What a quarantine means for a unit is told by its own controller, which
// reads it from the registration.
package member
