package gormstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/externalchanges"
	"github.com/acp-io/acp/internal/ledger"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
)

// objectsAtOnce bounds the names in one query.
const objectsAtOnce = 500

const addInstructions = "ledger_instructions (object, id, digest)"

func instructionRow(k externalchanges.InstructionKey) []any { return []any{k.Object, k.ID, k.Digest} }

// FillInstructions implements externalchanges.Store.
func (s *Store) FillInstructions(ctx context.Context, all []externalchanges.Instructed) (first bool, err error) {
	mark := externalchanges.InstructionKey{ID: filled}
	has := func(tx *gorm.DB) (bool, error) {
		known, err := knownInstructions(tx, []string{mark.Object})
		return known[mark], err
	}
	had := false
	if err := s.db.Read(ctx, func(tx *gorm.DB) (err error) { had, err = has(tx); return err }); err != nil || had {
		return false, err
	}
	rows := [][]any{instructionRow(mark)}
	for _, i := range all {
		rows = append(rows, instructionRow(i.Key()))
	}
	err = s.db.Write(ctx, func(tx *gorm.DB) error {
		first = false
		if err := database.Lock(tx, "ledger instructions"); err != nil {
			return err
		}
		if had, err := has(tx); err != nil || had {
			return err
		}
		first = true
		// The portal may have given some of them already.
		_, err := database.Insert(tx, addInstructions, " ON CONFLICT DO NOTHING", rows)
		return err
	})
	return first && err == nil, err
}

// AddOwnInstruction implements externalchanges.Store.
func (s *Store) AddOwnInstruction(ctx context.Context, i externalchanges.Instructed) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		_, err := addInstruction(tx, i.Key())
		return err
	})
}

// addInstruction records an instruction, and reports whether it was not recorded yet.
func addInstruction(tx *gorm.DB, k externalchanges.InstructionKey) (bool, error) {
	n, err := database.Exec(tx, "INSERT INTO "+addInstructions+" VALUES (?, ?, ?) ON CONFLICT DO NOTHING", instructionRow(k)...)
	return n > 0, err
}

// knownInstructions returns the recorded instructions of objects.
func knownInstructions(tx *gorm.DB, objects []string) (map[externalchanges.InstructionKey]bool, error) {
	out := map[externalchanges.InstructionKey]bool{}
	for names := range slices.Chunk(objects, objectsAtOnce) {
		err := database.Rows(tx, func(rows *sql.Rows) error {
			var k externalchanges.InstructionKey
			err := rows.Scan(&k.Object, &k.ID, &k.Digest)
			out[k] = true
			return err
		}, "SELECT object, id, digest FROM ledger_instructions WHERE object IN ?", names)
		if err != nil {
			return nil, fmt.Errorf("read which instructions the ledger has: %w", err)
		}
	}
	return out, nil
}

// RecordInstructions implements externalchanges.Store.
func (s *Store) RecordInstructions(ctx context.Context, lines []externalchanges.InstructionLine) error {
	objects := make([]string, 0, len(lines))
	for _, l := range lines {
		objects = append(objects, l.Key.Object)
	}
	slices.Sort(objects)
	var known map[externalchanges.InstructionKey]bool
	err := s.db.Read(ctx, func(tx *gorm.DB) (err error) {
		known, err = knownInstructions(tx, slices.Compact(objects))
		return err
	})
	if err != nil {
		return err
	}
	lines = slices.DeleteFunc(slices.Clone(lines), func(l externalchanges.InstructionLine) bool { return known[l.Key] })
	if len(lines) == 0 {
		return nil
	}
	// Portals that record the same instructions wait for each other, so all add them in the same order.
	keys := make([]externalchanges.InstructionKey, 0, len(lines))
	for _, l := range lines {
		keys = append(keys, l.Key)
	}
	slices.SortFunc(keys, func(a, b externalchanges.InstructionKey) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Digest, b.Digest))
	})
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		added := map[externalchanges.InstructionKey]bool{}
		for _, k := range keys {
			isNew, err := addInstruction(tx, k)
			if err != nil {
				return err
			}
			added[k] = added[k] || isNew
		}
		var entries []ledger.Entry
		for _, l := range lines {
			if added[l.Key] {
				entries = append(entries, l.Entry)
			}
		}
		return ledgerstore.Append(tx, entries...)
	})
}
