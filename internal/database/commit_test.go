package database_test

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/testenv"
)

// cutter is a proxy to PostgreSQL that can cut a connection during a commit.
type cutter struct {
	to   string
	when atomic.Pointer[string] // "before" or "after" the server received the commit, or nil for never
}

// follow forwards one connection. The commit is a message of its own, because it has no parameters.
func (x *cutter) follow(client net.Conn) {
	server, err := net.Dial("tcp", x.to)
	if err != nil {
		_ = client.Close()
		return
	}
	end := sync.OnceFunc(func() { _ = client.Close(); _ = server.Close() })
	var cut atomic.Bool
	go func() {
		defer end()
		data := make([]byte, 64<<10)
		for {
			n, err := server.Read(data)
			if err != nil || cut.Load() {
				return // Also after the commit, whose answer is not forwarded.
			}
			if _, err := client.Write(data[:n]); err != nil {
				return
			}
		}
	}()
	defer func() {
		if !cut.Load() {
			end()
		}
	}()
	data := make([]byte, 64<<10)
	for {
		n, err := client.Read(data)
		if err != nil {
			return
		}
		if when := x.when.Load(); when != nil && bytes.Contains(bytes.ToLower(data[:n]), []byte("commit")) {
			if *when == "before" {
				return
			}
			cut.Store(true)
		}
		if _, err := server.Write(data[:n]); err != nil || cut.Load() {
			return
		}
	}
}

// through returns a DSN that leads through a cutter.
func through(t *testing.T, dsn string) (string, *cutter) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	x := &cutter{to: u.Host}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go x.follow(c)
		}
	}()
	u.Host = l.Addr().String()
	return u.String(), x
}

// TestCommitWithoutAnswer checks that a commit whose answer does not arrive is reported as unknown, whether or not the
// database made the change.
func TestCommitWithoutAnswer(t *testing.T) {
	insert := func(tx *gorm.DB) error {
		return tx.Exec("INSERT INTO sessions (token, data, expires_at) VALUES ('a', 'b', 1)").Error
	}
	for when, rows := range map[string]int64{"before": 0, "after": 1} {
		check := func(t *testing.T, db *database.DB, dsn string, stop func()) {
			t.Helper()
			err := db.Write(t.Context(), insert)
			if !errors.Is(err, database.ErrOutcomeUnknown) || errors.Is(err, database.ErrUnavailable) ||
				strings.Contains(strings.ToLower(database.Detail(err).Text), "nothing was changed") {
				t.Errorf("connection cut %s the commit: got %v, want only ErrOutcomeUnknown", when, err)
			}
			if stop(); count(t, databasetest.Open(t, dsn), "sessions") != rows {
				t.Errorf("connection cut %s the commit: want %d rows", when, rows)
			}
			if err := db.Write(t.Context(), func(tx *gorm.DB) error { return tx.Exec("DELETE FROM sessions").Error }); err != nil {
				t.Errorf("the next write: %v", err)
			}
		}
		t.Run("postgres "+when, func(t *testing.T) {
			dsn := testenv.Postgres(t)
			by, x := through(t, dsn)
			db := databasetest.Open(t, by)
			x.when.Store(&when)
			check(t, db, dsn, func() { x.when.Store(nil) })
		})
		t.Run("sqlite "+when, func(t *testing.T) {
			dsn := databasetest.SQLite(t)
			db := databasetest.Open(t, dsn)
			database.AfterCommits(db, when == "before", func() error { return io.ErrUnexpectedEOF })
			check(t, db, dsn, func() { database.AfterCommits(db, false, func() error { return nil }) })
		})
	}
}

func TestNotCommitted(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"deferred constraint":  {&pgconn.PgError{Code: "23503", Severity: "ERROR"}, true},
		"serialization":        {&pgconn.PgError{Code: "40001", SeverityUnlocalized: "ERROR", Severity: "FEHLER"}, true},
		"server is shut down":  {&pgconn.PgError{Code: "57P01", Severity: "FATAL"}, false},
		"server crashes":       {&pgconn.PgError{Code: "57P02", Severity: "PANIC"}, false},
		"resolution unknown":   {&pgconn.PgError{Code: "08007", Severity: "ERROR"}, false},
		"completion unknown":   {&pgconn.PgError{Code: "40003", Severity: "ERROR"}, false},
		"answered by rollback": {pgx.ErrTxCommitRollback, true},
		"ended before":         {sql.ErrTxDone, true},
		"no answer":            {io.ErrUnexpectedEOF, false},
		"no answer in time":    {context.DeadlineExceeded, false},
		"connection is gone":   {driver.ErrBadConn, false},
		"something else":       {errors.New("x"), false},
	} {
		if got := database.NotCommitted(tc.err); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
