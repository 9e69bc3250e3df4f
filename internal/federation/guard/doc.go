// Package guard renders the admission policies that protect the objects that ACP manages in a member (Objects): they restrict who may write these
// objects, refuse the engine's writes while the member is downgraded, and restrict who may set the pod labels and service accounts that policies
// select. One more policy, for the host, restricts the ManifestWorks of the adapter (WorksObjects). The package also defines the downgrade mark.
//
// deploy/guard contains the same policies as files. Judge compares a member's policies with the rendered ones. The package makes no requests:
// membership installs the policies in members, and preflight reads and reports them.
package guard
