// Package gormstore stores notifications in SQL through gorm. It implements notify.Store, and Enqueue functions that write the
// outbox in the transaction of a change. It does not determine recipients.
package gormstore

import (
	"encoding/json"
	"fmt"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/notify"
)

type changeRow struct {
	ID            int64 `gorm:"primaryKey"`
	Ticket        int64
	FirstEvent    int
	LastEvent     int
	Delegation    int64
	ResourceEvent string `gorm:"column:bulletin"` // JSON; empty if there is none
}

func (changeRow) TableName() string { return "notify_outbox" }

type row struct {
	ID         int64 `gorm:"primaryKey"`
	Person     string
	Event      string
	Channel    notify.Channel
	Kind       notify.Kind
	Ticket     int64
	At         int64
	Facts      notify.Facts `gorm:"serializer:json"`
	State      string
	Digest     bool
	RunAfter   int64
	Attempts   int
	Worker     string
	LeaseUntil int64
	Problem    string
	DoneAt     int64
	// AnswerVersion, Receipt and Outcome are about messages in which a ticket can be decided; see notify.Supersession.
	AnswerVersion int64
	Receipt       string
	Outcome       string // in the form of message.Encode
}

func (row) TableName() string { return "notifications" }

// These are the states of a row.
const (
	unread = "unread"
	read   = "read"
	queued = "queued"
	sent   = "sent"
	dead   = "dead"
	// retract is the state of a message that was sent, and whose controls wait to be replaced.
	retract = "retract"
)

type preferencesRow struct {
	Person    string             `gorm:"primaryKey"`
	Body      notify.Preferences `gorm:"serializer:json"`
	UpdatedAt int64              `gorm:"autoUpdateTime:false"`
}

func (preferencesRow) TableName() string { return "notify_preferences" }

func (r row) message() notify.Message {
	return notify.Message{Person: r.Person, Event: r.Event, Kind: r.Kind, At: database.Instant(r.At), Ticket: r.Ticket, Facts: r.Facts}
}

// Enqueue writes the tickets' new events to the outbox, in the transaction that stores them.
func Enqueue(tx *gorm.DB, tickets ...*approval.Ticket) error {
	var rows [][]any
	for _, t := range tickets {
		if first, last, ok := notify.UnnotifiedEvents(t); ok {
			rows = append(rows, []any{t.Number, first, last, 0})
		}
	}
	_, err := database.Insert(tx, outbox, "", rows)
	return err
}

// EnqueueDelegation writes the begin or end of a delegation to the outbox, in the transaction that stores it.
func EnqueueDelegation(tx *gorm.DB, id int64) error {
	_, err := database.Insert(tx, outbox, "", [][]any{{0, 0, 0, id}})
	return err
}

// EnqueueResourceEvent writes an event of a resource to the outbox, in the transaction that stores the change that it reports.
func EnqueueResourceEvent(tx *gorm.DB, b notify.ResourceEvent) error {
	text, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("encode an event of a resource: %w", err)
	}
	return tx.Create(&changeRow{ResourceEvent: string(text)}).Error
}

const outbox = "notify_outbox (ticket, first_event, last_event, delegation)"

// Store implements notify.Store.
type Store struct{ db *database.DB }

// New returns the Store of an open database.
func New(db *database.DB) *Store { return &Store{db} }
