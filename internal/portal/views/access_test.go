package views

import (
	"testing"
	"time"

	"github.com/acp-io/acp/internal/approval"
)

func TestGrantedAt(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 11, 20, 10, 0, s, 0, time.UTC) }
	for name, tc := range map[string]struct {
		reason string
		events []approval.Event
		want   time.Time
	}{
		"pending": {"nothing was granted", []approval.Event{{At: at(1), Kind: approval.EventSubmitted}}, time.Time{}},
		"approved": {
			"it is granted, and not in force everywhere",
			[]approval.Event{{At: at(1), Kind: approval.EventApproved}, {At: at(2), Kind: approval.EventWritten}}, at(1),
		},
		"effective": {"it is in force", []approval.Event{{At: at(1), Kind: approval.EventApproved}, {At: at(3), Kind: approval.EventEffective}}, at(3)},
		"other": {
			"it is another item that is in force",
			[]approval.Event{{At: at(1), Kind: approval.EventApproved}, {At: at(3), Kind: approval.EventEffective, Item: 1}}, at(1),
		},
		"again": {
			"it was out of force between",
			[]approval.Event{{At: at(3), Kind: approval.EventEffective}, {At: at(4), Kind: approval.EventFailed}, {At: at(5), Kind: approval.EventEffective}},
			at(5),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := GrantedAt(&approval.Ticket{Events: tc.events}, 0); !got.Equal(tc.want) {
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
