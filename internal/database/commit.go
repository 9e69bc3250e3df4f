package database

import (
	"database/sql"
	"errors"

	sqlite "github.com/glebarez/go-sqlite"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// notCommitted reports whether an error of a commit proves that the transaction was rolled back. Every other error
// leaves the outcome unknown: the connection may have ended after the database had committed and before its answer
// arrived. pgconn.SafeToRetry cannot distinguish the two: it reports a connection that ends while it waits for the
// answer like one that was closed before.
func notCommitted(err error) bool {
	if errors.Is(err, sql.ErrTxDone) || errors.Is(err, pgx.ErrTxCommitRollback) {
		return true
	}
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		switch e.Code {
		case "08007", "40003": // transaction_resolution_unknown, statement_completion_unknown
			return false
		}
		// An error of a higher severity ends the session, at any point of the commit.
		return e.SeverityUnlocalized == "ERROR" || e.SeverityUnlocalized == "" && e.Severity == "ERROR"
	}
	if e := (*sqlite.Error)(nil); errors.As(err, &e) {
		switch e.Code() & 0xff {
		case 5, 6, 8, 13, 19: // SQLITE_BUSY, SQLITE_LOCKED, SQLITE_READONLY, SQLITE_FULL, SQLITE_CONSTRAINT
			return true
		}
	}
	return false
}
