// Package member embeds what the accounts of the adapter and of KubeFed may do in a member, so that `kubectl acp cluster
// join` gives them just that.
package member

import "embed"

// Files are the roles and their bindings.
//
//go:embed *.yaml
var Files embed.FS
