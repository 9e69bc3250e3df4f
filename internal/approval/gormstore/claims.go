package gormstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
)

// ClaimedBy implements approval.TicketStore.
func (s *Store) ClaimedBy(ctx context.Context, claims []approval.Claim) (n int64, err error) {
	read := s.read
	if len(claims) <= maxQueryValues {
		read = s.readOne
	}
	err = read(ctx, func(tx *gorm.DB) error {
		n, err = claimedBy(tx, claims)
		return err
	})
	return n, err
}

// Claimants implements approval.TicketStore.
func (s *Store) Claimants(ctx context.Context, claims []approval.Claim) (map[approval.Claim]int64, error) {
	out := map[approval.Claim]int64{}
	err := s.read(ctx, func(tx *gorm.DB) error {
		for chunk := range slices.Chunk(claims, maxQueryValues) {
			condition, args := amongClaims(chunk)
			if err := database.Rows(tx, func(rows *sql.Rows) error {
				var c approval.Claim
				var n int64
				err := rows.Scan(&c.Application, &c.Resource, &c.Action, &n)
				out[c] = n
				return err
			}, "SELECT application, resource, action, ticket FROM claims WHERE "+condition, args...); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// amongClaims returns the condition that a row is one of these claims, of which there is at least one.
func amongClaims(claims []approval.Claim) (condition string, args []any) {
	for _, c := range claims {
		args = append(args, c.Application, c.Resource, c.Action)
	}
	return "(application, resource, action) IN (VALUES (?, ?, ?)" + strings.Repeat(", (?, ?, ?)", len(claims)-1) + ")", args
}

func claimedBy(tx *gorm.DB, claims []approval.Claim) (int64, error) {
	for chunk := range slices.Chunk(claims, maxQueryValues) {
		condition, args := amongClaims(chunk)
		other, err := database.Number(tx, "SELECT ticket FROM claims WHERE "+condition+" LIMIT 1", args...)
		if err != nil || other > 0 {
			return other, err
		}
	}
	return 0, nil
}

// claimedByOther returns the number of another ticket that has one of a ticket's claims, or 0.
func claimedByOther(tx *gorm.DB, t *approval.Ticket) (int64, error) {
	// The claims that were inserted for t before the conflict would be found first.
	if _, err := database.Exec(tx, "DELETE FROM claims WHERE ticket = ?", t.Number); err != nil {
		return 0, err
	}
	return claimedBy(tx, t.Claims())
}

// insertClaims inserts the claims of a ticket, and reports whether all of them were inserted.
func insertClaims(tx *gorm.DB, t *approval.Ticket) (all bool, err error) {
	var rows [][]any
	for _, c := range t.Claims() {
		rows = append(rows, []any{c.Application, c.Resource, c.Action, t.Number})
	}
	n, err := database.Insert(tx, "claims (application, resource, action, ticket)", " ON CONFLICT DO NOTHING", rows)
	return n == int64(len(rows)), err
}
