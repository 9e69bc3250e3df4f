package portal

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// TestProvisioning checks that a SCIM client provisions a person with a machine token, who can then log in, and that nobody else can.
func TestProvisioning(t *testing.T) {
	x := newSite(t)
	const newcomer = `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"newcomer","displayName":"New Comer"}`
	call := func(method, path, secret, media, body string) (int, map[string]any) {
		t.Helper()
		h := http.Header{"Authorization": {"Bearer " + secret}}
		if body != "" {
			h.Set("Content-Type", media)
		}
		a := x.as("").Raw(method, path, strings.NewReader(body), h)
		var out map[string]any
		if len(a.Body) > 0 {
			if err := json.Unmarshal(a.Body, &out); err != nil {
				t.Fatalf("%s %s: %d %s", method, path, a.Status, a.Body)
			}
		}
		return a.Status, out
	}
	security := x.token("dave", credential.ScopeCatalogWrite)
	for reason, c := range map[string]struct {
		secret, media, body string
		want                int
	}{
		"without a token":                     {"", scimMedia, newcomer, http.StatusUnauthorized},
		"a token of somebody else":            {x.token("alice", credential.ScopeCatalogWrite), scimMedia, newcomer, http.StatusForbidden},
		"a token of an auditor":               {x.token("grace", credential.ScopeCatalogWrite), scimMedia, newcomer, http.StatusForbidden},
		"a token without the scope":           {x.token("dave", credential.ScopeRead, credential.ScopeTicketsWrite), scimMedia, newcomer, http.StatusForbidden},
		"another media type":                  {security, "text/plain", newcomer, http.StatusUnsupportedMediaType},
		"an attribute twice":                  {security, scimMedia, `{"userName":"a","username":"b"}`, http.StatusBadRequest},
		"a body that is too large":            {security, scimMedia, `{"x":"` + strings.Repeat("x", scimBody) + `"}`, http.StatusRequestEntityTooLarge},
		"a person who belongs to the catalog": {security, scimMedia, strings.Replace(newcomer, "newcomer", "alice", 1), http.StatusConflict},
	} {
		if status, _ := call("POST", scimBase+"/Users", c.secret, c.media, c.body); status != c.want {
			t.Errorf("%s: %d, want %d", reason, status, c.want)
		}
	}
	if status, problem := call("GET", scimBase+"/Users", x.token("alice", credential.ScopeCatalogWrite), "", ""); status != http.StatusForbidden {
		t.Errorf("another person reads the source: %d %v", status, problem)
	}

	status, made := call("POST", scimBase+"/Users", security, scimMedia, newcomer)
	if location := made["meta"].(map[string]any)["location"]; status != http.StatusCreated || location != x.base+scimBase+"/Users/newcomer" {
		t.Fatalf("%d %v", status, made)
	}
	if a := x.as("newcomer").Get("/api/v1/me"); a.Status != http.StatusOK || !strings.Contains(string(a.Body), "New Comer") {
		t.Errorf("the person cannot log in: %d %s", a.Status, a.Body)
	}
	if a := x.as("dave").Get("/api/v1/catalog/sources"); !strings.Contains(string(a.Body), `"kind":"scim"`) {
		t.Errorf("the sources are %s", a.Body)
	}
	browser := x.as("newcomer")
	if status, _ := call("DELETE", scimBase+"/Users/newcomer", security, "", ""); status != http.StatusNoContent {
		t.Fatalf("removed: %d", status)
	}
	if a := browser.Get("/api/v1/me"); a.Status != http.StatusUnauthorized {
		t.Errorf("a person who was removed has a session: %d %s", a.Status, a.Body)
	}
}

// TestProvisioningOfUserPrincipalNames checks that a person whose userName is an address has exactly the rights of that userName: a login with
// the same name has them, and a login with another one that resembles it does not.
func TestProvisioningOfUserPrincipalNames(t *testing.T) {
	x := newSite(t)
	provision := func(path, body string) {
		t.Helper()
		a := x.as("").Raw("POST", scimBase+path, strings.NewReader(body),
			http.Header{"Authorization": {"Bearer " + x.token("dave", credential.ScopeCatalogWrite)}, "Content-Type": {scimMedia}})
		if a.Status != http.StatusCreated {
			t.Fatalf("%s: %d %s", path, a.Status, a.Body)
		}
	}
	provision("/Users", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"alice@corp.example","displayName":"Alice of Corp"}`)
	provision("/Users", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"alice@example.com","displayName":"Alice of Example"}`)
	for login, want := range map[string]string{"alice@corp.example": "Alice of Corp", "alice@example.com": "Alice of Example", "alice": `"id":"alice"`} {
		if a := x.as(login).Get("/api/v1/me"); a.Status != http.StatusOK || !strings.Contains(string(a.Body), want) {
			t.Errorf("%q is not %s: %d %s", login, want, a.Status, a.Body)
		}
	}
	for _, login := range []string{"alice_corp.example", "Alice@corp.example", "alice@corp.example.", "alice@", "alice@CORP.example"} {
		b := portaltest.NewBrowser(t, x.base)
		if to := b.Login(x.provider, "/", login); to != "/login?error=unknown-person" {
			t.Errorf("%q logs in: %s", login, to)
		}
		if a := b.Get("/api/v1/me"); a.Status != http.StatusUnauthorized {
			t.Errorf("%q has a session: %d %s", login, a.Status, a.Body)
		}
	}
	dave := x.as("dave")
	if a := dave.Get("/api/v1/people/alice@corp.example"); a.Status != http.StatusOK || !strings.Contains(string(a.Body), "Alice of Corp") {
		t.Errorf("the page of the person: %d %s", a.Status, a.Body)
	}
}
