package gormstore

import (
	"context"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
)

// Get implements approval.Store.
func (s *Store) Get(ctx context.Context, number int64) (t *approval.Ticket, err error) {
	err = s.read(ctx, func(tx *gorm.DB) error {
		t, err = load(tx, number)
		return err
	})
	return t, err
}

func load(tx *gorm.DB, number int64) (*approval.Ticket, error) {
	var row ticketRow
	if err := tx.First(&row, "number = ?", number).Error; err != nil {
		return nil, err
	}
	out, err := fill(tx, []ticketRow{row})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// fill reads the parts of many tickets with one query per table.
func fill(tx *gorm.DB, rows []ticketRow) ([]*approval.Ticket, error) {
	out := make([]*approval.Ticket, len(rows))
	byNumber := make(map[int64]*approval.Ticket, len(rows))
	numbers := make([]int64, len(rows))
	for i, r := range rows {
		out[i] = r.ticket()
		byNumber[r.Number], numbers[i] = out[i], r.Number
	}
	if len(rows) == 0 {
		return out, nil
	}
	var items []itemRow
	if err := tx.Where("ticket IN ?", numbers).Order("ticket, position").Find(&items).Error; err != nil {
		return nil, err
	}
	for _, i := range items {
		t := byNumber[i.Ticket]
		t.Items = append(t.Items, approval.Item{Application: i.Application, ApplicationName: i.ApplicationName, Resource: i.Resource,
			ResourceName: i.ResourceName, Actions: i.Actions, SID: i.SID})
	}
	var steps []stepRow
	if err := tx.Where("ticket IN ?", numbers).Order("ticket, position").Find(&steps).Error; err != nil {
		return nil, err
	}
	for _, r := range steps {
		t := byNumber[r.Ticket]
		t.Steps = append(t.Steps, approval.Step{Name: r.Name, State: r.State, Note: r.Note, DecidedBy: r.DecidedBy,
			DecidedAt: instant(r.DecidedAt), Comment: r.Comment})
	}
	var approvers []approverRow
	if err := tx.Where("ticket IN ?", numbers).Order("ticket, position, person").Find(&approvers).Error; err != nil {
		return nil, err
	}
	for _, a := range approvers {
		st := &byNumber[a.Ticket].Steps[a.Position]
		st.Approvers = append(st.Approvers, a.Person)
	}
	var events []eventRow
	if err := tx.Where("ticket IN ?", numbers).Order("seq").Find(&events).Error; err != nil {
		return nil, err
	}
	for _, e := range events {
		t := byNumber[e.Ticket]
		t.Events = append(t.Events, approval.Event{At: instant(e.At), Kind: e.Kind, Actor: e.Actor, Step: e.Step, Cluster: e.Cluster,
			Revision: e.Revision, Comment: e.Comment, Saved: true})
	}
	return out, nil
}

// List implements approval.Store.
func (s *Store) List(ctx context.Context, f approval.Filter) (out []*approval.Ticket, err error) {
	err = s.read(ctx, func(tx *gorm.DB) error {
		q := where(tx.Model(&ticketRow{}), f).Order("number DESC")
		if f.Limit > 0 {
			q = q.Limit(f.Limit)
		}
		var rows []ticketRow
		if err := q.Find(&rows).Error; err != nil {
			return err
		}
		for some := range slices.Chunk(rows, fillAtOnce) {
			filled, err := fill(tx, some)
			if err != nil {
				return err
			}
			out = append(out, filled...)
		}
		return nil
	})
	return out, err
}

// fillAtOnce keeps the number of a query's parameters below what databases accept.
const fillAtOnce = 500

const waitsFor = `state = 'pending' AND requester <> @p
 AND EXISTS (SELECT 1 FROM ticket_steps s JOIN step_approvers a ON a.ticket = s.ticket AND a.position = s.position
             WHERE s.ticket = tickets.number AND s.state = 'current' AND a.person = @p)
 AND NOT EXISTS (SELECT 1 FROM ticket_steps s WHERE s.ticket = tickets.number AND s.decided_by = @p)`

const visibleTo = `requester = @p
 OR EXISTS (SELECT 1 FROM step_approvers a WHERE a.ticket = tickets.number AND a.person = @p)
 OR EXISTS (SELECT 1 FROM ticket_items i WHERE i.ticket = tickets.number AND (i.application_name IN @apps OR i.resource_name IN @res))`

func where(q *gorm.DB, f approval.Filter) *gorm.DB {
	if f.Requester != "" {
		q = q.Where("requester = ?", f.Requester)
	}
	if f.WaitsFor != "" {
		q = q.Where(waitsFor, map[string]any{"p": f.WaitsFor})
	}
	if f.DecidedBy != "" {
		q = q.Where("EXISTS (SELECT 1 FROM ticket_steps s WHERE s.ticket = tickets.number AND s.decided_by = ?)", f.DecidedBy)
	}
	if v := f.VisibleTo; v != nil {
		q = q.Where(visibleTo, map[string]any{"p": v.Person, "apps": v.Applications, "res": v.Resources})
	}
	if len(f.States) > 0 {
		q = q.Where("state IN ?", f.States)
	}
	if f.Application != "" {
		q = q.Where("EXISTS (SELECT 1 FROM ticket_items i WHERE i.ticket = tickets.number AND i.application = ?)", f.Application)
	}
	if f.Resource != "" {
		q = q.Where("EXISTS (SELECT 1 FROM ticket_items i WHERE i.ticket = tickets.number AND i.resource = ?)", f.Resource)
	}
	if f.Policy != "" {
		q = q.Where("policy = ?", f.Policy)
	}
	if !f.ExpiredBy.IsZero() {
		q = q.Where("expires_at > 0 AND expires_at <= ?", micros(f.ExpiredBy))
	}
	if f.Before > 0 {
		q = q.Where("number < ?", f.Before)
	}
	return q
}

// CountWaiting implements approval.Store.
func (s *Store) CountWaiting(ctx context.Context, person string) (int, error) {
	var n int64
	err := s.read(ctx, func(tx *gorm.DB) error {
		return where(tx.Model(&ticketRow{}), approval.Filter{WaitsFor: person}).Count(&n).Error
	})
	return int(n), err
}

// ClaimedBy implements approval.Store.
func (s *Store) ClaimedBy(ctx context.Context, claims []approval.Claim) (n int64, err error) {
	err = s.read(ctx, func(tx *gorm.DB) error {
		n, err = claimedBy(tx, claims)
		return err
	})
	return n, err
}

func claimedBy(tx *gorm.DB, claims []approval.Claim) (int64, error) {
	for _, c := range claims {
		var rows []claimRow
		if err := tx.Where("application = ? AND resource = ? AND action = ?", c.Application, c.Resource, c.Action).Find(&rows).Error; err != nil {
			return 0, err
		}
		if len(rows) > 0 {
			return rows[0].Ticket, nil
		}
	}
	return 0, nil
}

// ChangedSince implements approval.Store.
func (s *Store) ChangedSince(ctx context.Context, since time.Time) ([]approval.Change, error) {
	var out []approval.Change
	err := s.read(ctx, func(tx *gorm.DB) error {
		var rows []ticketRow
		if err := tx.Select("number", "state", "version", "updated_at").Where("updated_at >= ?", micros(since)).Order("updated_at").Find(&rows).Error; err != nil {
			return err
		}
		for _, r := range rows {
			out = append(out, approval.Change{Number: r.Number, State: r.State, Version: r.Version, UpdatedAt: instant(r.UpdatedAt)})
		}
		return nil
	})
	return out, err
}
