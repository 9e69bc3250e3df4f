package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"

	sqlite "github.com/glebarez/go-sqlite"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/acp-io/acp/internal/message"
)

// Errors that callers handle differently.
var (
	// ErrUnavailable means that the database cannot be reached, read or written now. Nothing was changed.
	ErrUnavailable = errors.New("the database cannot be used now")
	// ErrOutcomeUnknown means that the database did not answer a commit. The change was made completely or not at
	// all; only reading shows which.
	ErrOutcomeUnknown = errors.New("the database did not say whether it made the change")
	// ErrConflict means that a row with the same key exists already.
	ErrConflict = errors.New("the row exists already")
	// ErrNewerSchema means that a newer program has migrated the database to a schema on which this program cannot work.
	ErrNewerSchema = errors.New("the database has a newer schema than this program supports")
)

// Error is an error of the database. errors.Is finds ErrUnavailable, ErrOutcomeUnknown or ErrConflict in it. Detail says
// to users what it means; Err is the cause, for the log.
type Error struct {
	Kind   error
	Detail message.Message
	Err    error
}

func (e *Error) Error() string   { return e.Kind.Error() + ": " + e.Err.Error() }
func (e *Error) Unwrap() []error { return []error{e.Kind, e.Err} }

// Detail returns the message for users about an error of a database. For any other error it returns a general one.
func Detail(err error) message.Message {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Detail
	}
	return detailAny
}

var (
	detailAny  = message.DatabaseUnavailable()
	detailRead = message.DatabaseReadOnly()
	detailFull = message.DatabaseFull()
	detailBusy = message.DatabaseBusy()

	detailUnknown = message.DatabaseOutcomeUnknown()
)

// translate turns errors of the database drivers into *Error. It returns all other errors unchanged, including the end
// of the caller's context.
func translate(err error) error {
	if err == nil {
		return nil
	}
	if e := (*Error)(nil); errors.As(err, &e) {
		return err
	}
	if e := (*sqlite.Error)(nil); errors.As(err, &e) {
		return fromSQLite(e.Code(), err)
	}
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		return fromPostgres(e.Code, err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	netErr, connectErr := net.Error(nil), (*pgconn.ConnectError)(nil)
	if errors.As(err, &netErr) || errors.As(err, &connectErr) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, sql.ErrTxDone) {
		return &Error{ErrUnavailable, detailAny, err}
	}
	return err
}

// fromSQLite classifies result codes as https://sqlite.org/rescode.html defines them.
func fromSQLite(code int, err error) error {
	switch code {
	case 1555, 2067: // SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_UNIQUE
		return &Error{ErrConflict, detailBusy, err}
	}
	switch code & 0xff { // the primary result code
	case 5, 6: // SQLITE_BUSY, SQLITE_LOCKED
		return &Error{ErrUnavailable, detailBusy, err}
	case 8: // SQLITE_READONLY
		return &Error{ErrUnavailable, detailRead, err}
	case 13: // SQLITE_FULL
		return &Error{ErrUnavailable, detailFull, err}
	}
	return &Error{ErrUnavailable, detailAny, err}
}

// fromPostgres classifies codes as https://www.postgresql.org/docs/current/errcodes-appendix.html defines them.
func fromPostgres(code string, err error) error {
	switch code {
	case "23505": // unique_violation
		return &Error{ErrConflict, detailBusy, err}
	case "25006": // read_only_sql_transaction
		return &Error{ErrUnavailable, detailRead, err}
	case "53100": // disk_full
		return &Error{ErrUnavailable, detailFull, err}
	case "40001", "40P01", "55P03", "53300": // serialization_failure, deadlock_detected, lock_not_available, too_many_connections
		return &Error{ErrUnavailable, detailBusy, err}
	}
	return &Error{ErrUnavailable, detailAny, err}
}

// isSerializationConflict reports whether PostgreSQL aborted a transaction only in favour of another one, so that it
// can be retried.
func isSerializationConflict(err error) bool {
	e := (*pgconn.PgError)(nil)
	return errors.As(err, &e) && (e.Code == "40001" || e.Code == "40P01")
}

// isClosedConnection reports whether a transaction failed before its commit because its connection was closed, so that it
// can be retried on another one.
func isClosedConnection(err error) bool {
	return errors.Is(err, driver.ErrBadConn) && !errors.Is(err, ErrOutcomeUnknown)
}
