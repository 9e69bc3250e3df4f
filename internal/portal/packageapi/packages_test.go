package packageapi

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// TestHoldersOf checks that holders are the applications with access in force by the package, with their oldest version and first end, and
// that a reader sees only their own applications.
func TestHoldersOf(t *testing.T) {
	end := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	item := func(app, name string, version int, state approval.State, end time.Time) approval.Item {
		return approval.Item{ApplicationName: app, State: state, ExpiresAt: end, Package: &approval.PackageRef{Name: name, Version: version}}
	}
	tickets := []*approval.Ticket{
		{Number: 3, Kind: approval.KindGrant, Items: []approval.Item{
			item("a", "pay", 2, approval.StateEffective, end.Add(time.Hour)), item("a", "pay", 2, approval.StatePending, end),
			item("b", "pay", 2, approval.StateApplying, time.Time{}), {ApplicationName: "c", State: approval.StateEffective},
		}},
		{Number: 2, Kind: approval.KindGrant, Items: []approval.Item{
			item(
				"a",
				"pay",
				1,
				approval.StateEffective,
				end,
			),
			item("c", "other", 1, approval.StateEffective, end),
			item("c", "pay", 1, approval.StateRevoked, end),
		}},
	}
	a := openapi.PackageHolder{Application: openapi.CatalogRef{Name: "a", Title: "a"}, Version: 1, Items: 2, Tickets: []string{"T-3", "T-2"}, ExpiresAt: &end}
	b := openapi.PackageHolder{Application: openapi.CatalogRef{Name: "b", Title: "b"}, Version: 2, Items: 1, Tickets: []string{"T-3"}}
	got := holdersOf(&catalog.Catalog{}, &held{"pay", tickets, func(string) bool { return true }})
	if d := cmp.Diff([]openapi.PackageHolder{a, b}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	got = holdersOf(&catalog.Catalog{}, &held{"pay", tickets, func(name string) bool { return name == "b" }})
	if len(got) != 1 || got[0].Application.Name != "b" {
		t.Errorf("the owner of b sees %+v", got)
	}
}

// TestUseOfHolder checks that a use of one access is a use of the holder, and that its accesses are unused only if that is certain of each.
func TestUseOfHolder(t *testing.T) {
	early, late := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC), time.Date(2026, 3, 3, 9, 0, 0, 0, time.UTC)
	unused, unknown := use{state: openapi.UseStateUnused}, use{state: openapi.UseStateUnknown}
	used := func(at *time.Time) use { return use{openapi.UseStateUsed, at} }
	for name, tc := range map[string]struct {
		accesses int
		seen     []use
		state    openapi.UseState
		at       *time.Time
	}{
		"the latest use":         {3, []use{used(&early), unknown, used(&late)}, openapi.UseStateUsed, &late},
		"the first is later":     {2, []use{used(&late), used(&early)}, openapi.UseStateUsed, &late},
		"none was used":          {2, []use{unused, unused}, openapi.UseStateUnused, nil},
		"one is not known":       {2, []use{unused, unknown}, openapi.UseStateUnknown, nil},
		"one is not written yet": {2, []use{unused}, openapi.UseStateUnknown, nil},
		"nothing is written yet": {1, nil, openapi.UseStateUnknown, nil},
	} {
		want := openapi.PackageHolderUse{Application: "a", State: tc.state, LastUsed: tc.at}
		if d := cmp.Diff(want, useOfHolder("a", tc.accesses, tc.seen)); d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
	}
}

// TestUpdateOf checks that the numbers of an update are those of the applications which the caller sees.
func TestUpdateOf(t *testing.T) {
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	u := accesspackage.Update{Package: "pay", Version: 2, State: accesspackage.UpdateStopped, Reason: message.AccessPackageUpdateArchived("pay"), BegunAt: at,
		EndedAt: at.Add(time.Hour)}
	var holders []accesspackage.HolderUpdate
	for i, s := range []accesspackage.HolderState{accesspackage.HolderPending, accesspackage.HolderPlanned, accesspackage.HolderRevoked,
		accesspackage.HolderWaiting, accesspackage.HolderDone, accesspackage.HolderSkipped, accesspackage.HolderFailed} {
		holders = append(holders, accesspackage.HolderUpdate{Application: string(rune('a' + i)), State: s})
	}
	want := &openapi.PackageUpdate{State: "stopped", Reason: &u.Reason, BegunAt: &u.BegunAt, EndedAt: &u.EndedAt, Total: 7, Waiting: 3, Done: 1, Skipped: 1,
		Failed: 1, Applications: []openapi.PackageUpdateApplication{}}
	if d := cmp.Diff(want, updateOf(u, holders, func(string) bool { return true })); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	want.Total, want.Waiting, want.Skipped, want.Failed = 1, 0, 0, 0
	if d := cmp.Diff(want, updateOf(u, holders, func(name string) bool { return name == "e" })); d != "" {
		t.Errorf("the owner of e (-want +got)\n%s", d)
	}
}
