package backup

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database"
)

// table is a table that a backup contains.
type table struct {
	name string
	// order lists the columns by which rows are ordered.
	order string
	// where selects the rows. Empty selects all.
	where string
	// serial is the column that the database numbers, or empty.
	serial string
}

// tables returns the tables of a backup, in an order in which references can be restored. The jobs come last: see copyTables.
func tables() []table {
	return []table{
		{name: "tickets", order: "number", serial: "number"},
		{name: "items", order: "ticket, position"},
		{name: "concerns", order: "ticket, item, person, role"},
		{name: "ticket_events", order: "seq", serial: "seq"},
		{name: "claims", order: "application, resource, action"},
		{name: "ticket_words", order: "ticket, word"},
		{name: "delegations", order: "id", serial: "id"},
		{name: "ledger", order: "seq"},
		{name: "catalog_revision", order: "id"},
		{name: "catalog_entities", order: "kind, id"},
		{name: "catalog_sources", order: "source"},
		// Messages that were to be sent are about a state that is over; the inbox keeps what they say.
		{name: "notifications", order: "id", serial: "id", where: "channel = 'inbox'"},
		{name: "notify_preferences", order: "person"},
		{name: "saved_views", order: "id", serial: "id"},
		{name: "access_packages", order: "name"},
		{name: "access_package_versions", order: "package, number"},
		{name: "access_package_updates", order: "package, version"},
		{name: "access_package_holders", order: "package, version, application"},
		{name: "rollout_states", order: "resource"},
		{name: "proposal_reviews", order: "resource"},
		{name: "client_notices", order: "resource, application"},
		{name: "reviews", order: "id", serial: "id"},
		{name: "review_lines", order: "review, line"},
		{name: "review_reviewers", order: "person, review, line"},
		{name: "outbox", order: "id", serial: "id"},
	}
}

// leftOut returns the tables that a backup does not contain, and why.
func leftOut() map[string]string {
	return map[string]string{
		"goose_db_version":     "the manifest has the schema",
		"schema_compatibility": "follows from the schema",
		"sessions":             "people log in again; a backup contains no credentials",
		"device_logins":        "as sessions",
		"tokens":               "a token that was revoked after the backup must not come back",
		"idempotency":          "answers to calls whose callers no longer wait",
		"catalog_previews":     "of people who are logged in",
		"notify_outbox":        "notifications that were not made yet, about a state that is over",
		"changes":              "not used any more",
		"rollout_lead":         "a lease of a portal that runs",
		"ledger_objects":       "generations of objects that are created anew; the first comparison begins again",
		"ledger_own":           "as ledger_objects",
		"ledger_contents":      "as ledger_objects",
		"ledger_watched":       "as ledger_objects",
		"ledger_instructions":  "as ledger_objects",
	}
}

// column is a column of a table that is stored, not computed.
type column struct {
	Name string `json:"name"`
	// Type is integer, boolean or text.
	Type string `json:"type"`
}

// columns returns the stored columns of a table in a fixed order, the same for both databases.
func columns(tx *gorm.DB, postgres bool, name string) (out []column, err error) {
	query := "SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden = 0 ORDER BY name"
	if postgres {
		query = "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = ? " +
			"AND is_generated = 'NEVER' ORDER BY column_name COLLATE \"C\""
	}
	err = database.Rows(tx, func(rows *sql.Rows) error {
		var c column
		if err := rows.Scan(&c.Name, &c.Type); err != nil {
			return err
		}
		switch t := strings.ToLower(c.Type); t {
		case "bigint", "integer":
			c.Type = "integer"
		case "boolean", "text":
			c.Type = t
		default:
			return fmt.Errorf("column %s.%s has the type %s, which a backup cannot contain", name, c.Name, c.Type)
		}
		out = append(out, c)
		return nil
	}, query, name)
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("the database has no table %s", name)
	}
	return out, err
}

// schema returns the schema changes that a database has.
func schema(tx *gorm.DB) ([]int64, error) {
	return database.Select[int64](tx, "SELECT version_id FROM goose_db_version WHERE is_applied AND version_id > 0 ORDER BY version_id")
}

