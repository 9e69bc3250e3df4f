package gormstore

import (
	"context"
	"errors"

	driver "github.com/glebarez/go-sqlite"
	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
)

// storeError leaves our own errors and the caller's end alone; everything else is the store's failure. In words for
// people; the cause goes to the log.
func storeError(err error) error {
	var ours *approval.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ours), errors.Is(err, approval.ErrNoJob), errors.Is(err, approval.ErrLeaseLost),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, gorm.ErrRecordNotFound):
		return approval.NotFound()
	}
	detail := "The ticket store cannot be used now. Nothing was changed; try again in a moment."
	var e *driver.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff { // the primary result code, https://sqlite.org/rescode.html
		case 8: // SQLITE_READONLY
			detail = "The ticket store is read-only. Nothing was changed; an administrator has to make it writable."
		case 13: // SQLITE_FULL
			detail = "The ticket store's disk is full. Nothing was changed; an administrator has to make room."
		case 5, 6: // SQLITE_BUSY, SQLITE_LOCKED
			detail = "The ticket store is busy. Nothing was changed; try again."
		}
	}
	return &approval.Error{Code: approval.CodeStoreUnavailable, Detail: detail, Err: err}
}
