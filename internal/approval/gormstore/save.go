package gormstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	notifystore "github.com/acp-io/acp/internal/notify/gormstore"
)

// Create implements approval.Store.
func (s *Store) Create(ctx context.Context, t *approval.Ticket) (stored *approval.Ticket, err error) {
	for range 2 {
		stored = t
		err = s.db.Write(ctx, func(tx *gorm.DB) error {
			same, err := submitted(tx, t)
			if err != nil || same != nil {
				stored = same
				return err
			}
			return create(tx, t)
		})
		// Somebody has used the idempotency key since it was looked for: his ticket is found the second time.
		if !errors.Is(err, database.ErrConflict) {
			break
		}
	}
	if err != nil {
		return nil, storeError(err)
	}
	stored.Stored()
	return stored, nil
}

// submitted is the ticket that the same request has made before; nil: none.
func submitted(tx *gorm.DB, t *approval.Ticket) (*approval.Ticket, error) {
	if t.IdempotencyKey == "" {
		return nil, nil
	}
	same, err := ticketRows(tx, "requester = ? AND idempotency_key = ?", t.Requester, t.IdempotencyKey)
	if err != nil || len(same) == 0 {
		return nil, err
	}
	return load(tx, same[0].Number, false)
}

func create(tx *gorm.DB, t *approval.Ticket) error {
	r := rowOf(t)
	if err := database.Rows(tx, func(rows *sql.Rows) error { return rows.Scan(&r.Number) },
		"INSERT INTO tickets (kind, state, version, requester, reason, idempotency_key, break_glass, created_at, updated_at) VALUES ("+database.Marks(9)+") RETURNING number",
		r.Kind, r.State, r.Version, r.Requester, r.Reason, r.IdempotencyKey, r.BreakGlass, r.CreatedAt, r.UpdatedAt); err != nil {
		return err
	}
	t.Numbered(r.Number)
	// A claim that somebody else is taking in this moment is waited for.
	taken, err := claim(tx, t)
	if err != nil {
		return err
	}
	if len(taken) > 0 {
		other, err := claimedBy(tx, taken)
		if err != nil {
			return err
		}
		return &approval.Error{Code: approval.CodeDuplicate, Ticket: other, Detail: "A ticket under way already asks for this access."}
	}
	return saveParts(tx, t, nil)
}

// Update implements approval.Store.
func (s *Store) Update(ctx context.Context, number int64, change func(*approval.Ticket) error) (*approval.Ticket, error) {
	var t *approval.Ticket
	err := s.write(ctx, func(tx *gorm.DB) (err error) {
		t, err = update(tx, number, change)
		return err
	})
	if err != nil {
		return nil, err
	}
	t.Stored()
	return t, nil
}

// update locks the ticket where a database has many writers, and writes only onto the version that it has read.
func update(tx *gorm.DB, number int64, change func(*approval.Ticket) error) (*approval.Ticket, error) {
	t, err := load(tx, number, true)
	if err != nil {
		return nil, err
	}
	before, concerns, claims := t.Version, t.Concerns(), t.Claims()
	if err := change(t); err != nil {
		return nil, err
	}
	if !t.Dirty() {
		return t, nil
	}
	// What was asked for never changes.
	n, err := database.Exec(tx, "UPDATE tickets SET state = ?, version = ?, updated_at = ? WHERE number = ? AND version = ?",
		t.State(), t.Version, micros(t.UpdatedAt), number, before)
	if err != nil {
		return nil, err
	}
	if n != 1 {
		return nil, &approval.Error{Code: approval.CodeStale, Detail: "The ticket changed meanwhile: look again, then decide."}
	}
	if !slices.Equal(claims, t.Claims()) {
		if _, err := database.Exec(tx, "DELETE FROM claims WHERE ticket = ?", number); err != nil {
			return nil, err
		}
		// A failed ticket that comes back finds its claim taken by the one that was made meanwhile, which keeps it.
		if _, err := claim(tx, t); err != nil {
			return nil, err
		}
	}
	return t, saveParts(tx, t, concerns)
}

