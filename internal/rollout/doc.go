// Package rollout takes a resource from Observe to Enforce without an outage: its stage and what to do next (pure), the
// announcement to the clients that were seen, the temporary audit, and the guard that stops a rollout when new denials
// appear. It changes no mode except by the temporary audit, because modes are changed by tickets. It may import
// approval, catalog, notify and audit/insight, and must not import HTTP, SQL or a Kubernetes client.
package rollout
