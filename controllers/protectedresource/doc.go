// Package protectedresource reconciles one unit at a time, of a protected resource or of a wildcard: it compiles the
// unit, writes it as Federated objects on the host, which the members' engines distribute, reads it back from the members, and reports
// it in the status of the ProtectedResource. The state of a wildcard's unit is reported by its policies, from the status cache.
//
// A reconcile has four steps. It reads all facts (gather.go, observe.go), plans what to write (plan.go), applies the plan
// (apply.go), and reports what the members have (assess.go, conditions.go, status.go). Planning and assessing are pure
// functions of the facts, which are values. The outcome (outcome.go) determines when the next reconcile happens.
//
// Three decisions have a file each: how urgent a write is, such as that of a revocation (priority.go), whether a member
// enforces what was read back from it, without which it is never called Realized (enforced.go), and in which members Enforce
// must wait (waiting.go). facts.clusterState in assess.go combines everything into the state of a member.
//
// The urgency of a write takes effect in three places: package policycache ranks the reconcile before it, writequeue admits the
// write before others (admit in apply.go), and the engine of each member writes it first (propagation.Engine.DeliverUrgent; for
// KubeFed package memberwriter).
//
// The package owns the Federated objects, and the finalizer and the status of ProtectedResources. It writes neither
// policies nor anything in a member.
package protectedresource
