package gormstore

import (
	"context"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/acp-io/acp/internal/approval"
)

// ClaimedBy implements approval.Store.
func (s *Store) ClaimedBy(ctx context.Context, claims []approval.Claim) (n int64, err error) {
	err = s.read(ctx, func(tx *gorm.DB) error {
		n, err = claimedBy(tx, claims)
		return err
	})
	return n, err
}

func claimedBy(tx *gorm.DB, claims []approval.Claim) (int64, error) {
	for some := range slices.Chunk(claims, fillAtOnce) {
		args := make([]any, 0, 3*len(some))
		for _, c := range some {
			args = append(args, c.Application, c.Resource, c.Action)
		}
		values := strings.TrimSuffix(strings.Repeat("(?, ?, ?), ", len(some)), ", ")
		var rows []claimRow
		if err := tx.Where("(application, resource, action) IN (VALUES "+values+")", args...).Limit(1).Find(&rows).Error; err != nil {
			return 0, err
		}
		if len(rows) > 0 {
			return rows[0].Ticket, nil
		}
	}
	return 0, nil
}

// claim takes the ticket's claims and returns those of which some belong to others.
func claim(tx *gorm.DB, t *approval.Ticket) (taken []approval.Claim, err error) {
	for some := range slices.Chunk(t.Claims(), fillAtOnce) {
		rows := make([]claimRow, len(some))
		for i, c := range some {
			rows[i] = claimRow{Application: c.Application, Resource: c.Resource, Action: c.Action, Ticket: t.Number}
		}
		res := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&rows)
		if res.Error != nil {
			return nil, res.Error
		}
		if res.RowsAffected != int64(len(rows)) {
			taken = append(taken, some...)
		}
	}
	return taken, nil
}
