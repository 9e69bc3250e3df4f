package core

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// EncodeCursor returns a cursor, which is opaque to callers. It contains the list that it belongs to and the position of the last row
// of the previous page.
func EncodeCursor(list, place string) *string {
	return new(base64.RawURLEncoding.EncodeToString([]byte(list + ":" + place)))
}

// DecodeCursor returns the position in a cursor; empty for the first page. The name of the list includes its order (Sort.List), so a
// cursor of another order is a problem.
func DecodeCursor(list string, cursor *string) (string, error) {
	if cursor == nil || *cursor == "" {
		return "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(*cursor)
	place, ok := strings.CutPrefix(string(text), list+":")
	// The decoder ignores line breaks and spare bits, but only the exact text that a previous page returned is accepted.
	if err != nil || !ok || place == "" || *cursor != *EncodeCursor(list, place) {
		if err == nil && !ok && ofOtherOrder(list, string(text)) {
			return "", cursorOfOtherOrder()
		}
		return "", InvalidCursor()
	}
	return place, nil
}

// DecodeNumberCursor returns the number in a cursor of a list that is ordered by a number; 0 for the first page.
func DecodeNumberCursor(list string, cursor *string) (int64, error) {
	place, err := DecodeCursor(list, cursor)
	if place == "" || err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(place, 10, 64)
	if err != nil || n < 1 || strconv.FormatInt(n, 10) != place {
		return 0, InvalidCursor()
	}
	return n, nil
}

// EncodeNumberCursor returns the cursor of a list that is ordered by a number.
func EncodeNumberCursor(list string, n int64) *string {
	return EncodeCursor(list, strconv.FormatInt(n, 10))
}

// ofOtherOrder reports whether the text of a cursor belongs to the list in another order.
func ofOtherOrder(list, text string) bool {
	name, _, _ := strings.Cut(list, " ")
	other, _, ok := strings.Cut(text, ":")
	other, _, _ = strings.Cut(other, " ")
	return ok && other == name
}

// cursorOfOtherOrder returns the problem of a cursor that a page in another order returned.
func cursorOfOtherOrder() error {
	return &Problem{Status: http.StatusBadRequest, Code: "invalid", Message: message.CallCursorOrder(),
		Fields: []approval.Field{{Path: "cursor", Code: "order", Message: message.FieldPageCursorOrder()}}}
}

// InvalidCursor returns the problem of a cursor that does not belong to the list.
func InvalidCursor() error {
	return &Problem{Status: http.StatusBadRequest, Code: "invalid", Message: message.CallCursorUnknown("cursor"),
		Fields: []approval.Field{{Path: "cursor", Code: "unknown", Message: message.FieldPageCursor()}}}
}
