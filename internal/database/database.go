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
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// DB is an open database whose schema is up to date with this program.
type DB struct {
	w, r     *gorm.DB // the same pool in PostgreSQL
	commit   func(tx *gorm.DB) error
	postgres bool
	readOnly *sql.TxOptions
	newer    []int64
	// openReaders opens the connections for reads once the schema is up to date, because an older SQLite connection
	// reads rows under the columns' old names. If it is nil, reads use the writer's connections.
	openReaders func() (*gorm.DB, error)
}

// Open opens "sqlite:FILE", which is created if it is missing, or "postgres://USER@HOST/NAME?...", and migrates its
// schema. Several programs may open one PostgreSQL database at the same time. The error is ErrNewerSchema if a newer
// program has migrated the database to a schema on which this program cannot work.
func Open(ctx context.Context, dsn string) (*DB, error) { return OpenWithRefresh(ctx, dsn, nil) }

// OpenWithRefresh is Open for a URL that may change, for example because its password is rotated: refresh is called for
// the current URL before each new connection to PostgreSQL. The URL must always name the same database.
func OpenWithRefresh(ctx context.Context, dsn string, refresh func() (string, error)) (*DB, error) {
	db, err := connect(dsn, refresh)
	if err != nil {
		return nil, err
	}
	db.commit = func(tx *gorm.DB) error { return tx.Commit().Error }
	if err = db.migrate(ctx); err == nil {
		db.r = db.w
		if db.openReaders != nil {
			db.r, err = db.openReaders()
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("database %s cannot be used: %w", Name(dsn), err), db.Close())
	}
	return db, nil
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

// NewerChanges returns the schema changes that a newer program made before Open, on which this program can work although it
// does not know what they are for.
func (db *DB) NewerChanges() []int64 { return db.newer }

// maxAttempts is how often a transaction is tried that PostgreSQL aborts in favour of another one (a deadlock), or whose
// connection turns out to be closed.
const maxAttempts = 3

// writeTimeout bounds a transaction whose database no longer answers. It is long because a catalog of tens of thousands
// of entities is one write.
const writeTimeout = 5 * time.Minute

// Write runs f in one transaction, which is durable when Write returns nil; an error or a panic of f rolls back all of it.
// The end of ctx stops a caller that waits for a connection, but not a transaction that has begun, because its outcome
// would then be unknown. The function must use tx as it is given and must not call Write. It may run again, so it must not
// keep state from an earlier run.
func (db *DB) Write(ctx context.Context, f func(tx *gorm.DB) error) error {
	var err error
	for range maxAttempts {
		err = db.w.WithContext(ctx).Connection(func(conn *gorm.DB) error { return db.transaction(ctx, conn, f) })
		if !isSerializationConflict(err) && !isClosedConnection(err) {
			break
		}
	}
	return translate(err)
}

// transaction runs f in a transaction on a connection. Its error is ErrOutcomeUnknown unless nothing was committed.
func (db *DB) transaction(ctx context.Context, conn *gorm.DB, f func(tx *gorm.DB) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	tx := conn.WithContext(ctx).Begin()
	if tx.Error != nil {
		return tx.Error
	}
	committing := false
	defer func() {
		if !committing {
			tx.Rollback()
		}
	}()
	if err := f(tx); err != nil {
		if ctx.Err() != nil { // The timeout was this transaction's own: the caller's context is not part of ctx.
			return &Error{ErrUnavailable, detailAny, fmt.Errorf("no answer in %s: %w", writeTimeout, err)}
		}
		return err
	}
	committing = true
	if err := db.commit(tx); err != nil && !notCommitted(err) {
		return &Error{ErrOutcomeUnknown, detailUnknown, err}
	} else if err != nil {
		return err
	}
	return nil
}

// Read runs f on one consistent snapshot, in which writes fail.
func (db *DB) Read(ctx context.Context, f func(tx *gorm.DB) error) error {
	err := db.r.WithContext(ctx).Transaction(f, db.readOnly)
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		return ctx.Err() // The end of the context rolled the transaction back before a query noticed it.
	}
	return translate(err)
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
		_, err := Exec(tx, "UPDATE goose_db_version SET tstamp = tstamp WHERE id = -1")
		return err
	})
}

// Lock makes the transactions that lock the same name wait for each other until they end. In SQLite it does nothing,
// because there is only one writer at a time.
func Lock(tx *gorm.DB, name string) error {
	if tx.Name() != postgresName {
		return nil
	}
	_, err := Exec(tx, "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", name)
	return err
}

// Close closes the connections.
func (db *DB) Close() error {
	var errs []error
	pools := []*gorm.DB{db.w}
	if db.r != nil && db.r != db.w {
		pools = append(pools, db.r)
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
