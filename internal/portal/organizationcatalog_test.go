package portal

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/portal/openapi"
)

const payNames = "trnv1:rsc:trip-com:redis:clusters:pay-"

// catalogOrganizations are an organization of the team storage that carol administers, one of the team search that erin administers, and
// one of the team payments that frank administers without a part of the catalog. The auditor grace is an administrator of each.
func catalogOrganizations() []*v1alpha1.Organization {
	bounds := &v1alpha1.CatalogBounds{
		Patterns: []v1alpha1.NamePattern{payNames + "*"}, Kinds: []v1alpha1.EntityKind{"resource"}, Sensitivities: []v1alpha1.Sensitivity{"low", "medium"},
	}
	organization := func(name string, team v1alpha1.TeamName, by v1alpha1.OrganizationAdministrator, b *v1alpha1.CatalogBounds) *v1alpha1.Organization {
		return &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.OrganizationSpec{
			Teams: []v1alpha1.TeamName{team}, Administrators: []v1alpha1.OrganizationAdministrator{by, "person:grace"},
			Bounds: v1alpha1.OrganizationBounds{Catalog: b},
		}}
	}
	return []*v1alpha1.Organization{
		organization("pay", "storage", "person:carol", bounds), organization("find", "search", "person:erin", bounds),
		organization("bare", "payments", "person:frank", nil),
	}
}

func storageResource(id string, change func(e map[string]any)) map[string]any {
	e := map[string]any{
		"kind": "resource", "id": id, "title": id, "name": payNames + id, "owners": []string{"group:storage"}, "sensitivity": "medium",
	}
	if change != nil {
		change(e)
	}
	return e
}

