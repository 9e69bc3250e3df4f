// Package direct is the propagation engine with which the adapter itself writes into members: by server-side apply, with an account
// and a field manager of its own. It needs no controller besides the adapter.
//
// The engine compares the recorded object, which is durable, with what was read back from the member, and makes one change. Each
// object in each member is handled on its own, so that a restart or a member that is away loses nothing, and a slow member delays
// itself alone. Urgent objects are handled before all others of the same member.
package direct
