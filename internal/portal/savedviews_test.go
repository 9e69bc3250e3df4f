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

// TestSharedViewsAreOpenedByTheirLink checks that a view is private until its person shares it, that everyone who is signed in can then read it by its
// link and nobody by its id, and that the link leads nowhere once the sharing ends.
func TestSharedViewsAreOpenedByTheirLink(t *testing.T) {
	x := newSite(t)
	alice, bob, grace := x.as("alice"), x.as("bob"), x.as("grace")
	type shared struct {
		Page, Name, Query string
		By                struct{ ID, DisplayName string }
		Own               bool
	}
	var v struct{ ID, Link string }
	putView(alice, "flows", "Denied", "decision=denied").Into(t, &v)
	if v.Link != "" {
		t.Errorf("a new view is shared: %s", v.Link)
	}
	link := func() string {
		t.Helper()
		var v struct{ ID, Link string }
		if a := alice.Call(http.MethodPut, "/api/v1/me/views/1/link", nil, http.Header{"X-Acp-Request": {"1"}}); a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Body)
		} else {
			a.Into(t, &v)
		}
		if len(v.Link) < 26 { // 26 letters of base32 are 130 bits
			t.Errorf("the link %q can be guessed", v.Link)
		}
		return v.Link
	}
	open := func(b *portaltest.Browser, id string, status int) (got shared) {
		t.Helper()
		a := b.Get("/api/v1/views/" + id)
		if a.Status != status {
			t.Errorf("%s: %d, want %d: %s", id, a.Status, status, a.Body)
		}
		if status == http.StatusOK {
			a.Into(t, &got)
		}
		return got
	}
	open(alice, v.ID, http.StatusNotFound)
	first := link()
	if again := link(); again != first {
		t.Errorf("the link changes when the view is shared again: %s, %s", first, again)
	}
	for _, b := range []*portaltest.Browser{bob, grace} {
		got := open(b, first, http.StatusOK)
		want := shared{Page: "flows", Name: "Denied", Query: "decision=denied", By: got.By}
		if got != want || got.By.ID != "alice" || got.By.DisplayName == "" {
			t.Errorf("%+v", got)
		}
		open(b, v.ID, http.StatusNotFound)
	}
	if got := open(alice, first, http.StatusOK); !got.Own {
		t.Error("the own view is not marked")
	}
	if a := x.as("").Get("/api/v1/views/" + first); a.Status != http.StatusUnauthorized {
		t.Errorf("without a login: %d", a.Status)
	}
	if a := bob.Delete("/api/v1/me/views/1/link"); a.Status != http.StatusNotFound {
		t.Errorf("another person ends the sharing: %d", a.Status)
	}
	if a := bob.Call(http.MethodPut, "/api/v1/me/views/1/link", nil, http.Header{"X-Acp-Request": {"1"}}); a.Status != http.StatusNotFound {
		t.Errorf("another person gets the link: %d %s", a.Status, a.Body)
	}
	if got := savedViewsOf(t, bob); len(got) != 0 {
		t.Errorf("a shared view is among the views of another person: %+v", got)
	}
	// The link follows the view.
	putView(alice, "flows", "Denied", "decision=audited")
	if got := open(bob, first, http.StatusOK); got.Query != "decision=audited" {
		t.Errorf("the link leads to %+v", got)
	}
	if a := alice.Delete("/api/v1/me/views/1/link"); a.Status != http.StatusNoContent {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	open(bob, first, http.StatusNotFound)
	second := link()
	if second == first {
		t.Error("a link that was ended leads to the view again")
	}
	open(bob, first, http.StatusNotFound)
	open(bob, second, http.StatusOK)
	alice.Delete("/api/v1/me/views/1")
	open(bob, second, http.StatusNotFound)
}
