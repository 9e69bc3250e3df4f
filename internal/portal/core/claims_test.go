package core

import (
	"encoding/json"
	"testing"
	"time"

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
		"NameOfAProgram":    {Claims{}, `{"preferred_username":"system:accessrequest:shop/carts"}`, "", nil},
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

func TestAuthTime(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for name, tc := range map[string]struct {
		reason string
		claim  any
		want   time.Time
		ok     bool
	}{
		"absent":     {"it is optional", nil, time.Time{}, true},
		"past":       {"the usual", 1_799_999_000.0, time.Unix(1_799_999_000, 0), true},
		"fraction":   {"a JSON number", 1_799_999_000.5, time.Unix(1_799_999_000, 0), true},
		"clock":      {"the clocks differ a little", 1_800_000_030.0, now, true},
		"future":     {"not yet", 1_800_000_061.0, time.Time{}, false},
		"text":       {"another type", "1799999000", time.Time{}, false},
		"negative":   {"before 1970", -1.0, time.Time{}, false},
		"far future": {"no time has this number", 1e300, time.Time{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			claims := map[string]any{}
			if tc.claim != nil {
				claims["auth_time"] = tc.claim
			}
			if got, ok := authTime(claims, now); ok != tc.ok || !got.Equal(tc.want) {
				t.Errorf("%s: %v %v, want %v %v", tc.reason, got, ok, tc.want, tc.ok)
			}
		})
	}
}
