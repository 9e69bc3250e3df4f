package scim_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/catalog"
)

// TestUserPrincipalNames checks that names in the form of addresses, which Entra ID and Okta send by default, are the ids of people as they are,
// so that no two names become one person.
func TestUserPrincipalNames(t *testing.T) {
	s := newServer(t)
	names := []string{"alice", "alice@corp.example", "alice@example.com", "alice-corp.example", "alice.corp.example", "alice_corp.example"}
	for i, name := range names {
		made := s.call(http.StatusCreated, http.MethodPost, "/Users", fmt.Sprintf(`{%s,"userName":%q,"displayName":"Person %d"}`, userSchema, name, i))
		if made["id"] != name || made["userName"] != name || made["meta"].(map[string]any)["location"] != "https://acp.example.com/scim/v2/Users/"+name {
			t.Errorf("%s is created as %v", name, made)
		}
	}
	for i, name := range names {
		if p, ok := s.directory.Catalog().Person(name); !ok || p.DisplayName != fmt.Sprintf("Person %d", i) {
			t.Errorf("%s is %+v", name, p)
		}
		if got := s.call(http.StatusOK, http.MethodGet, "/Users/"+url.PathEscape(name), ""); got["displayName"] != fmt.Sprintf("Person %d", i) {
			t.Errorf("%s is read as %v", name, got)
		}
	}
	s.call(http.StatusConflict, http.MethodPost, "/Users", `{`+userSchema+`,"userName":"Alice@CORP.example"}`)
	if ids, total := s.ids("/Users?filter=" + url.QueryEscape(`userName eq "Alice@Corp.example"`)); total != 1 || ids[0] != "alice@corp.example" {
		t.Errorf("the name is found as %v", ids)
	}
	s.call(http.StatusCreated, http.MethodPost, "/Groups", `{`+groupSchema+`,"displayName":"storage","members":[{"value":"alice@corp.example"}]}`)
	if c := s.directory.Catalog(); !c.InGroup("alice@corp.example", "storage") || c.InGroup("alice", "storage") || c.InGroup("alice@example.com", "storage") {
		t.Error("the group has another member")
	}
	for _, name := range []string{"alice@example.com", "bob"} {
		s.patch(http.StatusBadRequest, "/Users/alice@corp.example", `{"op":"Replace","path":"userName","value":"`+name+`"}`)
	}
	s.patch(http.StatusOK, "/Users/alice@corp.example", `{"op":"Replace","path":"userName","value":"alice@corp.example"},
		{"op":"Replace","path":"active","value":"False"}`)
	if _, ok := s.directory.Catalog().Person("alice@corp.example"); ok {
		t.Error("the person was not deactivated")
	}
	if _, ok := s.directory.Catalog().Person("alice"); !ok {
		t.Error("another person was deactivated")
	}
}

// TestNameOfAFormerUser checks that the name of a user who was deleted is not given to another one before an administrator has deleted the
// gone person, and that the same user may come back.
func TestNameOfAFormerUser(t *testing.T) {
	s := newServer(t)
	create := func(want int, externalID string) {
		t.Helper()
		got := s.call(want, http.MethodPost, "/Users", `{`+userSchema+`,"userName":"zoe@corp.example","externalId":"`+externalID+`"}`)
		if detail, _ := got["detail"].(string); want == http.StatusConflict && !strings.Contains(detail, "security administrator") {
			t.Errorf("%v", got)
		}
	}
	create(http.StatusCreated, "object-1")
	s.call(http.StatusNoContent, http.MethodDelete, "/Users/zoe@corp.example", "")
	create(http.StatusConflict, "object-2")
	create(http.StatusCreated, "object-1")
	s.patch(http.StatusOK, "/Users/zoe@corp.example", `{"op":"replace","value":{"externalId":"object-3"}}`) // of the same user
	s.call(http.StatusNoContent, http.MethodDelete, "/Users/zoe@corp.example", "")
	create(http.StatusConflict, "object-1")
	dave := catalog.Actor{ID: "dave", Security: true}
	gone := []catalog.Ref{{Kind: catalog.KindPerson, ID: "zoe@corp.example"}}
	if err := s.directory.Remove(t.Context(), dave, gone, s.directory.Revision()); err != nil {
		t.Fatal(err)
	}
	create(http.StatusCreated, "object-1")
}

