// Package protectedresource reconciles one unit at a time, of a protected resource or of a wildcard: it compiles the
// unit, writes it for KubeFed, observes it in the members, and reports it in the status of the ProtectedResource. The
// state of a wildcard's unit is reported by its policies, from the status cache.
//
// A reconcile first collects all facts (gather.go), decides what to write (plan.go) and what to report (assess.go,
// conditions.go) in pure functions, and then acts. The package owns the Federated objects, and the finalizer and the
// status of ProtectedResources; it writes neither policies nor anything in a member.
package protectedresource
