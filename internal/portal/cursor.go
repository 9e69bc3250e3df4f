package portal

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// A cursor is opaque to callers. It contains the list that it belongs to and the position of the last row of the previous page.
func encodeCursor(list, place string) *string {
	return new(base64.RawURLEncoding.EncodeToString([]byte(list + ":" + place)))
}

// decodeCursor returns the position in a cursor; empty for the first page.
func decodeCursor(list string, cursor *string) (string, error) {
	if cursor == nil || *cursor == "" {
		return "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(*cursor)
	place, ok := strings.CutPrefix(string(text), list+":")
	// The decoder ignores line breaks and spare bits, but only the exact text that a previous page returned is accepted.
	if err != nil || !ok || place == "" || *cursor != *encodeCursor(list, place) {
		return "", badCursor()
	}
	return place, nil
}

// numberCursor returns the number in a cursor of a list that is ordered by a number; 0 for the first page.
func numberCursor(list string, cursor *string) (int64, error) {
	place, err := decodeCursor(list, cursor)
	if place == "" || err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(place, 10, 64)
	if err != nil || n < 1 || strconv.FormatInt(n, 10) != place {
		return 0, badCursor()
	}
	return n, nil
}

func encodeNumber(list string, n int64) *string { return encodeCursor(list, strconv.FormatInt(n, 10)) }

func badCursor() error {
	return &problem{status: http.StatusBadRequest, code: "invalid", message: message.CallCursorUnknown("cursor"),
		fields: []approval.Field{{Path: "cursor", Code: "unknown", Message: message.FieldPageCursor()}}}
}
