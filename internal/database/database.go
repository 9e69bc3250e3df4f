// Package database owns the connection to the one SQL database of the portal, SQLite or PostgreSQL: opening it, its
// schema as one list of migrations, transactions, and what its errors mean. Every store of the portal (tickets,
// ledger, catalog, notifications, tokens, sessions) keeps its tables here and takes a *DB. It knows no table but
// goose's; the code that knows rows lives in each package's gormstore.
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

// DB is an open database with the schema of this program.
type DB struct {
	w, r     *gorm.DB // of PostgreSQL the same one
	group    *group
	postgres bool
	readOnly *sql.TxOptions
	// openReaders is called when the schema is up to date: a connection of SQLite that is older than the schema reads
	// rows under the columns' old names. nil: the writer's connections read, too.
	openReaders func() (*gorm.DB, error)
	// openCarrier is called then, too; nil: nothing has to be carried.
	openCarrier func() (*gorm.DB, error)
	carrier     *gorm.DB
	stop        func() // and waits
}

// Open opens "sqlite:FILE", which is created, or "postgres://USER@HOST/NAME?...", and brings its schema up to date.
// Several programs may open one PostgreSQL database at once. ErrNewerSchema if a newer program has changed it.
func Open(ctx context.Context, dsn string) (*DB, error) { return OpenChanging(ctx, dsn, nil) }

// OpenChanging is Open for a URL that may change, for example its password: it is asked for again for each new connection to
// PostgreSQL. It has to name the same database always.
func OpenChanging(ctx context.Context, dsn string, again func() (string, error)) (*DB, error) {
	db, err := connect(dsn, again)
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
	if err == nil && db.openCarrier != nil {
		err = db.startCarrier(context.WithoutCancel(ctx))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("database %s cannot be used: %w", Name(dsn), err), db.Close())
	}
	return db, nil
}

func (db *DB) startCarrier(ctx context.Context) (err error) {
	if db.carrier, err = db.openCarrier(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { db.carry(ctx, db.carrier) })
	db.stop = func() { cancel(); done.Wait() }
	return nil
}

// Check tells whether a DSN has a form that Open knows, without opening anything.
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

func connect(dsn string, again func() (string, error)) (*DB, error) {
	if err := Check(dsn); err != nil {
		return nil, err
	}
	if isPostgres(dsn) {
		return connectPostgres(dsn, again)
	}
	return connectSQLite(strings.TrimPrefix(dsn, "sqlite:"))
}

// Postgres tells which of the two it is, for the few statements that cannot be the same.
func (db *DB) Postgres() bool { return db.postgres }

// Write runs f in one transaction, which is durable when Write returns nil; an error of f undoes all of it. Writes that
// wait at the same time share a commit. f uses tx as it is given (its context outlives the caller's), begins no other
// Write, and may be run a second time, so it changes nothing that it has not read in the same run.
func (db *DB) Write(ctx context.Context, f func(tx *gorm.DB) error) error {
	return translate(db.group.do(ctx, &write{f: f}))
}

// attempts of a transaction that PostgreSQL ends to let another one pass (a deadlock).
const attempts = 3

// Read runs f on one consistent snapshot; f cannot write.
func (db *DB) Read(ctx context.Context, f func(tx *gorm.DB) error) error {
	return translate(db.r.WithContext(ctx).Transaction(f, db.readOnly))
}

// ReadOne runs f, which makes one query: that sees one instant by itself, so that the two statements around it can be
// saved, which cost as much as a small query.
func (db *DB) ReadOne(ctx context.Context, f func(tx *gorm.DB) error) error {
	return translate(f(db.r.WithContext(ctx)))
}

// Ping tells whether the database can be read and written. Beginning as a writer finds a read-only file, a lock that
// is never released, and a PostgreSQL server that only follows another one.
func (db *DB) Ping(ctx context.Context) error {
	return db.Write(ctx, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE goose_db_version SET tstamp = tstamp WHERE id = -1").Error
	})
}

// Lock makes the writers that take the same name wait for each other until their transactions end. SQLite has one
// writer at a time anyhow.
func Lock(tx *gorm.DB, name string) error {
	if tx.Name() != postgresName {
		return nil
	}
	return tx.Exec("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", name).Error
}

// Close the connections.
func (db *DB) Close() error {
	if db.stop != nil {
		db.stop()
	}
	var errs []error
	pools := []*gorm.DB{db.w}
	if db.r != nil && db.r != db.w {
		pools = append(pools, db.r)
	}
	if db.carrier != nil {
		pools = append(pools, db.carrier)
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
