// Package database owns the connection to the portal's one SQL database, SQLite or PostgreSQL: it opens the database,
// migrates its schema, runs transactions and classifies errors. Every store of the portal (tickets, ledger, catalog,
// notifications, tokens, sessions) keeps its tables here and takes a *DB. The package depends on no table except
// goose's; the code that reads and writes rows is in each package's gormstore.
package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// DB is an open database whose schema is up to date with this program.
type DB struct {
	w, r     *gorm.DB // the same pool in PostgreSQL
	group    *group
	postgres bool
	readOnly *sql.TxOptions
	// openReaders opens the connections for reads once the schema is up to date, because an older SQLite connection
	// reads rows under the columns' old names. If it is nil, reads use the writer's connections.
	openReaders func() (*gorm.DB, error)
	// openCheckpointer opens the connection that runs checkpoints, also once the schema is up to date. It is nil if the
	// database needs none.
	openCheckpointer func() (*gorm.DB, error)
	checkpointer     *gorm.DB
	stop             func() // stops the checkpointer and waits for it
}

// Open opens "sqlite:FILE", which is created if it is missing, or "postgres://USER@HOST/NAME?...", and migrates its
// schema. Several programs may open one PostgreSQL database at the same time. The error is ErrNewerSchema if a newer
// program has migrated the database.
func Open(ctx context.Context, dsn string) (*DB, error) { return OpenWithRefresh(ctx, dsn, nil) }

// OpenWithRefresh is Open for a URL that may change, for example because its password is rotated: refresh is called for
// the current URL before each new connection to PostgreSQL. The URL must always name the same database.
func OpenWithRefresh(ctx context.Context, dsn string, refresh func() (string, error)) (*DB, error) {
	db, err := connect(dsn, refresh)
	if err != nil {
		return nil, err
	}
	db.group = newGroup(db.w)
	if err = db.migrate(ctx); err == nil {
		db.r = db.w
		if db.openReaders != nil {
			db.r, err = db.openReaders()
		}
	}
	if err == nil && db.openCheckpointer != nil {
		err = db.startCheckpointer(context.WithoutCancel(ctx))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("database %s cannot be used: %w", Name(dsn), err), db.Close())
	}
	return db, nil
}

func (db *DB) startCheckpointer(ctx context.Context) (err error) {
	if db.checkpointer, err = db.openCheckpointer(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { db.runCheckpoints(ctx, db.checkpointer) })
	db.stop = func() { cancel(); done.Wait() }
	return nil
}

// Check reports whether Open supports the form of a DSN. It opens nothing.
func Check(dsn string) error {
	if file, ok := strings.CutPrefix(dsn, "sqlite:"); ok && file != "" {
		return nil
	}
	if isPostgres(dsn) {
		_, err := postgresConfig(dsn)
		return err
	}
	return errors.New("use sqlite:FILE or postgres://USER@HOST/DATABASE")
}

func connect(dsn string, refresh func() (string, error)) (*DB, error) {
	if err := Check(dsn); err != nil {
		return nil, err
	}
	if isPostgres(dsn) {
		return connectPostgres(dsn, refresh)
	}
	return connectSQLite(strings.TrimPrefix(dsn, "sqlite:"))
}

// Postgres reports whether the database is PostgreSQL, for the few statements that differ between the two.
func (db *DB) Postgres() bool { return db.postgres }

// Write runs f in one transaction, which is durable when Write returns nil; an error of f rolls back all of it. Writes
// that wait at the same time share a commit. The function must use tx as it is given (its context outlives the
// caller's) and must not call Write. It may run a second time, so it must not keep state from an earlier run.
func (db *DB) Write(ctx context.Context, f func(tx *gorm.DB) error) error {
	return translate(db.group.do(ctx, &write{f: f}))
}

// maxAttempts is how often a transaction is tried that PostgreSQL aborts in favour of another one (a deadlock).
const maxAttempts = 3

// Read runs f on one consistent snapshot, in which writes fail.
func (db *DB) Read(ctx context.Context, f func(tx *gorm.DB) error) error {
	return translate(db.r.WithContext(ctx).Transaction(f, db.readOnly))
}

// ReadOne runs f, which must make only one query. A single query sees one instant anyway, so the statements that begin
// and end a transaction are saved; they cost as much as a small query.
func (db *DB) ReadOne(ctx context.Context, f func(tx *gorm.DB) error) error {
	return translate(f(db.r.WithContext(ctx)))
}

// Ping reports whether the database can be read and written. It begins a write transaction, and so detects a read-only
// file, a lock that is never released, and a PostgreSQL standby.
func (db *DB) Ping(ctx context.Context) error {
	return db.Write(ctx, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE goose_db_version SET tstamp = tstamp WHERE id = -1").Error
	})
}

// Lock makes the transactions that lock the same name wait for each other until they end. In SQLite it does nothing,
// because there is only one writer at a time.
func Lock(tx *gorm.DB, name string) error {
	if tx.Name() != postgresName {
		return nil
	}
	return tx.Exec("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", name).Error
}

// Close stops the checkpointer and closes the connections.
func (db *DB) Close() error {
	if db.stop != nil {
		db.stop()
	}
	var errs []error
	pools := []*gorm.DB{db.w}
	if db.r != nil && db.r != db.w {
		pools = append(pools, db.r)
	}
	if db.checkpointer != nil {
		pools = append(pools, db.checkpointer)
	}
	for _, g := range pools {
		pool, err := g.DB()
		if err == nil {
			err = pool.Close()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func openGorm(d gorm.Dialector, conns int) (*gorm.DB, error) {
	g, err := gorm.Open(d, &gorm.Config{Logger: logger.Discard, SkipDefaultTransaction: true, DisableAutomaticPing: true})
	if err != nil {
		return nil, err
	}
	pool, err := g.DB()
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(conns)
	pool.SetMaxIdleConns(conns)
	return g, nil
}
