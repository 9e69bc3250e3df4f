package approval

import (
	"errors"
	"fmt"

	"github.com/acp-io/acp/internal/message"
)

// Code identifies a failure that the caller can react to. Codes are part of the API.
type Code string

const (
	// CodeForbidden means that the caller is known, and may not do this.
	CodeForbidden Code = "forbidden"
	// CodeLoginTooOld means that the caller may do this only after a recent login, and that their login is older.
	CodeLoginTooOld Code = "login-too-old"
	// CodeNotFound means that the object does not exist, or that the caller may not see it.
	CodeNotFound Code = "not-found"
	// CodeInvalid means that the input has an error. Fields, if there are any, say where.
	CodeInvalid Code = "invalid"
	// CodeConflict means that the state of the ticket or object does not permit the change.
	CodeConflict Code = "conflict"
	// CodeStale means that something has changed since the caller read it.
	CodeStale Code = "stale"
	// CodeDuplicate means that another ticket requests the same. Error.Ticket is its number.
	CodeDuplicate Code = "duplicate"
	// CodeNoApprover means that no chain with enough approvers can be computed for the request.
	CodeNoApprover Code = "no-approver"
	// CodeEvidence means that there is too little evidence to enforce a resource.
	CodeEvidence Code = "evidence"
	// CodeGuard means that the guard has stopped the rollout because too many connections were refused.
	CodeGuard Code = "guard"
	// CodeUnavailable means that something that the portal reads is not available now.
	CodeUnavailable Code = "unavailable"
	// CodeStoreUnavailable means that the database is not available. Nothing was changed.
	CodeStoreUnavailable Code = "store-unavailable"
	// CodeOutcomeUnknown means that the connection to the database failed during the commit, so that it is unknown
	// whether the change was made.
	CodeOutcomeUnknown Code = "outcome-unknown"
)

// Field is one error in the input. Path is a JSON path such as items[0].resource.
type Field struct {
	Path, Code string
	Message    message.Message
}

// Error is a failure that is shown to the caller. Message says what to do and contains no internals; Err is the cause, for
// the log.
type Error struct {
	Code    Code
	Message message.Message
	Fields  []Field
	Ticket  int64 // with CodeDuplicate
	Err     error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of an Error in the chain of err; empty if there is none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// NotFound returns the error for what does not exist, and for what the caller may not see.
func NotFound() error {
	return &Error{Code: CodeNotFound, Message: message.TicketNotFound()}
}

// AuditorsOnlyRead returns the error for a change by an auditor.
func AuditorsOnlyRead() error {
	return &Error{Code: CodeForbidden, Message: message.AccessAuditorsReadOnly()}
}

// HostUnknown returns the error for requests before the host cluster's policies were listed.
func HostUnknown() error {
	return &Error{Code: CodeUnavailable, Message: message.HostNotListed()}
}

func fail(code Code, m message.Message) error { return &Error{Code: code, Message: m} }

func invalid(path string, m message.Message) error {
	return &Error{Code: CodeInvalid, Message: m, Fields: []Field{{Path: path, Code: "invalid", Message: m}}}
}
