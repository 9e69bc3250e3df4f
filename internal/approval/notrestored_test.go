package approval

import (
	"testing"
	"time"

	"github.com/acp-io/acp/internal/message"
)

// TestNotRestored: of a restored backup everything ends that could give access, and nothing that takes it away.
func TestNotRestored(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	object := &Change{Kind: ObjectProtectedResource, Name: "x", Verb: VerbUpdate}
	for name, tc := range map[string]struct {
		reason     string
		kind       Kind
		item       Item
		want       State
		wantRemove bool
	}{
		"grant in force":         {"it may have been revoked", KindGrant, Item{State: StateEffective, WrittenGeneration: 3}, StateRevoking, true},
		"grant about to be made": {"it may have been revoked", KindGrant, Item{State: StateApproved}, StateRevoking, true},
		"failed grant":           {"its job would write it again", KindExtend, Item{State: StateFailed}, StateRevoking, true},
		"request":                {"it may have been rejected", KindGrant, Item{State: StatePending}, StateWithdrawn, false},
		"object about to change": {"a later change may have undone it", KindMode, Item{State: StateApproved, Change: object}, StateWithdrawn, false},
		"object that was changed": {
			"the host cluster has it", KindMode, Item{State: StateApplying, WrittenGeneration: 2, Change: object}, StateApplying, false,
		},
		"change in force": {
			"the host cluster has it", KindClass, Item{State: StateEffective, WrittenGeneration: 2, Change: object}, StateEffective, false,
		},
		"revocation that waits":    {"it takes access away", KindRevoke, Item{State: StatePending}, StatePending, false},
		"revocation about to be":   {"it takes access away", KindRevoke, Item{State: StateApproved}, StateApproved, false},
		"grant that is taken back": {"its job goes on", KindGrant, Item{State: StateRevoking}, StateRevoking, false},
		"grant that ended":         {"it stays ended", KindGrant, Item{State: StateExpired}, StateExpired, false},
	} {
		t.Run(name, func(t *testing.T) {
			x := &Ticket{Kind: tc.kind, Items: []Item{tc.item}}
			changed := x.NotRestored(0, message.Verbatim("restored"), now)
			if got := x.Items[0].State; got != tc.want || changed != (tc.want != tc.item.State) {
				t.Errorf("%s: it is %s (changed: %t), want %s", tc.reason, got, changed, tc.want)
			}
			if removes := len(x.jobs) == 1 && x.jobs[0].Kind == JobRemove; removes != tc.wantRemove {
				t.Errorf("%s: jobs are %v", tc.reason, x.jobs)
			}
		})
	}
}
