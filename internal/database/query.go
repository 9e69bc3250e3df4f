package database

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/sqlquery"
)

// The functions below execute SQL in a transaction. A ? stands for a value and must not occur in a text otherwise, and
// "IN ?" stands for a list of values; see sqlquery.Expand. gorm's own Create and Save write whole rows of a model;
// nothing else of gorm's query builder is used.

// StatementCallback is the name of the callback of gorm's Raw processor that Rows and Exec call before a statement, which
// they execute without gorm. Tests count statements with it.
const StatementCallback = "acp:statement"

func announce(tx *gorm.DB) {
	if f := tx.Callback().Raw().Get(StatementCallback); f != nil {
		f(tx)
	}
}

// Rows calls each for every row of a query. It uses no reflection, and is for the queries that every call of the portal
// makes, and for rows that are not kept.
func Rows(tx *gorm.DB, each func(rows *sql.Rows) error, query string, args ...any) (err error) {
	announce(tx)
	s := expand(tx, query, args)
	rows, err := tx.Statement.ConnPool.QueryContext(tx.Statement.Context, s.Text, s.Args...)
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

// Select returns the rows of a query as models of gorm, whose fields are found by the names of the columns, or as single
// values.
func Select[T any](tx *gorm.DB, query string, args ...any) ([]T, error) {
	var out []T
	if err := tx.Raw(query, args...).Scan(&out).Error; err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	return out, nil
}

// SelectOne returns the first row of a query in the form of Select, or nil if there is none.
func SelectOne[T any](tx *gorm.DB, query string, args ...any) (*T, error) {
	rows, err := Select[T](tx, query, args...)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// Number returns the number that a query selects, for example a count. It is 0 if there is no row.
func Number(tx *gorm.DB, query string, args ...any) (n int64, err error) {
	err = Rows(tx, func(rows *sql.Rows) error { return rows.Scan(&n) }, query, args...)
	return n, err
}

// Exec executes a statement and returns the number of changed rows.
func Exec(tx *gorm.DB, statement string, args ...any) (int64, error) {
	announce(tx)
	s := expand(tx, statement, args)
	res, err := tx.Statement.ConnPool.ExecContext(tx.Statement.Context, s.Text, s.Args...)
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
	for chunk := range slices.Chunk(rows, insertAtOnce) {
		table, args := Table(tx, chunk)
		added, err := Exec(tx, "INSERT INTO "+into+" "+table+rest, args...)
		if err != nil {
			return n, err
		}
		n += added
	}
	return n, nil
}

// ForUpdate returns the clause that locks the rows of a query until the transaction ends. It is empty for SQLite, which
// has one writer at a time.
func ForUpdate(tx *gorm.DB) string {
	if tx.Name() != postgresName {
		return ""
	}
	return " FOR UPDATE"
}

// ForUpdateSkipLocked is ForUpdate for a query that leaves out the rows that another transaction has locked.
func ForUpdateSkipLocked(tx *gorm.DB) string {
	if tx.Name() != postgresName {
		return ""
	}
	return " FOR UPDATE SKIP LOCKED"
}

// Placeholders returns the placeholders of n values, at least one.
func Placeholders(n int) string { return "?" + strings.Repeat(", ?", n-1) }

func expand(tx *gorm.DB, text string, args []any) sqlquery.Statement {
	return sqlquery.Expand(sqlquery.Statement{Text: text, Args: args}, tx.Name() == postgresName)
}
