package database

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
)

const (
	sqliteReaders = 4
	// sqliteCache is the page cache of each connection in KiB (SQLite writes KiB as a negative number). SQLite's
	// default of 2 MiB does not hold the inner pages of the indexes of 100,000 tickets, so that each list would read
	// them from the operating system again.
	sqliteCache = "cache_size(-16384)"
)

// connectSQLite opens a SQLite database. SQLite has one writer at a time, so writes use one connection, which begins
// its transactions as a writer; reads use connections of their own, which cannot write.
func connectSQLite(path string) (*DB, error) {
	if err := checkSQLitePath(path); err != nil {
		return nil, err
	}
	w, err := openSQLite(path, url.Values{"_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(5000)", "journal_mode(WAL)", "foreign_keys(1)", "synchronous(FULL)", sqliteCache}}, 1)
	if err != nil {
		return nil, fmt.Errorf("database %s cannot be used: %w", path, err)
	}
	return &DB{w: w, readOnly: &sql.TxOptions{ReadOnly: true}, openReaders: func() (*gorm.DB, error) {
		return openSQLite(path, url.Values{"_pragma": {"busy_timeout(5000)", "query_only(1)", sqliteCache}}, sqliteReaders)
	}}, nil
}

func openSQLite(path string, opts url.Values, conns int) (*gorm.DB, error) {
	return openGorm(sqlite.Open("file:"+(&url.URL{Path: path}).EscapedPath()+"?"+opts.Encode()), conns)
}

// checkSQLitePath checks that a file can be created and written, because SQLite's own message ("unable to open database
// file") does not say what to do.
func checkSQLitePath(path string) error {
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