// TestAdministratorsChangeTheCatalog checks which entities an administrator of an organization may create, change and retire.
func TestAdministratorsChangeTheCatalog(t *testing.T) {
	x := newSite(t)
	x.host.organizations = catalogOrganizations()
	versions := map[string]any{}
	security := x.as("dave")
	put := func(id string, change func(e map[string]any)) {
		var e openapi.Entity
		if a := security.Post("/api/v1/catalog/entities", storageResource(id, change)); a.Status != http.StatusOK {
			t.Fatalf("%s: %d %s", id, a.Status, a.Body)
		} else {
			a.Into(t, &e)
		}
		versions[id] = *e.Version
	}
	set := func(key string, value any) func(map[string]any) { return func(e map[string]any) { e[key] = value } }
	put("open", nil)
	put("high", set("sensitivity", "high"))
	put("shared", set("owners", []string{"group:storage", "user:erin"}))
	put("prod", set("environment", "prod"))
	put("elsewhere", set("name", "trnv1:rsc:trip-com:redis:clusters:else"))
	put("gone", nil)
	const resources = "/api/v1/catalog/entities/resource/"
	if a := security.Call(http.MethodDelete, resources+"gone",
		map[string]any{"reason": "work"}, http.Header{"X-Acp-Request": {"1"}}); a.Status != http.StatusNoContent {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	version := func(id string, more ...func(map[string]any)) func(map[string]any) {
		return func(e map[string]any) {
			e["version"] = versions[id]
			for _, change := range more {
				change(e)
			}
		}
	}
	for name, tc := range map[string]struct {
		reason, who, id string
		change          func(map[string]any)
		want            int
		says            string
	}{
		"another organization's administrator": {"storage is not a team of theirs", "erin", "new", nil, 403, "own the entity"},
		"plain person":                         {"administers nothing", "alice", "new", nil, 403, "own the entity"},
		"owner":                                {"a member of the team administers nothing", "bob", "new", nil, 403, "own the entity"},
		"auditor":                              {"auditors change nothing", "grace", "new", nil, 403, ""},
		"no catalog bound": {"the security team delegated nothing", "frank", "new",
			set("owners", []string{"group:payments"}), 403, "own the entity"},
		"name": {"outside of the patterns", "carol", "new",
			set("name", "trnv1:rsc:trip-com:redis:clusters:x"), 403, "bounds.catalog.patterns"},
		"wildcard":          {"an exact name", "carol", "new", set("name", payNames+"*"), 422, ""},
		"kind":              {"not in the list", "carol", "new", set("kind", "application"), 403, "bounds.catalog.kinds"},
		"group":             {"groups give rights", "carol", "new", set("kind", "group"), 403, "bounds.catalog.kinds"},
		"another team":      {"the owner is outside", "carol", "new", set("owners", []string{"group:search"}), 403, "own the entity"},
		"another team, too": {"every owner counts", "carol", "new", set("owners", []string{"group:search", "group:storage"}), 403, ""},
		"a person, too": {"people belong to no organization", "carol", "new",
			set("owners", []string{"group:storage", "user:bob"}), 403, "user:bob"},
		"sensitivity":                {"above the bounds", "carol", "new", set("sensitivity", "high"), 403, "bounds.catalog.sensitivities"},
		"environment":                {"none is allowed", "carol", "new", set("environment", "prod"), 403, "bounds.catalog.environments"},
		"sensitivity lowered":        {"it was outside before", "carol", "high", version("high"), 403, "bounds.catalog.sensitivities"},
		"environment removed":        {"it was outside before", "carol", "prod", version("prod"), 403, "bounds.catalog.environments"},
		"taking over a name":         {"it was outside before", "carol", "elsewhere", version("elsewhere"), 403, "bounds.catalog.patterns"},
		"taking over what is shared": {"an owner was outside before", "carol", "shared", version("shared"), 403, "user:erin"},
		"giving away":                {"an owner is outside after", "carol", "open", version("open", set("owners", []string{"group:search"})), 403, ""},
		"entity of a source":         {"the source says what it is", "carol", "ledger-db-cache", set("version", 1), 403, "comes from the source files"},
		"name of what is gone":       {"access may still name it", "carol", "new", set("name", payNames+"gone"), 403, "removed from its source"},
		"freeing a name": {"they could create an entity with it that their own team owns", "carol", "open",
			version("open", set("name", payNames+"renamed")), 403, "cannot change the name"},
		"freeing the name of what is gone": {"as above", "carol", "gone", set("name", payNames+"renamed"), 403, "cannot change the name"},
		"stale":                            {"somebody changed it since", "carol", "open", set("version", 1), 409, ""},
		"change":                           {"within the bounds", "carol", "open", version("open", set("sensitivity", "low")), 200, ""},
		"new":                              {"within the bounds", "carol", "first", nil, 200, ""},
		"security":                         {"unrestricted", "dora", "other", set("sensitivity", "high"), 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := x.as(tc.who).Post("/api/v1/catalog/entities", storageResource(tc.id, tc.change))
			if a.Status != tc.want || !strings.Contains(string(a.Body), tc.says) {
				t.Errorf("%s: %d %s, want %d %q", tc.reason, a.Status, a.Body, tc.want, tc.says)
			}
		})
	}
	for _, tc := range []struct {
		reason, who, id string
		want            int
	}{
		{"another organization's", "erin", "open", 403},
		{"an auditor's", "grace", "open", 403},
		{"outside of the bounds", "carol", "high", 403},
		{"of a source", "carol", "ledger-db-cache", 403},
		{"within the bounds", "carol", "open", 204},
		{"only the security team deletes finally", "carol", "open", 403},
		{"the security team does", "dave", "open", 204},
	} {
		a := x.as(tc.who).Call(http.MethodDelete, resources+tc.id, map[string]any{"reason": "work"}, http.Header{"X-Acp-Request": {"1"}})
		if a.Status != tc.want {
			t.Errorf("removal of %s by %s (%s): %d %s, want %d", tc.id, tc.who, tc.reason, a.Status, a.Body, tc.want)
		}
	}
	type line struct{ Details map[string]string }
	var lines struct{ Items []line }
	security.Get("/api/v1/ledger?actor=carol&action=catalog.synced").Into(t, &lines)
	if len(lines.Items) != 3 || slices.ContainsFunc(lines.Items, func(l line) bool { return l.Details["organization"] != "pay" }) {
		t.Errorf("the ledger says of carol's changes: %+v", lines.Items)
	}
}

// TestAdministratorsListTheirEntities checks who sees the entities of the teams of an organization, and which are out of its bounds.
func TestAdministratorsListTheirEntities(t *testing.T) {
	x := newSite(t)
	x.host.organizations = catalogOrganizations()
	if a := x.as("dave").Post("/api/v1/catalog/entities", storageResource("open", nil)); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for _, tc := range []struct {
		who, query string
		want       int
		items      string
	}{
		{"carol", "?organization=pay", 200, "ledger-db-cache! open unclassed!"},
		{"carol", "?organization=pay&q=open", 200, "open"},
		{"carol", "", 403, ""},
		{"carol", "?organization=find", 404, ""},
		{"alice", "?organization=pay", 404, ""},
		{"grace", "?organization=pay", 200, "ledger-db-cache! open unclassed!"},
		{"dave", "?organization=find", 200, ""},
		{"dave", "?organization=none", 404, ""},
	} {
		a := x.as(tc.who).Get("/api/v1/catalog/entities" + tc.query)
		if a.Status != tc.want {
			t.Errorf("%s %s: %d %s", tc.who, tc.query, a.Status, a.Body)
			continue
		}
		if tc.want != http.StatusOK {
			continue
		}
		var list openapi.EntityList
		a.Into(t, &list)
		var got []string
		for _, e := range list.Items {
			text := e.Id
			if e.OutOfBounds != nil {
				text += "!"
			}
			got = append(got, text)
		}
		if strings.Join(got, " ") != tc.items {
			t.Errorf("%s %s: %v, want %s", tc.who, tc.query, got, tc.items)
		}
	}
}
