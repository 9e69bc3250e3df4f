// Package downgrade turns what ACP manages in one member to what Audit renders, without the control plane, and says how to do
// the same on the nodes when not even the member's API server is there.
//
// It acts with an operator's own credentials, needs nothing of the host, and leaves a mark in the member by which the guard
// there and the adapter, when it is back, keep their hands off until the mark is gone. It brings nothing back: that is the
// control plane's work.
package downgrade
