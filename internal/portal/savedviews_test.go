package portal

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/savedview"
)

type savedViewBody struct{ ID, Page, Name, Query string }

func savedViewsOf(t *testing.T, b *portaltest.Browser) []savedViewBody {
	t.Helper()
	var list struct{ Items []savedViewBody }
	a := b.Get("/api/v1/me/views")
	if a.Into(t, &list); a.Status != http.StatusOK || list.Items == nil {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	return list.Items
}

func putView(b *portaltest.Browser, page, name, query string) portaltest.Answer {
	return b.Call(http.MethodPut, "/api/v1/me/views", map[string]any{"page": page, "name": name, "query": query}, http.Header{"X-Acp-Request": {"1"}})
}

// TestSavedViewsBelongToOnePerson checks that a person's views are the same in every browser of that person, and that nobody else sees or
// removes them, not even the security team.
func TestSavedViewsBelongToOnePerson(t *testing.T) {
	x := newSite(t)
	here, there, dave := x.as("alice"), x.as("alice"), x.as("dave")
	if got := savedViewsOf(t, here); len(got) != 0 {
		t.Errorf("a new person has views: %+v", got)
	}
	var v savedViewBody
	if a := putView(here, "flows", " Denied ", "q=redis&decision=denied"); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	} else {
		a.Into(t, &v)
	}
	want := savedViewBody{ID: v.ID, Page: "flows", Name: "Denied", Query: "decision=denied&q=redis"}
	if diff := cmp.Diff(want, v); diff != "" || v.ID == "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]savedViewBody{want}, savedViewsOf(t, there)); diff != "" {
		t.Errorf("another browser of the same person: %s", diff)
	}
	if a := dave.Delete("/api/v1/me/views/" + v.ID); a.Status != http.StatusNotFound {
		t.Errorf("another person removes the view: %d", a.Status)
	}
	if got := savedViewsOf(t, dave); len(got) != 0 {
		t.Errorf("another person sees %+v", got)
	}
	if a := putView(there, "flows", "Denied", "port=80"); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	want.Query = "port=80"
	if diff := cmp.Diff([]savedViewBody{want}, savedViewsOf(t, here)); diff != "" {
		t.Errorf("a view of the same name is not replaced: %s", diff)
	}
	for _, wantStatus := range []int{http.StatusNoContent, http.StatusNotFound} {
		if a := here.Delete("/api/v1/me/views/" + v.ID); a.Status != wantStatus {
			t.Errorf("%d, want %d", a.Status, wantStatus)
		}
	}
	if got := savedViewsOf(t, there); len(got) != 0 {
		t.Errorf("the view is still there: %+v", got)
	}
}

// TestSavedViewsAreValidated checks that a view leads to a page of the portal and nowhere else, and that their number is bounded.
func TestSavedViewsAreValidated(t *testing.T) {
	x := newSite(t)
	b := x.as("grace") // an auditor may keep views, because they change nobody's access
	for name, tc := range map[string]struct{ page, name, query, field string }{
		"another page": {"../auth/logout", "x", "a=b", "page"},
		"another site": {"/evil.example", "x", "a=b", "page"},
		"no name":      {"flows", " ", "a=b", "name"},
		"two lines":    {"flows", "a\nb", "a=b", "name"},
		"no query":     {"flows", "x", "", "query"},
		"a fragment":   {"flows", "x", "a=b#c", "query"},
	} {
		a := putView(b, tc.page, tc.name, tc.query)
		var p problemBody
		if a.Into(t, &p); a.Status != http.StatusUnprocessableEntity || len(p.Fields) != 1 || p.Fields[0].Field != tc.field {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
	if a := b.Delete("/api/v1/me/views/x"); a.Status != http.StatusNotFound {
		t.Errorf("an id that is not a number: %d", a.Status)
	}
	for i := range savedview.MaxViews {
		if a := putView(b, "requests", fmt.Sprint(i), "state=failed"); a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	var p problemBody
	if a := putView(b, "requests", "one more", "state=failed"); a.Status != http.StatusConflict {
		t.Errorf("one more than the limit: %d", a.Status)
	} else if a.Into(t, &p); p.Code != "conflict" {
		t.Errorf("one more than the limit: %s", p.Code)
	}
	if a := putView(b, "flows", "another page", "port=80"); a.Status != http.StatusOK {
		t.Errorf("the limit holds for each page: %d", a.Status)
	}
}
