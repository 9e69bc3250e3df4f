package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// Source provides entities. Its name is stored with each of them, so it must not change.
type Source interface {
	Name() string
	// Read returns the whole content of the source. An error means that the content is unknown; problems with single
	// entities are in the reading.
	Read(context.Context) (SourceContent, error)
}

// Periodic is implemented by a source with an interval of its own between two readings.
type Periodic interface {
	Every() time.Duration
}

// Fingerprinted is implemented by a source that can report cheaply whether its content has changed.
type Fingerprinted interface {
	Fingerprint() (string, error)
}

// Sources that are not configured.
const (
	// Portal is the source of the entities that people edit in the portal.
	Portal = "portal"
	// SCIM is the source of the people and groups that a SCIM client provisions, one at a time.
	SCIM = "scim"
)

// Folder is a folder of Backstage entity files and CSV files; see ReadFolder.
type Folder struct {
	ID, Dir string
}

// Name implements Source.
func (f Folder) Name() string { return f.ID }

// Read implements Source.
func (f Folder) Read(context.Context) (SourceContent, error) { return ReadFolder(f.Dir) }

// Fingerprint implements Fingerprinted. It hashes contents, because modification times miss quick edits and checkouts.
func (f Folder) Fingerprint() (string, error) {
	files, err := readFiles(f.Dir)
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
