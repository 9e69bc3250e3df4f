package approval

import (
	"errors"
	"fmt"
)

// Code is the stable word of a failure that the caller can do something about.
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

// Field is one thing that is wrong with the input; Path is a JSON path such as items[0].resource.
type Field struct{ Path, Code, Message string }

// Error is a failure in words for the caller. Detail says what to do and holds no internals; Err does, for the log.
type Error struct {
	Code   Code
	Detail string
	Fields []Field
	Ticket int64 // with CodeDuplicate
	Err    error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Detail, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Detail)
}

func (e *Error) Unwrap() error { return e.Err }

// CodeOf an error; empty: it is not one of ours.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// NotFound is the same for what does not exist and for what the caller may not see.
func NotFound() error {
	return &Error{Code: CodeNotFound, Detail: "There is no such ticket, or you may not see it."}
}

// AuditorsOnlyRead is the answer to every change that an auditor tries.
func AuditorsOnlyRead() error {
	return &Error{Code: CodeForbidden, Detail: "Auditors read everything and change nothing."}
}

// HostUnknown is the answer while the host cluster's policies were not listed yet.
func HostUnknown() error {
	return &Error{Code: CodeUnavailable, Detail: "The host cluster's policies are not known yet; try again in a moment."}
}

func failf(code Code, format string, args ...any) error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

func invalid(path, format string, args ...any) error {
	m := fmt.Sprintf(format, args...)
	return &Error{Code: CodeInvalid, Detail: m, Fields: []Field{{Path: path, Code: "invalid", Message: m}}}
}
