// Package catalogapi implements the operations about the catalog: applications, resources, people, groups and search, the sources and
// entities of the catalog, classes, and registered workloads. It must not import other features.
package catalogapi

import (
	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/portal/views"
)

// API implements the operations.
type API struct {
	*views.Data
	Workloads *workloads.Registrar
}