// TestPatchesOfEntraID checks the forms of operations that Entra ID sends and RFC 7644 does not have, or has no example of.
func TestPatchesOfEntraID(t *testing.T) {
	const manager = enterprise + ":manager"
	for name, c := range map[string]struct {
		operation string
		want      catalog.Record
	}{
		"FalseAsText": {`{"op":"Replace","path":"active","value":"False"}`, catalog.Record{Title: "Zoe", Leader: "bob", Deactivated: true}},
		"TrueAsText":  {`{"op":"Replace","path":"active","value":"True"}`, catalog.Record{Title: "Zoe", Leader: "bob"}},
		"FalseWithoutAPath": {
			`{"op":"replace","value":{"active":"False"}}`,
			catalog.Record{Title: "Zoe", Leader: "bob", Deactivated: true},
		},
		"ManagerAsText":        {`{"op":"Add","path":"` + manager + `","value":"eve"}`, catalog.Record{Title: "Zoe", Leader: "eve"}},
		"ManagerInAList":       {`{"op":"Add","path":"manager","value":[{"$ref":"/Users/eve","value":"eve"}]}`, catalog.Record{Title: "Zoe", Leader: "eve"}},
		"ManagerWithoutSchema": {`{"op":"Replace","path":"manager","value":"eve"}`, catalog.Record{Title: "Zoe", Leader: "eve"}},
		"ManagerAsValue":       {`{"op":"Replace","path":"` + manager + `.value","value":"eve"}`, catalog.Record{Title: "Zoe", Leader: "eve"}},
		"NoManager":            {`{"op":"Replace","path":"` + manager + `","value":""}`, catalog.Record{Title: "Zoe"}},
		"ManagerRemoved":       {`{"op":"Remove","path":"` + manager + `"}`, catalog.Record{Title: "Zoe"}},
		"ManagerRemovedByName": {`{"op":"Remove","path":"manager","value":"bob"}`, catalog.Record{Title: "Zoe"}},
		"PathsAsNames": {
			`{"op":"Replace","value":{"displayName":"Z","title":"Engineer","name.familyName":"Young","emails[type eq \"work\"].value":"z@corp.example",
				"` + manager + `":"eve","` + enterprise + `:department":"Storage"}}`,
			catalog.Record{Title: "Z", JobTitle: "Engineer", Email: "z@corp.example", Leader: "eve"},
		},
		"ExtensionAsName": {`{"op":"Add","value":{"` + enterprise + `":{"manager":"eve"}}}`, catalog.Record{Title: "Zoe", Leader: "eve"}},
		"WhatIsNotStored": {
			`{"op":"Add","path":"addresses[type eq \"work\"].formatted","value":"Room 7"},{"op":"Add","path":"` + enterprise + `:employeeNumber","value":"7"},
				{"op":"Add","path":"preferredLanguage","value":"en"},{"op":"Add","path":"phoneNumbers[type eq \"mobile\"].value","value":"1"}`,
			catalog.Record{Title: "Zoe", Leader: "bob"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.call(http.StatusCreated, http.MethodPost, "/Users", `{`+userSchema+`,"userName":"zoe@corp.example","displayName":"Zoe","active":true,
				"`+enterprise+`":{"manager":"bob"}}`)
			s.patch(http.StatusOK, "/Users/zoe@corp.example", c.operation)
			x, _ := s.directory.Provisioned(catalog.Ref{Kind: catalog.KindPerson, ID: "zoe@corp.example"})
			c.want.Kind, c.want.ID = catalog.KindPerson, "zoe@corp.example"
			if diff := cmp.Diff(c.want, x.Record); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	s := newServer(t)
	s.call(http.StatusCreated, http.MethodPost, "/Users", `{`+userSchema+`,"userName":"zoe@corp.example"}`)
	for _, operation := range []string{
		`{"op":"Replace","path":"active","value":"no"}`, `{"op":"Add","path":"manager","value":["bob","eve"]}`, `{"op":"Add","path":"manager","value":7}`,
		`{"op":"Add","path":"manager"}`, `{"op":"Replace","value":{"name.":"x"}}`,
	} {
		s.patch(http.StatusBadRequest, "/Users/zoe@corp.example", operation)
	}
}
