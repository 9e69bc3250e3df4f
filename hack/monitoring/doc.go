// Package monitoring checks deploy/alerts and deploy/dashboards: that Prometheus takes them, that every metric and label that
// they name is one that docs/operations.md lists, and that every alert has its place there. That the list is true is tested
// in the product; this is a module of its own, so that Prometheus' weight stays out of it.
package monitoring
