package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
)

const (
	sqliteReaders = 4
	// sqliteCache of each connection, in KiB (which SQLite writes as a negative number). Its own 2 MiB do not hold the
	// inner pages of the indexes of 100,000 tickets, so that each list asks the system for them again.
	sqliteCache = "cache_size(-16384)"
	// sqliteTemp: each write of a group has a savepoint, whose undoing SQLite would else keep in a file.
	sqliteTemp = "temp_store(memory)"
	// sqliteLog is how many pages (of 4 KiB) its log may have before SQLite itself carries them into the database, within the commit
	// that made it so long. By then most of that is done beside the writers; but the log begins anew only when all of it is carried
	// and nobody reads it.
	sqliteLog = "wal_autocheckpoint(16384)"
	// checkpointEvery is how often what does so beside them looks whether anything was written.
	checkpointEvery = time.Second
)

// connectSQLite: SQLite has one writer at a time, so writes go through one connection, which begins its transactions
// as a writer; reads have connections of their own that cannot write.
func connectSQLite(path string) (*DB, error) {
	if err := usable(path); err != nil {
		return nil, err
	}
	w, err := openSQLite(path, url.Values{"_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(5000)", "journal_mode(WAL)", "foreign_keys(1)", "synchronous(FULL)", sqliteLog, sqliteCache, sqliteTemp}}, 1)
	if err != nil {
		return nil, fmt.Errorf("database %s cannot be used: %w", path, err)
	}
	return &DB{w: w, readOnly: &sql.TxOptions{ReadOnly: true}, openReaders: func() (*gorm.DB, error) {
		return openSQLite(path, url.Values{"_pragma": {"busy_timeout(5000)", "query_only(1)", sqliteCache, sqliteTemp}}, sqliteReaders)
	}, openCarrier: func() (*gorm.DB, error) {
		return openSQLite(path, url.Values{"_pragma": {"synchronous(FULL)"}}, 1)
	}}, nil
}

// carry brings what the log holds into the database until the context ends: whoever commits need not wait for that. It waits for
// nobody: what readers or writers need, or what cannot be written now, stays in the log, where it is safe, and is tried again.
func (db *DB) carry(ctx context.Context, carrier *gorm.DB) {
	look := time.NewTicker(checkpointEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if !db.group.written.Swap(false) {
			continue
		}
		var held, log, carried int
		err := Rows(carrier.WithContext(ctx), func(rows *sql.Rows) error { return rows.Scan(&held, &log, &carried) }, "PRAGMA wal_checkpoint(PASSIVE)")
		if err != nil || held != 0 || carried < log {
			db.group.written.Store(true)
		}
	}
}

func openSQLite(path string, opts url.Values, conns int) (*gorm.DB, error) {
	return openGorm(sqlite.Open("file:"+(&url.URL{Path: path}).EscapedPath()+"?"+opts.Encode()), conns)
}

// usable finds out before SQLite does, because its own words ("unable to open database file") help nobody.
func usable(path string) error {
	dir := filepath.Dir(path)
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return fmt.Errorf("database %s: its folder does not exist: create %s or change --database", path, dir)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("database %s: no permission to write: change the permissions or --database", path)
	}
	if err != nil {
		return fmt.Errorf("database %s cannot be written: %w", path, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close database file: %w", err)
	}
	// SQLite keeps its journal beside the file.
	probe, err := os.CreateTemp(dir, ".acp-probe-*")
	if err != nil {
		return fmt.Errorf("database %s: its folder %s cannot be written: change the permissions or --database", path, dir)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}
