package gormstore

import (
	"time"

	"github.com/acp-io/acp/internal/approval"
)

type ticketRow struct {
	Number            int64 `gorm:"primaryKey"`
	State             approval.State
	Version           int64
	Requester         string
	Reason            string
	IdempotencyKey    *string
	DurationSeconds   int64
	ExpiresAt         int64
	Message           string
	Policy            string
	PolicyUID         string `gorm:"column:policy_uid"`
	WrittenGeneration int64
	RevokeGeneration  int64
	CreatedAt         int64 `gorm:"autoCreateTime:false"`
	UpdatedAt         int64 `gorm:"autoUpdateTime:false"`
}

func (ticketRow) TableName() string { return "tickets" }

type itemRow struct {
	Ticket          int64 `gorm:"primaryKey"`
	Position        int   `gorm:"primaryKey"`
	Application     string
	ApplicationName string
	Resource        string
	ResourceName    string
	Actions         []string `gorm:"serializer:json"`
	SID             string   `gorm:"column:sid"`
}

func (itemRow) TableName() string { return "ticket_items" }

type stepRow struct {
	Ticket    int64 `gorm:"primaryKey"`
	Position  int   `gorm:"primaryKey"`
	Name      string
	State     approval.StepState
	Note      string
	DecidedBy string
	DecidedAt int64
	Comment   string
}

func (stepRow) TableName() string { return "ticket_steps" }

type approverRow struct {
	Ticket   int64  `gorm:"primaryKey"`
	Position int    `gorm:"primaryKey"`
	Person   string `gorm:"primaryKey"`
}

func (approverRow) TableName() string { return "step_approvers" }

type eventRow struct {
	Seq      int64 `gorm:"primaryKey"`
	Ticket   int64
	At       int64
	Kind     approval.EventKind
	Actor    string
	Step     string
	Cluster  string
	Revision string
	Comment  string
}

func (eventRow) TableName() string { return "ticket_events" }

type claimRow struct {
	Application string `gorm:"primaryKey"`
	Resource    string `gorm:"primaryKey"`
	Action      string `gorm:"primaryKey"`
	Ticket      int64
}

func (claimRow) TableName() string { return "claims" }

type jobRow struct {
	ID         int64 `gorm:"primaryKey"`
	Ticket     int64
	Kind       approval.JobKind
	Resource   string
	RunAfter   int64
	Attempts   int
	Parked     bool
	Worker     string
	LeaseUntil int64
}

func (jobRow) TableName() string { return "outbox" }

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func instant(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

func rowOf(t *approval.Ticket) ticketRow {
	r := ticketRow{Number: t.Number, State: t.State, Version: t.Version, Requester: t.Requester, Reason: t.Reason,
		DurationSeconds: int64(t.Duration / time.Second), ExpiresAt: micros(t.ExpiresAt), Message: t.Message, Policy: t.Policy,
		PolicyUID: t.PolicyUID, WrittenGeneration: t.WrittenGeneration, RevokeGeneration: t.RevokeGeneration,
		CreatedAt: micros(t.CreatedAt), UpdatedAt: micros(t.UpdatedAt)}
	if t.IdempotencyKey != "" {
		r.IdempotencyKey = &t.IdempotencyKey
	}
	return r
}

func (r ticketRow) ticket() *approval.Ticket {
	t := &approval.Ticket{Number: r.Number, State: r.State, Version: r.Version, Requester: r.Requester, Reason: r.Reason,
		Duration: time.Duration(r.DurationSeconds) * time.Second, ExpiresAt: instant(r.ExpiresAt), Message: r.Message, Policy: r.Policy,
		PolicyUID: r.PolicyUID, WrittenGeneration: r.WrittenGeneration, RevokeGeneration: r.RevokeGeneration,
		CreatedAt: instant(r.CreatedAt), UpdatedAt: instant(r.UpdatedAt)}
	if r.IdempotencyKey != nil {
		t.IdempotencyKey = *r.IdempotencyKey
	}
	return t
}
