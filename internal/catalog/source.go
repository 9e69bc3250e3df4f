package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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

// Fingerprinted is a source that can cheaply tell whether it says what it said before.
type Fingerprinted interface {
	Fingerprint() (string, error)
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

// Fingerprint implements Fingerprinted: of contents, because modification times miss quick edits and checkouts.
func (f Folder) Fingerprint() (string, error) {
	files, err := contents(f.Dir)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, x := range files {
		_, _ = fmt.Fprintf(h, "%q %d\n", x.name, len(x.data))
		_, _ = h.Write(x.data)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
