package accesspackage

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

func specOf(days int64, resources map[string][]string) Spec {
	s := Spec{DurationSeconds: days * 86400, Resources: map[string]Resource{}}
	for name, actions := range resources {
		s.Resources[name] = Resource{Actions: actions}
	}
	return s
}

func heldUntil(ticket int64, resource string, days int, actions ...string) HeldAccess {
	h := HeldAccess{Access: Access{Ticket: ticket}, Resource: resource, Actions: actions}
	if days > 0 {
		h.End = now.AddDate(0, 0, days)
	}
	return h
}

// TestHolder checks what a version changes for an application: what approvers are shown, and what is done later.
func TestHolder(t *testing.T) {
	const day = 86400
	none := func(string, string) bool { return false }
	a := func(actions ...string) []string { return actions }
	for name, tc := range map[string]struct {
		spec     Spec
		held     []HeldAccess
		withheld func(resource, action string) bool
		shown    HolderChange
		plan     Plan
	}{
		"a further resource ends with what it has": {
			spec: specOf(30, map[string][]string{"r": a("read"), "s": a("read")}), held: []HeldAccess{heldUntil(1, "r", 7, "read")},
			shown: HolderChange{Gets: map[string][]string{"s": a("read")}},
			plan:  Plan{Give: []Addition{{Resource: "s", Actions: a("read"), DurationSeconds: 7 * day, Until: now.AddDate(0, 0, 7)}}},
		},
		"the version is shorter": {
			spec: specOf(3, map[string][]string{"r": a("read"), "s": a("read")}), held: []HeldAccess{heldUntil(1, "r", 7, "read")},
			shown: HolderChange{Gets: map[string][]string{"s": a("read")}},
			plan:  Plan{Give: []Addition{{Resource: "s", Actions: a("read"), DurationSeconds: 3 * day, Until: now.AddDate(0, 0, 7)}}},
		},
		"until revoked only if it holds something until revoked": {
			spec: specOf(0, map[string][]string{"r": a("read"), "s": a("read")}),
			held: []HeldAccess{heldUntil(1, "r", 7, "read"), heldUntil(2, "r", 0, "read")}, shown: HolderChange{Gets: map[string][]string{"s": a("read")}},
			plan: Plan{Give: []Addition{{Resource: "s", Actions: a("read")}}},
		},
		"a resource is gone": {
			spec: specOf(30, map[string][]string{"r": a("read")}), held: []HeldAccess{heldUntil(1, "r", 7, "read"), heldUntil(2, "s", 9, "read")},
			shown: HolderChange{Loses: map[string][]string{"s": a("read")}}, plan: Plan{Revoke: []Access{{Ticket: 2}}},
		},
		"an action is gone, and what is left ends as before": {
			spec: specOf(30, map[string][]string{"r": a("read"), "s": a("read")}),
			held: []HeldAccess{heldUntil(1, "r", 7, "read", "write"), heldUntil(2, "x", 9, "read")},
			shown: HolderChange{Gets: map[string][]string{"s": a("read")}, Loses: map[string][]string{"r": a("write"), "x": a("read")},
				Renews: map[string][]string{"r": a("read")}},
			plan: Plan{Revoke: []Access{{Ticket: 1}, {Ticket: 2}}, Give: []Addition{
				{Resource: "r", Actions: a("read"), DurationSeconds: 7 * day, Until: now.AddDate(0, 0, 7)},
				{Resource: "s", Actions: a("read"), DurationSeconds: 9 * day, Until: now.AddDate(0, 0, 9)},
			}},
		},
		"another access has what is left": {
			spec: specOf(30, map[string][]string{"r": a("read")}), held: []HeldAccess{heldUntil(1, "r", 7, "read", "write"), heldUntil(2, "r", 5, "read")},
			shown: HolderChange{Loses: map[string][]string{"r": a("write")}}, plan: Plan{Revoke: []Access{{Ticket: 1}}},
		},
		"withheld": {
			spec: specOf(30, map[string][]string{"r": a("read"), "s": a("read", "write")}), held: []HeldAccess{heldUntil(1, "r", 7, "read")},
			withheld: func(resource, action string) bool { return resource == "s" && action == "write" },
			shown:    HolderChange{Gets: map[string][]string{"s": a("read", "write")}},
			plan:     Plan{Give: []Addition{{Resource: "s", Actions: a("read"), DurationSeconds: 7 * day, Until: now.AddDate(0, 0, 7)}}},
		},
		"nothing changes": {
			spec: specOf(30, map[string][]string{"r": a("read")}), held: []HeldAccess{heldUntil(1, "r", 7, "read")}, shown: HolderChange{}, plan: Plan{},
		},
	} {
		if tc.withheld == nil {
			tc.withheld = none
		}
		if d := cmp.Diff(tc.shown, tc.spec.Compare(tc.held)); d != "" {
			t.Errorf("%s: shown (-want +got):\n%s", name, d)
		}
		if d := cmp.Diff(tc.plan, tc.spec.Plan(tc.shown, tc.held, tc.withheld, now)); d != "" {
			t.Errorf("%s: planned (-want +got):\n%s", name, d)
		}
	}
}

// TestPlanGivesOnlyWhatWasShown checks that an access which ended after the request is not given again.
func TestPlanGivesOnlyWhatWasShown(t *testing.T) {
	spec := specOf(30, map[string][]string{"r": {"read"}, "s": {"read"}})
	shown := spec.Compare([]HeldAccess{heldUntil(1, "r", 7, "read"), heldUntil(2, "s", 1, "read")})
	got := spec.Plan(shown, []HeldAccess{heldUntil(1, "r", 7, "read")}, func(string, string) bool { return false }, now)
	if len(got.Give) > 0 || len(got.Revoke) > 0 {
		t.Errorf("the plan: %+v", got)
	}
}

// TestHoldersDoNotChangeOtherDigests checks that the content of a version without holders is what it was before there were any.
func TestHoldersDoNotChangeOtherDigests(t *testing.T) {
	s := specOf(1, map[string][]string{"r": {"read"}})
	s.Title, s.Team, s.Chain = "T", "team", ChainOwners
	text, err := s.JSON()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"title":"T","team":"team","durationSeconds":86400,"chain":"owners","resources":{"r":{"actions":["read"],"owners":null}}}`
	if string(text) != want {
		t.Errorf("%s, want %s", text, want)
	}
}
