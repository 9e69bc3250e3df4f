package gormstore

import (
	"context"
	"errors"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
)

// storeError returns errors of the approval package and of the caller's context unchanged. Every other error becomes a
// failure of the store, with a text for people and the cause for the log.
func storeError(err error) error {
	var ours *approval.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, database.ErrOutcomeUnknown):
		return &approval.Error{Code: approval.CodeOutcomeUnknown, Message: database.Detail(err), Err: err}
	case errors.As(err, &ours), errors.Is(err, approval.ErrNoJob), errors.Is(err, approval.ErrLeaseLost),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return &approval.Error{Code: approval.CodeStoreUnavailable, Message: database.Detail(err), Err: err}
}
