package catalog

import (
	"context"
	"time"
)

// Source is where entities come from. Its name is kept with each of them, so it must not change.
type Source interface {
	Name() string
	// Read gives all that the source says now. An error is that it cannot be known; what single entities lack is in the
	// reading's problems.
	Read(context.Context) (Reading, error)
}

// Paced is a source that is not to be read each time that the others are.
type Paced interface {
	Every() time.Duration
}

// Portal is the source of what people edit in the portal.
const Portal = "portal"

// Folder is a folder of Backstage entity files and CSV files; see ReadFolder.
type Folder struct {
	ID, Dir string
}

// Name implements Source.
func (f Folder) Name() string { return f.ID }

// Read implements Source.
func (f Folder) Read(context.Context) (Reading, error) { return ReadFolder(f.Dir) }
