// Package rollout contains the portal's operations by which a resource gets from Observe to Enforce without an outage: its stage and what to do
// next (stage.go, pure), the reviews of its clients and the announcement to them, the guard that stops a rollout or the waves of a class when new
// denials appear (Watcher), and the instructions of people and of the guard about waves, which package waves evaluates in the adapter. It also
// contains the temporary audit of one resource, and of all resources in an emergency (FleetDowngrader).
//
// It changes no mode except by the temporary audit, because modes are changed by tickets. It may import approval, catalog, ledger, notify,
// organization and audit/insight, and must not import HTTP, SQL or a Kubernetes client.
package rollout
