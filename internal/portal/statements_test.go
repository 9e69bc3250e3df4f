package portal

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// statements counts the statements to the database from now on.
func (x *site) statements() *atomic.Int64 {
	x.t.Helper()
	var n atomic.Int64
	count := func(*gorm.DB) { n.Add(1) }
	register := func(tx *gorm.DB) error {
		cb := tx.Callback()
		for _, err := range []error{
			cb.Query().Register(database.StatementCallback, count), cb.Row().Register(database.StatementCallback, count),
			cb.Raw().Register(database.StatementCallback, count)} {
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := x.db.Read(x.t.Context(), register); err != nil {
		x.t.Fatal(err)
	}
	if err := x.db.Write(x.t.Context(), register); err != nil {
		x.t.Fatal(err)
	}
	return &n
}

// TestListsUseFewStatements checks that the number of statements to the database does not grow with the rows of a page.
func TestListsUseFewStatements(t *testing.T) {
	x := newSite(t)
	store := x.Tickets.Store
	add := func(n int) {
		for i := range n {
			it := approval.Item{
				Application:     "app-888",
				ApplicationName: portaltest.App888,
				Resource:        fmt.Sprint("r", i),
				ResourceName:    portaltest.BobsCluster,
				Actions:         []string{fmt.Sprint("redis:", n, "-", i)},
				Steps:           []approval.Step{{Name: "leader", Approvers: []string{"carol"}, Quorum: 1}},
			}
			made, err := store.Create(
				t.Context(),
				approval.NewTicket(approval.Draft{Kind: approval.KindGrant, Requester: "alice", Reason: "because", Items: []approval.Item{it}}, x.now()),
			)
			if err != nil {
				t.Fatal(err)
			}
			x.host.mu.Lock()
			p := x.host.input.Policies[0]
			p.Name = policy.PolicyNameFor(portaltest.BobsCluster)
			p.Spec.Statements = append(
				p.Spec.Statements,
				v1alpha1.Statement{SID: made.Items[0].SID, Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{portaltest.App888},
					Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{portaltest.BobsCluster}},
			)
			x.host.input.Policies = []*v1alpha1.AccessControlPolicy{{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Spec: p.Spec}}
			x.host.mu.Unlock()
		}
	}
	paths := map[string]string{
		"/tickets?limit=200":                "alice",
		"/tickets?view=approvals&limit=200": "carol",
		"/tickets?view=all&limit=200":       "dave",
		"/home":                             "alice",
		"/me":                               "carol",
		"/resources/bobs-cluster/access":    "bob",
		"/applications/app-888/access":      "alice",
		"/ledger?limit=200":                 "dave",
		"/me/inbox":                         "carol",
	}
	browsers := map[string]*portaltest.Browser{}
	for _, who := range paths {
		browsers[who] = x.as(who)
	}
	n := x.statements()
	measure := func() map[string]int64 {
		out := map[string]int64{}
		for path, who := range paths {
			before := n.Load()
			if a := browsers[who].Get("/api/v1" + path); a.Status != http.StatusOK {
				t.Fatalf("%s: %d %s", path, a.Status, a.Body)
			}
			out[path] = n.Load() - before
		}
		return out
	}
	// Stores cache what they have read, so a call may make fewer statements than this, but not one for each row.
	const rows, most, mostOfHome = 63, 8, 18
	add(rows)
	for round := range 2 {
		for path, n := range measure() {
			t.Logf("%-40s %d statements", path, n)
			if limit := map[bool]int64{false: most, true: mostOfHome}[path == "/home"]; n > limit || round == 0 && n == 0 {
				t.Errorf("%s makes %d statements for %d rows", path, n, rows)
			}
		}
	}
}
