package approval

import (
	"errors"
	"fmt"

	"github.com/acp-io/acp/internal/message"
)

// Code identifies a failure that the caller can react to. Codes are part of the API.
type Code string

const (
	CodeForbidden        Code = "forbidden"
	CodeNotFound         Code = "not-found"
	CodeInvalid          Code = "invalid"
	CodeConflict         Code = "conflict"
	CodeStale            Code = "stale"
	CodeDuplicate        Code = "duplicate"
	CodeNoApprover       Code = "no-approver"
	CodeEvidence         Code = "evidence" // too little is known to close a resource
	CodeGuard            Code = "guard"    // denials have stopped the rollout
	CodeUnavailable      Code = "unavailable"
	CodeStoreUnavailable Code = "store-unavailable"
	CodeOutcomeUnknown   Code = "outcome-unknown" // the store did not say whether it made the change
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
