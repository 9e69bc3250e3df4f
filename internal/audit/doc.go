// Package audit owns what the fleet was seen doing: one connection attempt as an Observation, its attribution to the
// names of the policy model, the decision of the reference evaluator beside the dataplane's own verdict, the roll-ups
// of many such records, and the interfaces behind which they are stored and read.
//
// The package itself is pure: no I/O, no clock, no client. Sources of flows (audit/hubble), the policies to decide with
// (audit/policies), the roll-up writer (audit/rollup) and the backends (audit/sqlite) live below it and know it. It may
// import internal/policy and the API types, and nothing of Hubble, SQL or Kubernetes clients.
package audit
