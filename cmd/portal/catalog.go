package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/acp-io/acp/internal/catalog"
	catalogstore "github.com/acp-io/acp/internal/catalog/gormstore"
	"github.com/acp-io/acp/internal/database"
)

// sourceFiles is the name of the source that --catalog configures.
const sourceFiles = "files"

// openCatalog reads the catalog, and its sources once, so that nobody is refused because they were not read yet.
func openCatalog(ctx context.Context, o options, db *database.DB, log *slog.Logger) (*catalog.Service, error) {
	s, err := catalog.NewService(ctx, catalog.Config{Store: catalogstore.New(db), Sources: []catalog.Source{catalog.Folder{ID: sourceFiles, Dir: o.catalog}}, Now: time.Now, Log: log})
	if err != nil {
		return nil, err
	}
	return s, s.Start(ctx)
}
