package gormstore

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
)

// storeError leaves our own errors and the caller's end alone; everything else is the store's failure. In words for
// people; the cause goes to the log.
func storeError(err error) error {
	var ours *approval.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, database.ErrOutcomeUnknown):
		return &approval.Error{Code: approval.CodeOutcomeUnknown, Detail: database.Detail(err), Err: err}
	case errors.As(err, &ours), errors.Is(err, approval.ErrNoJob), errors.Is(err, approval.ErrLeaseLost),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, gorm.ErrRecordNotFound):
		return approval.NotFound()
	}
	return &approval.Error{Code: approval.CodeStoreUnavailable, Detail: database.Detail(err), Err: err}
}
