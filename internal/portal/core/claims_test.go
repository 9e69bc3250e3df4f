package core

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestClaims checks which person and which roles a login gets by its claims. Other groups give nothing.
func TestClaims(t *testing.T) {
	keycloak := Claims{Username: "uid", Groups: "realm_access.roles", Security: []string{"acp-admins", "ciso"}, Auditors: []string{"audit"}}
	for name, c := range map[string]struct {
		names  Claims
		claims string
		person string
		roles  []string
	}{
		"Default":           {Claims{}, `{"preferred_username":"dave","groups":["staff","security"]}`, "dave", []string{"security"}},
		"Both":              {Claims{}, `{"preferred_username":"grace","groups":["security","auditors"]}`, "grace", []string{"auditors", "security"}},
		"NoGroups":          {Claims{}, `{"preferred_username":"alice"}`, "alice", nil},
		"NoName":            {Claims{}, `{"sub":"1","groups":["security"]}`, "", []string{"security"}},
		"NameIsNoText":      {Claims{}, `{"preferred_username":7}`, "", nil},
		"Path":              {keycloak, `{"uid":"dave","realm_access":{"roles":["ciso","x"]}}`, "dave", []string{"security"}},
		"WholeNameFirst":    {keycloak, `{"uid":"dave","realm_access":{"roles":["ciso"]},"realm_access.roles":["audit"]}`, "dave", []string{"auditors"}},
		"DefaultsDoNotRule": {keycloak, `{"uid":"dave","groups":["security"],"realm_access":{"roles":["security"]}}`, "dave", nil},
		"PathThroughAText":  {keycloak, `{"uid":"dave","realm_access":"roles"}`, "dave", nil},
		"NobodyByLogin":     {Claims{Security: []string{}, Auditors: []string{}}, `{"preferred_username":"a","groups":["security","auditors"]}`, "a", nil},
	} {
		var claims map[string]any
		if err := json.Unmarshal([]byte(c.claims), &claims); err != nil {
			t.Fatal(err)
		}
		n := c.names.withDefaults()
		if got := n.person(claims); got != c.person {
			t.Errorf("%s: person %q, want %q", name, got, c.person)
		}
		roles, ok := n.roles(claims)
		if diff := cmp.Diff(c.roles, roles); diff != "" || !ok {
			t.Errorf("%s: readable %t, roles, -want +got:\n%s", name, ok, diff)
		}
	}
	for _, groups := range []string{`"security"`, `{"security":true}`, `["security",1]`, `[["security"]]`, `[null]`, `true`} {
		var claims map[string]any
		if err := json.Unmarshal([]byte(`{"preferred_username":"alice","groups":`+groups+`}`), &claims); err != nil {
			t.Fatal(err)
		}
		if roles, ok := (Claims{}).withDefaults().roles(claims); ok || roles != nil {
			t.Errorf("groups %s are read as %v", groups, roles)
		}
	}
}
