package audit

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
)

// Cursor is where a page ended: what backends write into the opaque text that callers hand back.
type Cursor struct {
	// At is the time that the page is sorted by, of its last item, in microseconds since 1970.
	At int64 `json:"t"`
	// Tie orders items of one time; each backend has its own.
	Tie string `json:"k"`
	// Until bounds all pages after the first one, in microseconds since 1970; 0: no bound.
	Until int64 `json:"u,omitempty"`
}

// maxCursor bounds the text of a cursor, which comes from outside; ties are far shorter.
const maxCursor = 4096

// String returns the opaque text.
func (c Cursor) String() string {
	b, err := json.Marshal(c)
	if err != nil { // numbers and a string always marshal
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// ParseCursor returns nil for an empty text, and ErrInvalidQuery for one that no page has returned.
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

// Bound returns the later bound of all pages after the first one, when the filter has none itself: the end of the bucket
// in which the newest item was seen.
func (c Cursor) Bound(f Filter) Filter {
	if c.Until != 0 && f.Until.IsZero() {
		f.Until = time.UnixMicro(c.Until).UTC()
	}
	return f
}
