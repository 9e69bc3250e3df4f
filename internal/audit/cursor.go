package audit

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
)

// Cursor is the end of a page. Backends encode it into the opaque text that callers pass back for the next page.
type Cursor struct {
	// At is the value by which the page's last item is sorted: a time in microseconds since 1970, or a count.
	At int64 `json:"t"`
	// Tie orders items with the same time. Each backend defines its own format.
	Tie string `json:"k"`
	// Until bounds all pages after the first one, in microseconds since 1970; 0 means unbounded.
	Until int64 `json:"u,omitempty"`
	// Order is the order of the page; empty for the default of its list.
	Order ConnectionOrder `json:"o,omitempty"`
}

// maxCursor bounds the length of a cursor in bytes, because cursors are input from callers. Ties are far shorter.
const maxCursor = 4096

// String returns the opaque text of the cursor.
func (c Cursor) String() string {
	b, err := json.Marshal(c)
	if err != nil { // numbers and a string always marshal
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// ParseCursor parses the opaque text of a cursor. It returns nil for an empty text, and ErrInvalidQuery for a text that String
// does not return.
func ParseCursor(s string) (*Cursor, error) {
	if s == "" {
		return nil, nil
	}
	var c Cursor
	if len(s) > maxCursor {
		return nil, errCursor
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || json.Unmarshal(b, &c) != nil || c.String() != s {
		return nil, errCursor
	}
	return &c, nil
}

var errCursor = fmt.Errorf("%w: the cursor is not one that a page returned", ErrInvalidQuery)

// ParseConnectionCursor is ParseCursor for a list of connections. It also returns ErrInvalidQuery for a cursor of another order.
func ParseConnectionCursor(q ConnectionQuery) (*Cursor, error) {
	c, err := ParseCursor(q.Cursor)
	if err == nil && c != nil && c.Order != q.Order {
		return nil, fmt.Errorf("%w: the cursor belongs to another order", ErrInvalidQuery)
	}
	return c, err
}

// Bound returns f with Until set to the upper bound that the cursor contains, unless f.Until is earlier. In the default order the bound
// is the end of the bucket of the first page's newest item, in others the end of the first page's window.
func (c Cursor) Bound(f Filter) Filter {
	if until := time.UnixMicro(c.Until).UTC(); c.Until != 0 && (f.Until.IsZero() || f.Until.After(until)) {
		f.Until = until
	}
	return f
}
