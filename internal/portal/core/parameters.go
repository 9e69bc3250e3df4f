package core

import (
	"net/http"
	"strings"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// PageSize returns the number of items of a page, which is 50 without a limit. It returns a problem unless the limit is between 1 and 200.
func PageSize(limit *int) (int, error) {
	switch {
	case limit == nil:
		return 50, nil
	case *limit < 1 || *limit > 200:
		return 0, &Problem{Status: http.StatusBadRequest, Code: "invalid", Message: message.CallParameterRange("limit", 1, 200),
			Fields: []approval.Field{{Path: "limit", Code: "range", Message: message.FieldRange(1, 200)}}}
	}
	return *limit, nil
}

// Page returns one page of items that are sorted by id. has reports whether q, in lower case, is in the text of an item.
func Page[T any](list string, all []T, id func(T) string, has func(T, string) bool, q, cursor *string, limit *int) ([]T, *string, error) {
	n, err := PageSize(limit)
	if err != nil {
		return nil, nil, err
	}
	after, err := DecodeCursor(list, cursor)
	if err != nil {
		return nil, nil, err
	}
	part := strings.ToLower(Value(q))
	out := []T{}
	for _, x := range all {
		if after != "" && id(x) <= after || !has(x, part) {
			continue
		}
		if len(out) == n {
			return out, EncodeCursor(list, id(out[n-1])), nil
		}
		out = append(out, x)
	}
	return out, nil, nil
}

// OptionalMessage returns nil for the zero Message.
func OptionalMessage(m message.Message) *message.Message {
	if m.IsZero() {
		return nil
	}
	return &m
}

// Optional returns a pointer to a text, or nil if it is empty.
func Optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Value returns the value of a pointer, or zero if it is nil.
func Value[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}

// IdempotencyKey returns the key of a call, or an empty string. Keys have a minimum length, so that they do not collide by accident.
func IdempotencyKey(k *string) (string, error) {
	if k == nil {
		return "", nil
	}
	if len(*k) < 8 || len(*k) > 128 || strings.ContainsFunc(*k, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", NewProblem(http.StatusBadRequest, "invalid", message.CallIdempotencyKeyForm())
	}
	return *k, nil
}
