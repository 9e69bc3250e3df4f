package gormstore

import (
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/tokenize"
)

// list returns the query of a list. rare is a word of its text that few tickets have, or empty.
func list(tx *gorm.DB, f approval.Filter, rare string) *gorm.DB {
	q := tx.Model(&ticketRow{})
	if scans, rest := indexScans(f, rare); len(scans) == 1 && scans[0].table == "" {
		q = after(where(q.Where(scans[0].where, scans[0].args...), rest), f, "tickets.number")
	} else {
		numbers, args := union(tx, f, rare, f.Limit)
		q = q.Where("number IN ("+numbers+")", args...)
	}
	switch {
	case f.Oldest:
		q = q.Order("number")
	case f.ByUpdate:
		q = q.Order("updated_at DESC, number DESC")
	default:
		q = q.Order("number DESC")
	}
	if f.Limit > 0 {
		q = q.Limit(f.Limit)
	}
	return q
}

// maxQueryValues bounds the number of values in one query, because databases bound the number of parameters.
const maxQueryValues = 500

const visibleTo = `tickets.requester = @p
 OR EXISTS (SELECT 1 FROM concerns c WHERE c.ticket = tickets.number AND (c.person = @p OR c.person IN @for AND c.role = 'named'))
 OR EXISTS (SELECT 1 FROM items i WHERE i.ticket = tickets.number AND (i.application_name IN @apps OR i.resource_name IN @res))`

// withoutIndex returns the prefix of columns whose index SQLite must not use. SQLite does not know how many tickets have a state,
// and would otherwise prefer that index to the scan. A unary plus excludes a column from its indexes.
func withoutIndex(tx *gorm.DB) string {
	if tx.Name() == "sqlite" {
		return "+"
	}
	return ""
}

// where adds the conditions of a filter, except WaitsFor, which the scans contain.
func where(q *gorm.DB, f approval.Filter) *gorm.DB {
	column := withoutIndex(q) + "tickets."
	if len(f.Numbers) > 0 {
		q = q.Where("tickets.number IN ?", f.Numbers)
	}
	if f.Text != "" {
		q = having(q, tokenize.Prefixes(f.Text))
	}
	if f.Requester != "" {
		q = q.Where(column+"requester = ?", f.Requester)
	}
	if len(f.Kinds) > 0 {
		q = q.Where(column+"kind IN ?", f.Kinds)
	}
	if len(f.States) > 0 {
		q = q.Where(column+"state IN ?", f.States)
	}
	if f.DecidedBy != "" {
		q = q.Where("EXISTS (SELECT 1 FROM concerns c WHERE c.ticket = tickets.number AND c.role = 'decided' AND c.person = ?)", f.DecidedBy)
	}
	if v := f.VisibleTo; v != nil {
		q = q.Where(visibleTo, map[string]any{"p": v.Person, "for": v.StandsFor, "apps": v.Applications, "res": v.Resources})
	}
	if conditions, args := ofItem(f, "i."); len(conditions) > 0 {
		q = q.Where("EXISTS (SELECT 1 FROM items i WHERE i.ticket = tickets.number AND "+strings.Join(conditions, " AND ")+")", args...)
	}
	return q
}

// ofItem returns the conditions that a single item must meet, with a prefix before the names of the columns.
func ofItem(f approval.Filter, prefix string) (conditions []string, args []any) {
	add := func(column, condition string, value any) {
		conditions, args = append(conditions, prefix+column+condition), append(args, value)
	}
	if len(f.ItemStates) > 0 {
		add("state", " IN ?", f.ItemStates)
	}
	if f.Application != "" {
		add("application", " = ?", f.Application)
	}
	if f.Resource != "" {
		add("resource", " = ?", f.Resource)
	}
	if f.Policy != "" {
		add("policy", " = ?", f.Policy)
	}
	if f.Target != nil {
		add("target_ticket", " = ?", f.Target.Ticket)
		add("target_item", " = ?", f.Target.Item)
	}
	if !f.DueBy.IsZero() {
		add("due_at", " BETWEEN 1 AND ?", micros(f.DueBy))
	}
	if !f.ExpiresBy.IsZero() {
		add("expires_at", " BETWEEN 1 AND ?", micros(f.ExpiresBy))
	}
	return conditions, args
}

// withoutItemConditions returns the filter without the conditions that a single item must meet.
func withoutItemConditions(f approval.Filter) approval.Filter {
	f.ItemStates, f.Application, f.Resource, f.Policy, f.Target, f.DueBy, f.ExpiresBy = nil, "", "", "", nil, time.Time{}, time.Time{}
	return f
}
