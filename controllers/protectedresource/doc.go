// Package protectedresource reconciles one protected server at a time: it compiles the server's unit, writes it for
// KubeFed, follows it to the members, and tells the truth in the status of the ProtectedResource.
//
// A reconcile gathers everything first (gather.go), decides what to write (plan.go) and what to say (assess.go,
// conditions.go) in pure functions, and then acts. It owns the Federated objects, the finalizer and the status of
// ProtectedResources; it writes neither policies nor anything in a member.
package protectedresource