// rowsOf yields the rows of a table; each has the values of the columns in their order.
func rowsOf(tx *gorm.DB, t table, cols []column) iter.Seq2[[]any, error] {
	names := make([]string, len(cols))
	for i, c := range cols {
		names[i] = c.Name
	}
	query := "SELECT " + strings.Join(names, ", ") + " FROM " + t.name
	if t.where != "" {
		query += " WHERE " + t.where
	}
	query += " ORDER BY " + t.order
	return func(yield func([]any, error) bool) {
		more := true
		err := database.Rows(tx, func(rows *sql.Rows) error {
			if !more {
				return nil
			}
			row, targets := make([]any, len(cols)), make([]any, len(cols))
			for i, c := range cols {
				switch c.Type {
				case "integer":
					targets[i] = new(sql.NullInt64)
				case "boolean":
					targets[i] = new(sql.NullBool)
				default:
					targets[i] = new(sql.NullString)
				}
			}
			if err := rows.Scan(targets...); err != nil {
				return err
			}
			for i := range targets {
				switch v := targets[i].(type) {
				case *sql.NullInt64:
					row[i] = ifValid(v.Valid, v.Int64)
				case *sql.NullBool:
					row[i] = ifValid(v.Valid, v.Bool)
				case *sql.NullString:
					row[i] = ifValid(v.Valid, v.String)
				}
			}
			more = yield(row, nil)
			return nil
		}, query)
		if err != nil && more {
			yield(nil, fmt.Errorf("read table %s: %w", t.name, err))
		}
	}
}

func ifValid[T any](valid bool, v T) any {
	if !valid {
		return nil
	}
	return v
}

// insertAtOnce bounds the rows of one INSERT, and with the widest table its values, below the databases' limits.
const insertAtOnce = 200

