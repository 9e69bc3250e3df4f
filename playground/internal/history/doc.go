// Package history makes up what a playground that was just started would have seen in the weeks before: roll-ups of the
// demo's own traffic lines, attributed and decided by the code that attributes and decides live flows.
//
// It owns the shape of that past (working hours, jobs, clients that came later). It is the same for the same end, so that
// what somebody describes can be looked up by somebody else. It touches nothing but the flow store of the playground.
package history
