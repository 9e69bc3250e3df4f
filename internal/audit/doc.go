// Package audit defines the observed connections of the fleet: one connection attempt (Observation), its attribution to the names
// of the policy model together with the decision of the reference evaluator and the dataplane's own verdict (Record), the
// roll-ups of many records, and the interfaces to store and read them.
//
// The package does no I/O and uses no clock and no client. Sources of flows (audit/hubble), the policies for decisions
// (audit/policyhistory), the roll-up writer (audit/rollup) and the backends (audit/sqlite, audit/clickhouse) import it. It may import internal/policy
// and the API types, and nothing of Hubble, SQL or Kubernetes clients.
package audit
