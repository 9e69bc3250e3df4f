package portal

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// A cursor is opaque to callers: the list that it belongs to, and the place of the last row of the page before.
func encodeCursor(list, place string) *string {
	return new(base64.RawURLEncoding.EncodeToString([]byte(list + ":" + place)))
}

// decodeCursor is empty for the first page.
func decodeCursor(list string, cursor *string) (string, error) {
	if cursor == nil || *cursor == "" {
		return "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(*cursor)
	place, ok := strings.CutPrefix(string(text), list+":")
	// The decoder skips line breaks and spare bits; a cursor is the one text that a page before returned.
	if err != nil || !ok || place == "" || *cursor != *encodeCursor(list, place) {
		return "", badCursor()
	}
	return place, nil
}

// numberCursor is for lists that are ordered by a number; 0: the first page.
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
