// Package protectedresource reconciles one unit at a time, that of a protected server or that of a wildcard: it compiles
// the unit, writes it for KubeFed, follows it to the members, and tells the truth in the status of the ProtectedResource.
// What is true of a wildcard's unit is told by its policies, from the board.
//
// A reconcile gathers everything first (gather.go), decides what to write (plan.go) and what to say (assess.go,
// conditions.go) in pure functions, and then acts. It owns the Federated objects, the finalizer and the status of
// ProtectedResources; it writes neither policies nor anything in a member.
package protectedresource
