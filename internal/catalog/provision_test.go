package catalog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/catalog"
)

// TestProvisionedChangesInTheLedger checks that the ledger counts each change of a provisioned person as what it is, also while the person
// is deactivated.
func TestProvisionedChangesInTheLedger(t *testing.T) {
	w := newWorld(t)
	w.sync("hr", company()...)
	active := catalog.Record{Kind: catalog.KindPerson, ID: "newcomer"}
	deactivated := active
	deactivated.Deactivated = true
	promoted := deactivated
	promoted.JobTitle = "Manager"
	reactivated := promoted
	reactivated.Deactivated = false
	version := int64(0)
	for _, c := range []struct {
		rec  catalog.Record
		want string
	}{
		{active, "created"}, {active, ""}, {deactivated, "gone"}, {deactivated, ""}, {promoted, "updated"}, {reactivated, "returned"},
	} {
		w.lines = nil
		x, err := w.Provision(t.Context(), dave, c.rec, version)
		if err != nil {
			t.Fatal(err)
		}
		if gone := !x.Gone.IsZero(); gone != c.rec.Deactivated {
			t.Errorf("%+v: gone %t", c.rec, gone)
		}
		version = x.Version
		got := map[string]string{}
		if len(w.lines) > 0 {
			got = w.lines[0].Details
			delete(got, "digest")
		}
		want := map[string]string{}
		if c.want != "" {
			want = map[string]string{"created": "0", "updated": "0", "gone": "0", "returned": "0"}
			want[c.want] = "1"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v: the ledger has, -want +got:\n%s", c.rec, diff)
		}
	}
}
