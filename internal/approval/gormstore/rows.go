package gormstore

import (
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
)

type ticketRow struct {
	Number         int64 `gorm:"primaryKey"`
	Kind           approval.Kind
	State          approval.State
	Version        int64
	Requester      string
	Reason         string
	IdempotencyKey *string
	BreakGlass     bool
	CreatedAt      int64 `gorm:"autoCreateTime:false"`
	UpdatedAt      int64 `gorm:"autoUpdateTime:false"`
	TraceParent    string
}

func (ticketRow) TableName() string { return "tickets" }

// itemRow is the part of an item that lists select by; the column body contains all of it.
type itemRow struct {
	Ticket          int64 `gorm:"primaryKey"`
	Position        int   `gorm:"primaryKey"`
	State           approval.State
	Application     string
	ApplicationName string
	Resource        string
	ResourceName    string
	Policy          string
	TargetTicket    int64
	TargetItem      int
	ExpiresAt       int64
	DueAt           int64
	Package         string
}

func (itemRow) TableName() string { return "items" }

func itemOf(t *approval.Ticket, i int) itemRow {
	it := t.Items[i]
	r := itemRow{Ticket: t.Number, Position: i, State: it.State, Application: it.Application, ApplicationName: it.ApplicationName, Resource: it.Resource,
		ResourceName: it.ResourceName, Policy: it.Policy, ExpiresAt: database.Micros(it.End()), DueAt: database.Micros(it.Due())}
	if it.Package != nil {
		r.Package = it.Package.Name
	}
	if it.Target != nil {
		r.TargetTicket, r.TargetItem = it.Target.Ticket, it.Target.Item
	}
	return r
}

type delegationRow struct {
	ID         int64 `gorm:"primaryKey"`
	FromPerson string
	ToPerson   string
	StartAt    int64
	EndAt      int64
	Reason     string
	CreatedBy  string
	CreatedAt  int64 `gorm:"autoCreateTime:false"`
	EndedAt    int64
	EndedBy    string
}

func (delegationRow) TableName() string { return "delegations" }

func rowOfDelegation(d approval.Delegation) delegationRow {
	return delegationRow{ID: d.ID, FromPerson: d.From, ToPerson: d.To, StartAt: database.Micros(d.Start), EndAt: database.Micros(d.End), Reason: d.Reason,
		CreatedBy: d.CreatedBy, CreatedAt: database.Micros(d.CreatedAt), EndedAt: database.Micros(d.EndedAt), EndedBy: d.EndedBy}
}

func (r delegationRow) delegation() approval.Delegation {
	return approval.Delegation{
		ID:        r.ID,
		From:      r.FromPerson,
		To:        r.ToPerson,
		Start:     database.Instant(r.StartAt),
		End:       database.Instant(r.EndAt),
		Reason:    r.Reason,
		CreatedBy: r.CreatedBy,
		CreatedAt: database.Instant(r.CreatedAt),
		EndedAt:   database.Instant(r.EndedAt),
		EndedBy:   r.EndedBy,
	}
}

type jobRow struct {
	ID         int64 `gorm:"primaryKey"`
	Ticket     int64
	Item       int
	Kind       approval.JobKind
	Key        string `gorm:"column:job_key"`
	RunAfter   int64
	Attempts   int
	Parked     bool
	Worker     string
	LeaseUntil int64
}

func (jobRow) TableName() string { return "outbox" }

func rowOf(t *approval.Ticket) ticketRow {
	r := ticketRow{Number: t.Number, Kind: t.Kind, State: t.State(), Version: t.Version, Requester: t.Requester, Reason: t.Reason,
		BreakGlass: t.BreakGlass, CreatedAt: database.Micros(t.CreatedAt), UpdatedAt: database.Micros(t.UpdatedAt), TraceParent: t.TraceParent}
	if t.IdempotencyKey != "" {
		r.IdempotencyKey = &t.IdempotencyKey
	}
	return r
}

func (r ticketRow) ticket() *approval.Ticket {
	t := &approval.Ticket{Number: r.Number, Kind: r.Kind, Version: r.Version, Requester: r.Requester, Reason: r.Reason,
		BreakGlass: r.BreakGlass, CreatedAt: database.Instant(r.CreatedAt), UpdatedAt: database.Instant(r.UpdatedAt), TraceParent: r.TraceParent}
	if r.IdempotencyKey != nil {
		t.IdempotencyKey = *r.IdempotencyKey
	}
	return t
}
