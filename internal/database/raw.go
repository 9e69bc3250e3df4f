package database

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gorm.io/gorm"
)

// Rows calls each for every row of a query, without gorm's query builder and its reflection. It is for the few queries
// that every call of the portal makes. A ? stands for a value, and must not occur in the query otherwise.
func Rows(tx *gorm.DB, each func(rows *sql.Rows) error, query string, args ...any) (err error) {
	rows, err := tx.Statement.ConnPool.QueryContext(tx.Statement.Context, withPlaceholders(tx, query), args...)
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

// Exec executes a statement in the form of Rows, and returns the number of changed rows.
func Exec(tx *gorm.DB, statement string, args ...any) (int64, error) {
	res, err := tx.Statement.ConnPool.ExecContext(tx.Statement.Context, withPlaceholders(tx, statement), args...)
	if err != nil {
		return 0, fmt.Errorf("execute: %w", err)
	}
	return res.RowsAffected()
}

// insertAtOnce is the number of rows in one INSERT, so that the number of values stays below the databases' limits.
const insertAtOnce = 500

// Insert adds rows to a table, which is given as "TABLE (COLUMN, ...)"; rest is SQL that follows the values. It returns
// the number of added rows.
func Insert(tx *gorm.DB, into, rest string, rows [][]any) (n int64, err error) {
	for some := range slices.Chunk(rows, insertAtOnce) {
		table, args := Table(tx, some)
		added, err := Exec(tx, "INSERT INTO "+into+" "+table+rest, args...)
		if err != nil {
			return n, err
		}
		n += added
	}
	return n, nil
}

// Placeholders returns the placeholders of n values, at least one.
func Placeholders(n int) string { return "?" + strings.Repeat(", ?", n-1) }

var numbered sync.Map // from queries with ? to queries with numbers

// withPlaceholders returns a query with the placeholders that the database uses.
func withPlaceholders(tx *gorm.DB, query string) string {
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
