package audit

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
)

// Cursor is the end of a page. Backends encode it into the opaque text that callers pass back for the next page.
type Cursor struct {
	// At is the sort time of the page's last item, in microseconds since 1970.
	At int64 `json:"t"`
	// Tie orders items with the same time. Each backend defines its own format.
	Tie string `json:"k"`
	// Until bounds all pages after the first one, in microseconds since 1970; 0 means unbounded.
	Until int64 `json:"u,omitempty"`
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

// Bound returns f with Until set to the upper bound that the cursor contains, unless f.Until is set. The bound is the end of
// the bucket of the first page's newest item.
func (c Cursor) Bound(f Filter) Filter {
	if c.Until != 0 && f.Until.IsZero() {
		f.Until = time.UnixMicro(c.Until).UTC()
	}
	return f
}
