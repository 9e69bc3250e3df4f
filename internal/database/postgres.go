package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
)

const (
	postgresName  = "postgres" // gorm's name of the dialect
	postgresConns = 16
)

func isPostgres(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

// postgresConfig parses a DSN. Its error never contains the DSN, which may hold a password.
func postgresConfig(dsn string) (*pgx.ConnConfig, error) {
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("the URL of the PostgreSQL database cannot be read: use postgres://USER@HOST:PORT/DATABASE?sslmode=verify-full")
	}
	c.RuntimeParams["application_name"] = "acp"
	return c, nil
}

// connectPostgres opens a connection pool. If refresh is not nil, it is called before each new connection, because the
// password may have changed.
func connectPostgres(dsn string, refresh func() (string, error)) (*DB, error) {
	c, err := postgresConfig(dsn)
	if err != nil {
		return nil, err
	}
	pool := stdlib.OpenDB(*c, stdlib.OptionBeforeConnect(func(_ context.Context, c *pgx.ConnConfig) error {
		if refresh == nil {
			return nil
		}
		dsn, err := refresh()
		if err != nil {
			return err
		}
		fresh, err := postgresConfig(dsn)
		if err != nil {
			return err
		}
		*c = *fresh
		return nil
	}))
	g, err := openGorm(postgres.New(postgres.Config{Conn: pool}), postgresConns)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("database %s cannot be used: %w", Name(dsn), err), pool.Close())
	}
	// All queries of one read see the same instant.
	return &DB{w: g, postgres: true, readOnly: &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead}}, nil
}

// Name returns the name of a database for messages, without user and password.
func Name(dsn string) string {
	if !isPostgres(dsn) {
		return strings.TrimPrefix(dsn, "sqlite:")
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "postgres"
	}
	return "postgres://" + u.Host + u.Path
}
