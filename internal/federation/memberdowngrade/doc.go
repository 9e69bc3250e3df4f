// Package memberdowngrade turns the objects that ACP manages in one member into what Audit renders, without the control
// plane, and prints the procedure for the nodes if not even the member's API server is available.
//
// It uses an operator's own credentials, needs nothing from the host, and leaves a mark in the member. While the mark
// exists, the guard there refuses KubeFed, and the adapter writes nothing. The package does not restore enforcement:
// the control plane does.
package memberdowngrade
