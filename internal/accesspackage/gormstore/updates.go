package gormstore

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/ledger"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/message"
)

type updateRow struct {
	Package string
	Version int
	State   accesspackage.UpdateState
	Reason  string
	BegunAt int64
	EndedAt int64
}

type holderRow struct {
	Package     string
	Version     int
	Application string
	State       accesspackage.HolderState
	Plan        string
	Ticket      int64
	Message     string
	UpdatedAt   int64
}

// queueUpdate stores the update of a version that is given to holders.
func queueUpdate(tx *gorm.DB, name string, version int, spec accesspackage.Spec, at time.Time) error {
	if len(spec.Holders) == 0 {
		return nil
	}
	if _, err := database.Exec(tx, "INSERT INTO access_package_updates (package, version, state, reason, begun_at, ended_at) VALUES (?, ?, ?, '', 0, 0)",
		name, version, accesspackage.UpdateQueued); err != nil {
		return err
	}
	var rows [][]any
	for _, application := range slices.Sorted(maps.Keys(spec.Holders)) {
		rows = append(rows, []any{name, version, application, string(accesspackage.HolderPending), "{}", 0, "", database.Micros(at)})
	}
	_, err := database.Insert(tx, "access_package_holders (package, version, application, state, plan, ticket, message, updated_at)", "", rows)
	return err
}

// OpenUpdates implements accesspackage.UpdateStore.
func (s *Store) OpenUpdates(ctx context.Context, limit int) ([]accesspackage.Update, error) {
	return s.updates(ctx, "SELECT * FROM access_package_updates WHERE ended_at = 0 ORDER BY package, version LIMIT ?", limit)
}

// UpdatesOf implements accesspackage.UpdateStore.
func (s *Store) UpdatesOf(ctx context.Context, name string, limit int) ([]accesspackage.Update, error) {
	return s.updates(ctx, "SELECT * FROM access_package_updates WHERE package = ? ORDER BY version DESC LIMIT ?", name, limit)
}

func (s *Store) updates(ctx context.Context, query string, args ...any) ([]accesspackage.Update, error) {
	var rows []updateRow
	err := s.db.ReadOne(ctx, func(tx *gorm.DB) (err error) {
		rows, err = database.Select[updateRow](tx, query, args...)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := make([]accesspackage.Update, 0, len(rows))
	for _, r := range rows {
		reason, err := messageOf(r.Reason)
		if err != nil {
			return nil, err
		}
		out = append(out, accesspackage.Update{Package: r.Package, Version: r.Version, State: r.State, Reason: reason, BegunAt: database.Instant(r.BegunAt),
			EndedAt: database.Instant(r.EndedAt)})
	}
	return out, nil
}

// BeginUpdate implements accesspackage.UpdateStore.
func (s *Store) BeginUpdate(ctx context.Context, u accesspackage.Update, at time.Time) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		n, err := database.Exec(tx, "UPDATE access_package_updates SET state = ?, begun_at = ? WHERE package = ? AND version = ? AND state = ?",
			accesspackage.UpdateRunning, database.Micros(at), u.Package, u.Version, accesspackage.UpdateQueued)
		if err != nil || n == 0 {
			return err
		}
		all, err := database.Number(tx, "SELECT COUNT(*) FROM access_package_holders WHERE package = ? AND version = ?", u.Package, u.Version)
		if err != nil {
			return err
		}
		return ledgerstore.Append(tx, ledger.Entry{At: at, Action: "package.holders-begun", Object: u.Package, Details: map[string]string{
			"version": strconv.Itoa(u.Version), "applications": strconv.FormatInt(all, 10)}})
	})
}

// stateCount is the number of applications in a state.
type stateCount struct {
	State accesspackage.HolderState
	N     int
}

