// Package crds embeds the custom resource definitions, so that programs judge objects by the same schema as an API
// server does. The YAML files are generated.
package crds

import "embed"

// Files are the definitions, one file each.
//
//go:embed *.yaml
var Files embed.FS
