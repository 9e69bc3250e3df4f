// Package monitoring checks deploy/alerts, deploy/dashboards and docs/runbooks: that Prometheus accepts the rules, that every metric and label in
// them is one that docs/operations/reference.md lists, and that every alert has a runbook. The product's own tests check that the list is
// complete; this is a module of its own, so that the product does not depend on Prometheus.
package monitoring
