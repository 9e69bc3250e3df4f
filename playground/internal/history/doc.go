// Package history generates the flow data that a new playground would have collected in the weeks before: roll-ups of the demo's
// traffic lines, attributed and decided by the same code as live flows.
//
// The package defines the pattern of that past (working hours, jobs, clients that appear later). The result is deterministic for
// the same end time, so that several users see the same data. It writes only to the flow store of the playground.
package history
