package views

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// demoCatalog returns a catalog with one application, which a group owns.
func demoCatalog() *catalog.Catalog {
	return catalog.Build([]catalog.Record{
		{Kind: catalog.KindGroup, ID: "storage", Title: "Storage team"},
		{Kind: catalog.KindApplication, ID: "app-1", Title: "Checkout", Name: "trnv1:rsc:o:iam:sa:app/1",
			Owners: []catalog.Owner{{Kind: catalog.OwnerGroup, ID: "storage"}}},
	})
}

// TestStatementScope checks that the view of a statement has the title of each name that the catalog has, beside the exact names.
func TestStatementScope(t *testing.T) {
	const app, pattern = "trnv1:rsc:o:iam:sa:app/1", "trnv1:rsc:o:redis:clusters:*"
	got := StatementScope(demoCatalog(), &approval.StatementScope{Effect: v1alpha1.EffectDeny, Subjects: []string{app, "*"}, Resources: []string{pattern}})
	want := &openapi.StatementScope{
		Effect:       openapi.StatementScopeEffectDeny,
		Subjects:     []string{app, "*"},
		SubjectRefs:  &[]openapi.CatalogRef{{Id: new("app-1"), Name: app, Title: "Checkout"}, {Name: "*", Title: "*"}},
		Resources:    []string{pattern},
		ResourceRefs: &[]openapi.CatalogRef{{Name: pattern, Title: pattern}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestOwnerRefs checks that owners have their names, or their ids if the catalog does not have them any more.
func TestOwnerRefs(t *testing.T) {
	got := OwnerRefs(demoCatalog(), []catalog.Owner{{Kind: catalog.OwnerGroup, ID: "storage"}, {Kind: catalog.OwnerPerson, ID: "gone"}})
	want := []openapi.OwnerRef{{Kind: openapi.OwnerRefKindGroup, Id: "storage", DisplayName: "Storage team"},
		{Kind: openapi.OwnerRefKindPerson, Id: "gone", DisplayName: "gone"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
