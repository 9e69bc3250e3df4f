package main

import (
	"context"
	"log/slog"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/catalog/backstage"
	catalogstore "github.com/acp-io/acp/internal/catalog/gormstore"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/wallclock"
)

// The names of the sources that --catalog and --catalog-backstage configure. They are stored with the entities.
const (
	sourceFiles     = "files"
	sourceBackstage = "backstage"
)

// openCatalog opens the catalog and reads its sources once, so that no request is refused because a source was not read yet.
func openCatalog(ctx context.Context, o options, db *database.DB, log *slog.Logger) (*catalog.Service, error) {
	var sources []catalog.Source
	if o.catalog != "" {
		sources = append(sources, catalog.Folder{ID: sourceFiles, Dir: o.catalog})
	}
	if o.backstage != "" {
		b, err := backstage.New(backstage.Config{Name: sourceBackstage, URL: o.backstage, TokenFile: o.backstageTokenFile, Every: o.backstageEvery})
		if err != nil {
			return nil, err
		}
		sources = append(sources, b)
	}
	s, err := catalog.NewService(ctx, catalog.Config{Store: catalogstore.New(db), Sources: sources, Now: wallclock.Now, Log: log})
	if err != nil {
		return nil, err
	}
	return s, s.Start(ctx)
}