// EndUpdate implements accesspackage.UpdateStore.
func (s *Store) EndUpdate(ctx context.Context, u accesspackage.Update, reason message.Message, at time.Time) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		counts, err := database.Select[stateCount](tx,
			"SELECT state, COUNT(*) AS n FROM access_package_holders WHERE package = ? AND version = ? GROUP BY state", u.Package, u.Version)
		if err != nil {
			return err
		}
		details := map[string]string{"version": strconv.Itoa(u.Version), "done": "0", "skipped": "0", "failed": "0"}
		for _, c := range counts {
			if !c.State.Final() {
				return nil
			}
			details[string(c.State)] = strconv.Itoa(c.N)
		}
		state, action, text := accesspackage.UpdateCompleted, "package.holders-completed", ""
		if !reason.IsZero() {
			state, action = accesspackage.UpdateStopped, "package.holders-stopped"
			ledger.SetMessage(details, "reason", reason)
			if text, err = textOf(reason); err != nil {
				return err
			}
		}
		n, err := database.Exec(tx, "UPDATE access_package_updates SET state = ?, reason = ?, ended_at = ? WHERE package = ? AND version = ? AND ended_at = 0",
			state, text, database.Micros(at), u.Package, u.Version)
		if err != nil || n == 0 {
			return err
		}
		return ledgerstore.Append(tx, ledger.Entry{At: at, Action: action, Object: u.Package, Details: details})
	})
}

// HolderUpdates implements accesspackage.UpdateStore.
func (s *Store) HolderUpdates(ctx context.Context, f accesspackage.HolderFilter) ([]accesspackage.HolderUpdate, error) {
	query, args := "SELECT * FROM access_package_holders WHERE package = ? AND version = ?", []any{f.Package, f.Version}
	if len(f.States) > 0 {
		query += " AND state IN (" + database.Placeholders(len(f.States)) + ")"
		for _, state := range f.States {
			args = append(args, string(state))
		}
	}
	query += " ORDER BY application"
	if f.Limit > 0 {
		query += " LIMIT ?"
		args = append(args, f.Limit)
	}
	var rows []holderRow
	err := s.db.ReadOne(ctx, func(tx *gorm.DB) (err error) {
		rows, err = database.Select[holderRow](tx, query, args...)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := make([]accesspackage.HolderUpdate, 0, len(rows))
	for _, r := range rows {
		h := accesspackage.HolderUpdate{Package: r.Package, Version: r.Version, Application: r.Application, State: r.State, Ticket: r.Ticket,
			UpdatedAt: database.Instant(r.UpdatedAt)}
		if err := json.Unmarshal([]byte(r.Plan), &h.Plan); err != nil {
			return nil, fmt.Errorf("read the plan of an update of a holder: %w", err)
		}
		if h.Message, err = messageOf(r.Message); err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	return out, nil
}

// SaveHolder implements accesspackage.UpdateStore.
func (s *Store) SaveHolder(ctx context.Context, h accesspackage.HolderUpdate, from accesspackage.HolderState) (saved bool, err error) {
	plan, err := json.Marshal(h.Plan)
	if err != nil {
		return false, fmt.Errorf("encode the plan of an update of a holder: %w", err)
	}
	text, err := textOf(h.Message)
	if err != nil {
		return false, err
	}
	err = s.db.Write(ctx, func(tx *gorm.DB) error {
		n, err := database.Exec(tx, "UPDATE access_package_holders SET state = ?, plan = ?, ticket = ?, message = ?, updated_at = ?"+
			" WHERE package = ? AND version = ? AND application = ? AND state = ?",
			h.State, string(plan), h.Ticket, text, database.Micros(h.UpdatedAt), h.Package, h.Version, h.Application, from)
		saved = n == 1
		return err
	})
	return saved, err
}

// Lead reports whether a replica holds the lease of the work on updates; see database.DB.Lead.
func (s *Store) Lead(ctx context.Context, holder string, now time.Time, ttl time.Duration) (bool, error) {
	return s.db.Lead(ctx, "access package updates", holder, now, ttl)
}

// textOf returns the stored form of a message, which is empty for no message.
func textOf(m message.Message) (string, error) {
	if m.IsZero() {
		return "", nil
	}
	text, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("encode a message: %w", err)
	}
	return string(text), nil
}

func messageOf(text string) (message.Message, error) {
	var m message.Message
	if text == "" {
		return m, nil
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return m, fmt.Errorf("read a message: %w", err)
	}
	return m, nil
}
