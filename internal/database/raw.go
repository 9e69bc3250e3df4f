package database

import (
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"gorm.io/gorm"
)

// Rows calls each for every row of a query, without gorm's builder and its reflection: for the few queries that each call
// of the portal makes. Values are written as ?, which is nothing else in the query.
func Rows(tx *gorm.DB, each func(rows *sql.Rows) error, query string, args ...any) (err error) {
	rows, err := tx.Statement.ConnPool.QueryContext(tx.Statement.Context, spell(tx, query), args...)
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Exec is Rows for a statement without a result.
func Exec(tx *gorm.DB, statement string, args ...any) error {
	if _, err := tx.Statement.ConnPool.ExecContext(tx.Statement.Context, spell(tx, statement), args...); err != nil {
		return fmt.Errorf("execute: %w", err)
	}
	return nil
}

var numbered sync.Map // query to query

// spell writes values as the database wants them.
func spell(tx *gorm.DB, query string) string {
	if tx.Name() != postgresName {
		return query
	}
	if known, ok := numbered.Load(query); ok {
		return known.(string)
	}
	parts := strings.Split(query, "?")
	var out strings.Builder
	for i, part := range parts {
		out.WriteString(part)
		if i < len(parts)-1 {
			out.WriteString("$" + strconv.Itoa(i+1))
		}
	}
	numbered.Store(query, out.String())
	return out.String()
}
