package ticketapi

import (
	"fmt"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
)

// TestSeesFacts checks that the question whether a caller may see facts at all has the answer that the rights of the items give. It reads
// less, because a page asks it about items that it does not show.
func TestSeesFacts(t *testing.T) {
	const cache = "trnv1:rsc:acme:redis:clusters:"
	records := []catalog.Record{{Kind: catalog.KindPerson, ID: "requester"}, {Kind: catalog.KindPerson, ID: "approver"}, {Kind: catalog.KindPerson, ID: "dan"}}
	for _, id := range []string{"ann", "bob", "cem"} {
		owners := []catalog.Owner{{Kind: catalog.OwnerPerson, ID: id}}
		records = append(records, catalog.Record{Kind: catalog.KindPerson, ID: id},
			catalog.Record{Kind: catalog.KindApplication, ID: "app-" + id, Name: testApp + id, Owners: owners},
			catalog.Record{Kind: catalog.KindResource, ID: "cache-" + id, Name: cache + id, Owners: owners})
	}
	c := catalog.Build(records)
	waiting := []approval.Step{{Name: "s", Quorum: 1, State: approval.StepCurrent, Approvers: []string{"approver", "requester"}}}
	scope := func(resource string) *approval.StatementScope {
		return &approval.StatementScope{Effect: v1alpha1.EffectDeny, Subjects: []string{anyone}, Resources: []string{resource}}
	}
	pair := approval.Item{State: approval.StateEffective, ApplicationName: testApp + "ann", ResourceName: cache + "bob"}
	callers := []approval.Actor{{ID: "dave", Security: true}, {ID: "grace", Auditor: true}, {ID: "requester"}, {ID: "approver"}, {ID: "ann"}, {ID: "bob"},
		{ID: "cem"}, {ID: "dan"}, {ID: "dan", StandsFor: []string{"approver"}}}
	for name, items := range map[string][]approval.Item{
		"Pair":             {pair},
		"Waiting":          {{State: approval.StatePending, ApplicationName: testApp + "ann", ResourceName: cache + "bob", Steps: waiting}},
		"Decided":          {{State: approval.StateRejected, ApplicationName: testApp + "ann", ResourceName: cache + "bob", Steps: waiting}},
		"Statement":        {{State: approval.StatePending, Scope: scope(cache + "cem"), Steps: waiting}},
		"PrefixOfNothing":  {{State: approval.StateEffective, Scope: scope(cache + "x*")}},
		"Class":            {{State: approval.StatePending, Change: &approval.Change{}, Steps: waiting}},
		"DecidedClass":     {{State: approval.StateEffective, Change: &approval.Change{}, Steps: waiting}},
		"StatementAndPair": {pair, {State: approval.StateEffective, Scope: scope(cache + "*")}},
		"LastOfMany":       append(make([]approval.Item, 40), pair),
		"None":             nil,
	} {
		for _, who := range callers {
			x := &approval.Ticket{Requester: "requester", Kind: approval.KindGrant, Items: items}
			want := who.Security || who.Auditor
			for i := range items {
				want = want || factRightsOf(c, who, x, i).any()
			}
			if got := seesFacts(c, who, x); got != want {
				t.Errorf("%s: %s sees facts: %t, want %t", name, fmt.Sprint(who.ID, who.StandsFor), got, want)
			}
		}
	}
}