// insert adds rows to a table that has none of them.
func insert(tx *gorm.DB, t table, cols []column, rows iter.Seq2[[]any, error]) error {
	names := make([]string, len(cols))
	for i, c := range cols {
		names[i] = c.Name
	}
	into := "INSERT INTO " + t.name + " (" + strings.Join(names, ", ") + ") VALUES "
	one := "(" + database.Placeholders(len(cols)) + ")"
	var values []any
	n := 0
	flush := func() error {
		if n == 0 {
			return nil
		}
		_, err := database.Exec(tx, into+one+strings.Repeat(", "+one, n-1), values...)
		values, n = values[:0], 0
		if err != nil {
			return fmt.Errorf("write table %s: %w", t.name, err)
		}
		return nil
	}
	for row, err := range rows {
		if err != nil {
			return err
		}
		values, n = append(values, row...), n+1
		if n == insertAtOnce {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// restart makes the database number new rows after the given number, at least after those that it has.
func restart(tx *gorm.DB, postgres bool, t table, after int64) error {
	most, err := database.Number(tx, "SELECT coalesce(max("+t.serial+"), 0) FROM "+t.name)
	if err != nil {
		return err
	}
	after = max(after, most)
	if after == 0 {
		return nil
	}
	if postgres {
		return database.Rows(
			tx,
			func(*sql.Rows) error { return nil },
			"SELECT setval(pg_get_serial_sequence('"+t.name+"', '"+t.serial+"'), CAST(? AS BIGINT))",
			after,
		)
	}
	if _, err := database.Exec(tx, "DELETE FROM sqlite_sequence WHERE name = ?", t.name); err != nil {
		return err
	}
	_, err = database.Exec(tx, "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", t.name, after)
	return err
}

// lastNumber returns the number that a table's next row follows.
func lastNumber(tx *gorm.DB, t table) (int64, error) {
	return database.Number(tx, "SELECT seq FROM sqlite_sequence WHERE name = ?", t.name)
}

// used reports whether a database has rows other than those of migrations.
func used(ctx context.Context, db *database.DB) (bool, error) {
	found := false
	err := db.Read(ctx, func(tx *gorm.DB) error {
		for _, t := range tables() {
			if t.name == "catalog_revision" { // a migration fills it
				continue
			}
			if err := database.Rows(tx, func(*sql.Rows) error { found = true; return nil }, "SELECT 1 FROM "+t.name+" LIMIT 1"); err != nil {
				return err
			}
		}
		return nil
	})
	return found, err
}

// clear removes the rows that migrations make.
func clear(tx *gorm.DB) error {
	_, err := database.Exec(tx, "DELETE FROM catalog_revision")
	return err
}

// copyTables copies all tables of a backup, with the numbers that are used up, into a database without rows, in one transaction. The source
// is a SQLite database.
func copyTables(ctx context.Context, from, to *database.DB) error {
	return from.Read(ctx, func(source *gorm.DB) error {
		return to.Write(ctx, func(target *gorm.DB) error {
			if err := clear(target); err != nil {
				return err
			}
			// People are notified about what ended by the restore.
			for _, t := range append(tables(), table{name: "notify_outbox", order: "id", serial: "id"}) {
				cols, err := columns(source, from.Postgres(), t.name)
				if err != nil {
					return err
				}
				if err := insert(target, t, cols, rowsOf(source, t, cols)); err != nil {
					return err
				}
				if t.serial == "" {
					continue
				}
				last, err := lastNumber(source, t)
				if err != nil {
					return err
				}
				if err := restart(target, to.Postgres(), t, last); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// header is the first record of a table's file; a row is an array of the columns' values.
type header struct {
	Columns []column `json:"columns"`
}

func tableFile(name string) string { return "database/" + name + ".jsonl" }

// complete returns an error if the database can have tables that this program does not know, because a backup without
// them would be restored as if they were empty.
func complete(db *database.DB) error {
	newer := db.NewerChanges()
	if len(newer) == 0 {
		return nil
	}
	return fmt.Errorf("the database has schema change %d, which this program does not know: use the newer program: %w", newer[0], database.ErrNewerSchema)
}

// exportTables writes all tables as they are in one snapshot.
func exportTables(ctx context.Context, db *database.DB, w *writer) error {
	if err := complete(db); err != nil {
		return err
	}
	return db.Read(ctx, func(tx *gorm.DB) (err error) {
		if w.manifest.Schema, err = schema(tx); err != nil {
			return err
		}
		for _, t := range tables() {
			cols, err := columns(tx, db.Postgres(), t.name)
			if err != nil {
				return err
			}
			if err := w.begin(tableFile(t.name)); err != nil {
				return err
			}
			if err := w.add(header{cols}); err != nil {
				return err
			}
			for row, err := range rowsOf(tx, t, cols) {
				if err != nil {
					return err
				}
				if err := w.add(row); err != nil {
					return err
				}
			}
		}
		return database.Rows(tx, func(rows *sql.Rows) error { return rows.Scan(&w.manifest.Head.Seq, &w.manifest.Head.Hash) },
			"SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1")
	})
}

// importTable reads a table's file into a database.
func importTable(tx *gorm.DB, postgres bool, a *Archive, t table) error {
	cols, err := columns(tx, postgres, t.name)
	if err != nil {
		return err
	}
	first := true
	rows := func(yield func([]any, error) bool) {
		for text, err := range a.records(tableFile(t.name)) {
			if err != nil {
				yield(nil, err)
				return
			}
			if first {
				first = false
				var h header
				if err := json.Unmarshal(text, &h); err != nil || !slices.Equal(h.Columns, cols) {
					yield(nil, fmt.Errorf("table %s of the backup has other columns than the database", t.name))
					return
				}
				continue
			}
			row, err := parseRow(text, cols)
			if err != nil {
				err = fmt.Errorf("table %s of the backup: %w", t.name, err)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
	return insert(tx, t, cols, rows)
}

func parseRow(text []byte, cols []column) ([]any, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil || len(raw) != len(cols) {
		return nil, fmt.Errorf("a row does not have %d values", len(cols))
	}
	row := make([]any, len(cols))
	for i, c := range cols {
		var err error
		switch c.Type {
		case "integer":
			row[i], err = value[int64](raw[i])
		case "boolean":
			row[i], err = value[bool](raw[i])
		default:
			row[i], err = value[string](raw[i])
		}
		if err != nil {
			return nil, fmt.Errorf("the value of %s is not %s", c.Name, c.Type)
		}
	}
	return row, nil
}

func value[T any](raw json.RawMessage) (any, error) {
	var v *T
	if err := json.Unmarshal(raw, &v); err != nil || v == nil {
		return nil, err
	}
	return *v, nil
}
