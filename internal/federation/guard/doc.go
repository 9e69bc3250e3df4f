// Package guard renders the admission policies that protect the objects that ACP manages in a member: they restrict who
// may write these objects, and who may set the pod labels that policies select.
//
// deploy/guard contains the same policies as files. The package also compares a member's policies with the rendered
// ones. It makes no requests: membership installs the policies in members, and preflight reads and reports them.
package guard
