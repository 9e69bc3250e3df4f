package gormstore

import (
	"fmt"
	"slices"

	"gorm.io/gorm"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	notifystore "github.com/acp-io/acp/internal/notify/gormstore"
)

// save writes everything that a transition can change: items, concerns, new events with their notifications, ledger lines,
// and jobs. concerns are those of the stored ticket. The ledger lines come late, because only one transaction at a time can
// hold the ledger's lock.
func save(tx *gorm.DB, t *approval.Ticket, concerns []approval.Concern) error {
	if err := saveItems(tx, t); err != nil {
		return err
	}
	if err := saveConcerns(tx, t, concerns); err != nil {
		return err
	}
	if err := saveEvents(tx, t); err != nil {
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
	return addJobs(tx, t)
}

// saveItems inserts new items, and updates the columns of existing ones that transitions change. Updating further columns
// that are indexed would cost as much as changing them.
func saveItems(tx *gorm.DB, t *approval.Ticket) error {
	var rows [][]any
	for i := range t.Items {
		r := itemOf(t, i)
		body, err := encodeItem(t.Items[i])
		if err != nil {
			return fmt.Errorf("write an item of ticket %s: %w", t.ID(), err)
		}
		rows = append(rows, []any{r.Ticket, r.Position, r.State, r.Application, r.ApplicationName, r.Resource, r.ResourceName, r.Policy, r.TargetTicket,
			r.TargetItem, r.ExpiresAt, r.DueAt, string(body), r.Package})
	}
	_, err := database.Insert(
		tx,
		"items (ticket, position, state, application, application_name, resource, resource_name, policy, target_ticket, target_item, expires_at, due_at, "+
			"body, "+
			"package)",
		` ON CONFLICT (ticket, position) DO UPDATE SET state = excluded.state, policy = excluded.policy, expires_at = excluded.expires_at, `+
			`due_at = excluded.due_at, body = excluded.body`,
		rows,
	)
	return err
}

func saveEvents(tx *gorm.DB, t *approval.Ticket) error {
	var rows [][]any
	for _, e := range t.Events {
		if !e.Saved {
			rows = append(
				rows,
				[]any{t.Number, e.Item, database.Micros(e.At), e.Kind, e.Actor, e.OnBehalfOf, e.Step, e.Cluster, e.Revision, commentOf(e), e.Through},
			)
		}
	}
	_, err := database.Insert(tx, "ticket_events (ticket, item, at, kind, actor, on_behalf_of, step, cluster, revision, comment, through)", "", rows)
	return err
}

// saveConcerns inserts the concerns that are new and deletes those that have ended.
func saveConcerns(tx *gorm.DB, t *approval.Ticket, before []approval.Concern) error {
	var gone, added [][]any
	now := t.Concerns()
	has, had := sets.New(now...), sets.New(before...)
	for _, c := range before {
		if !has.Has(c) {
			gone = append(gone, []any{t.Number, c.Item, c.Person, c.Role})
		}
	}
	for _, c := range now {
		if !had.Has(c) {
			added = append(added, []any{t.Number, c.Item, c.Person, c.Role})
		}
	}
	for chunk := range slices.Chunk(gone, maxQueryValues) {
		table, args := database.Table(tx, chunk)
		if _, err := database.Exec(tx, "DELETE FROM concerns WHERE (ticket, item, person, role) IN ("+table+")", args...); err != nil {
			return err
		}
	}
	// Versions before this one also stored people to whom a step could be escalated, so a row may exist.
	_, err := database.Insert(tx, "concerns (ticket, item, person, role)", " ON CONFLICT DO NOTHING", added)
	return err
}

// addJobs inserts jobs. It must be called after the ledger lines were written, so that the ledger's lock is held: the
// numbers of jobs then have the order of the commits.
func addJobs(tx *gorm.DB, t *approval.Ticket) error {
	var rows [][]any
	for _, j := range t.Jobs() {
		rows = append(rows, []any{t.Number, j.Item, j.Kind, t.JobKey(j.Item), 0, 0, false, "", 0})
	}
	_, err := database.Insert(tx, "outbox (ticket, item, kind, job_key, run_after, attempts, parked, worker, lease_until)", "", rows)
	return err
}
