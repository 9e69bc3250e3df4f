// Package node embeds the kind that acp-node writes in members.
package node

import "embed"

// Files is the definition of the kind NodeReport.
//
//go:embed *.yaml
var Files embed.FS