// saveParts writes what may differ after any transition: items, new events with what they bring to others, concerns,
// jobs. The ledger's line is the last but the jobs and the change, because writers of lines wait for each other.
func saveParts(tx *gorm.DB, t *approval.Ticket, concerns []approval.Concern) error {
	if err := saveItems(tx, t); err != nil {
		return err
	}
	if err := saveConcerns(tx, t, concerns); err != nil {
		return err
	}
	var events [][]any
	for _, e := range t.Events {
		if !e.Saved {
			events = append(events, []any{t.Number, e.Item, micros(e.At), e.Kind, e.Actor, e.OnBehalfOf, e.Step, e.Cluster, e.Revision, e.Comment})
		}
	}
	if _, err := database.Insert(tx, "ticket_events (ticket, item, at, kind, actor, on_behalf_of, step, cluster, revision, comment)", "", events); err != nil {
		return err
	}
	if err := notifystore.Enqueue(tx, t); err != nil {
		return err
	}
	entries := approval.LedgerEntries(t)
	if len(entries) == 0 {
		if err := ledgerstore.Lock(tx); err != nil {
			return err
		}
	}
	if err := ledgerstore.Append(tx, entries...); err != nil {
		return err
	}
	if err := addJobs(tx, t); err != nil {
		return err
	}
	return changed(tx, t.Number)
}

// saveItems writes all of a new item, and of one that is there what transitions change: each other column in an index
// would cost as if it had changed.
func saveItems(tx *gorm.DB, t *approval.Ticket) error {
	rows := make([][]any, len(t.Items))
	for i := range t.Items {
		r := itemOf(t, i)
		body, err := json.Marshal(r.Body)
		if err != nil {
			return fmt.Errorf("write an item of ticket %s: %w", t.ID(), err)
		}
		rows[i] = []any{r.Ticket, r.Position, r.State, r.Application, r.ApplicationName, r.Resource, r.ResourceName, r.Policy, r.TargetTicket, r.TargetItem,
			r.ExpiresAt, r.DueAt, string(body)}
	}
	_, err := database.Insert(tx, "items (ticket, position, state, application, application_name, resource, resource_name, policy, target_ticket, target_item, expires_at, due_at, body)",
		` ON CONFLICT (ticket, position) DO UPDATE SET state = excluded.state, policy = excluded.policy, expires_at = excluded.expires_at, due_at = excluded.due_at, body = excluded.body`, rows)
	return err
}

// saveConcerns writes whom the items concern now and did not before, and removes the others.
func saveConcerns(tx *gorm.DB, t *approval.Ticket, before []approval.Concern) error {
	now := t.Concerns()
	is, was := setOf(now), setOf(before)
	var gone, added [][]any
	const one = "(CAST(? AS BIGINT), ?, ?)" // PostgreSQL takes values of VALUES for texts
	for _, c := range before {
		if !is[c] {
			gone = append(gone, []any{c.Item, c.Person, c.Role})
		}
	}
	for some := range slices.Chunk(gone, fillAtOnce) {
		args := append([]any{t.Number}, slices.Concat(some...)...)
		if _, err := database.Exec(tx, "DELETE FROM concerns WHERE ticket = ? AND (item, person, role) IN (VALUES "+one+strings.Repeat(", "+one, len(some)-1)+")", args...); err != nil {
			return err
		}
	}
	for _, c := range now {
		if !was[c] {
			added = append(added, []any{t.Number, c.Item, c.Person, c.Role})
		}
	}
	_, err := database.Insert(tx, "concerns (ticket, item, person, role)", "", added)
	return err
}

func setOf(some []approval.Concern) map[approval.Concern]bool {
	out := make(map[approval.Concern]bool, len(some))
	for _, c := range some {
		out[c] = true
	}
	return out
}

// addJobs comes after the ledger's lines: their writers go one after the other, so jobs are numbered in the order in
// which they can be seen.
func addJobs(tx *gorm.DB, t *approval.Ticket) error {
	var rows [][]any
	for _, j := range t.Jobs() {
		rows = append(rows, []any{t.Number, j.Item, j.Kind, t.JobKey(j.Item), 0, 0, false, "", 0})
	}
	_, err := database.Insert(tx, "outbox (ticket, item, kind, job_key, run_after, attempts, parked, worker, lease_until)", "", rows)
	return err
}
