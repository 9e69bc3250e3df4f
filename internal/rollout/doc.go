// Package rollout owns how a resource comes from being watched to being enforced without an outage: its stage and what
// to do next (pure), the announcement to the clients seen, the temporary audit, and the guard that stops a rollout when
// new denials appear. It changes no mode but for the temporary audit: modes are changed by tickets. It may import
// approval, catalog, notify and audit/insight; never HTTP, SQL or a Kubernetes client.
package rollout
