package backup

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/ledger"
)

// headsFile contains the heads that anchors have stored.
const headsFile = "ledger/heads.jsonl"

// Source contains the inputs of a backup.
type Source struct {
	Database *database.DB
	Host     client.Client
	// Heads contains the heads of the ledger that the anchors have stored.
	Heads   []ledger.Head
	Version string
	Now     func() time.Time
}

// Write writes a backup to a new file, while portals and the adapter run. The objects of the host cluster are read before the
// database: a grant that is revoked in between is revoked in the restored database, whose portal takes it out of the host cluster.
func Write(ctx context.Context, s Source, path string) (m Manifest, err error) {
	w, err := create(path, Manifest{ID: rand.Text(), At: s.Now().UTC(), Version: s.Version})
	if err != nil {
		return Manifest{}, err
	}
	defer func() {
		if err != nil {
			w.abandon()
		}
	}()
	if err := w.begin(headsFile); err != nil {
		return Manifest{}, err
	}
	for _, h := range s.Heads {
		if err := w.add(h); err != nil {
			return Manifest{}, err
		}
	}
	if err := exportObjects(ctx, s.Host, w); err != nil {
		return Manifest{}, err
	}
	if err := exportTables(ctx, s.Database, w); err != nil {
		return Manifest{}, fmt.Errorf("read the database: %w", err)
	}
	if err := w.finish(); err != nil {
		return Manifest{}, err
	}
	return w.manifest, nil
}
