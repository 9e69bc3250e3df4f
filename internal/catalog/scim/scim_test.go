package scim_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/catalog/gormstore"
	"github.com/acp-io/acp/internal/catalog/scim"
	"github.com/acp-io/acp/internal/database/databasetest"
)

const (
	userSchema  = `"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"]`
	groupSchema = `"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"]`
	patchSchema = `"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"]`
	enterprise  = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
)

// server is a SCIM service of a real catalog, which the security administrator dave calls.
type server struct {
	testing.TB
	http.Handler
	directory *catalog.Service
	now       time.Time
	etag      string // of the next request; see ifMatch
}

func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{TB: t, now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}
	var err error
	s.directory, err = catalog.NewService(t.Context(), catalog.Config{
		Store: gormstore.New(databasetest.Open(t, databasetest.SQLite(t))),
		Now:   func() time.Time { return s.now }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	dave := catalog.Actor{ID: "dave", Security: true}
	for _, rec := range []catalog.Record{
		{Kind: catalog.KindGroup, ID: "security"},
		{Kind: catalog.KindPerson, ID: "dave", Groups: []string{"security"}},
		{Kind: catalog.KindPerson, ID: "bob", Title: "Bob of the portal"},
	} {
		if _, err := s.directory.Put(t.Context(), dave, rec, 0); err != nil {
			t.Fatal(err)
		}
	}
	s.Handler, err = scim.New(scim.Config{Directory: s.directory, BaseURL: "https://acp.example.com/scim/v2", Log: slog.New(slog.DiscardHandler),
		Actor: func(*http.Request) catalog.Actor { return dave }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// call sends a request and returns the response, whose status must be as wanted.
func (s *server) call(want int, method, path, body string) map[string]any {
	s.Helper()
	r := httptest.NewRequestWithContext(s.Context(), method, "/v2"+path, strings.NewReader(body))
	if s.etag != "" {
		r.Header.Set("If-Match", s.etag)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != want {
		s.Fatalf("%s %s %s: status %d, want %d: %s", method, path, body, w.Code, want, w.Body)
	}
	if w.Body.Len() == 0 {
		return nil
	}
	if kind := w.Header().Get("Content-Type"); kind != "application/scim+json" {
		s.Errorf("%s %s: content type %q", method, path, kind)
	}
	var out map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		s.Fatalf("%s %s: %v in %s", method, path, err, w.Body)
	}
	return out
}

func (s *server) patch(want int, path, operations string) map[string]any {
	s.Helper()
	return s.call(want, http.MethodPatch, path, `{`+patchSchema+`,"Operations":[`+operations+`]}`)
}

// ids returns the ids of a list, and its total.
func (s *server) ids(path string) (ids []string, total float64) {
	s.Helper()
	list := s.call(http.StatusOK, http.MethodGet, path, "")
	resources, _ := list["Resources"].([]any)
	for _, r := range resources {
		ids = append(ids, r.(map[string]any)["id"].(string))
	}
	return ids, list["totalResults"].(float64)
}

// TestUsers checks the life of a user, with the requests that Entra ID and Okta send.
func TestUsers(t *testing.T) {
	s := newServer(t)
	made := s.call(http.StatusCreated, http.MethodPost, "/Users", `{`+userSchema+`,"externalId":"0a21","userName":"zoe","active":true,
		"emails":[{"primary":false,"value":"z@home.example"},{"primary":true,"type":"work","value":"zoe@corp.example"}],"meta":{"resourceType":"User"},
		"name":{"formatted":"Zoe Young","familyName":"Young","givenName":"Zoe"},"title":"Engineer","roles":[],
		"`+enterprise+`":{"manager":{"value":"bob"}}}`)
	delete(made, "meta")
	want := map[string]any{
		"schemas": []any{"urn:ietf:params:scim:schemas:core:2.0:User", enterprise}, "id": "zoe", "externalId": "0a21", "userName": "zoe",
		"displayName": "Zoe Young", "name": map[string]any{"formatted": "Zoe Young"}, "active": true, "title": "Engineer",
		"emails":   []any{map[string]any{"value": "zoe@corp.example", "type": "work", "primary": true}},
		enterprise: map[string]any{"manager": map[string]any{"value": "bob", "$ref": "https://acp.example.com/scim/v2/Users/bob"}},
	}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("created user, -want +got:\n%s", diff)
	}
	if p, ok := s.directory.Catalog().Person("zoe"); !ok || p.DisplayName != "Zoe Young" || p.Email != "zoe@corp.example" || p.Leader != "bob" {
		t.Errorf("the catalog has %+v", p)
	}

	// Entra ID sets an address of a type, and attributes of name and manager.
	s.patch(http.StatusOK, "/Users/zoe", `{"op":"Replace","path":"emails[type eq \"work\"].value","value":"zy@corp.example"},
		{"op":"Add","path":"name.familyName","value":"Y"},
		{"op":"Replace","path":"`+enterprise+`:manager","value":{"value":"eve"}},{"op":"Remove","path":"title"}`)
	if x, _ := s.directory.Provisioned(catalog.Ref{Kind: catalog.KindPerson, ID: "zoe"}); x.Email != "zy@corp.example" || x.Leader != "eve" ||
		x.JobTitle != "" || x.Title != "Zoe Young" || x.ExternalID != "0a21" {
		t.Errorf("after the patch: %+v", x.Record)
	}
	// Okta deactivates without a path.
	if off := s.patch(http.StatusOK, "/Users/zoe", `{"op":"replace","value":{"active":false}}`); off["active"] != false {
		t.Errorf("deactivated: %v", off)
	}
	if _, ok := s.directory.Catalog().Person("zoe"); ok {
		t.Error("a deactivated person must have no rights")
	}
	if on := s.patch(http.StatusOK, "/Users/zoe", `{"op":"replace","path":"active","value":true}`); on["active"] != true {
		t.Errorf("activated: %v", on)
	}
	s.call(http.StatusOK, http.MethodPut, "/Users/zoe", `{`+userSchema+`,"userName":"zoe","displayName":"Z"}`)
	if x, _ := s.directory.Provisioned(
		catalog.Ref{Kind: catalog.KindPerson, ID: "zoe"},
	); x.Title != "Z" || x.Email != "" || x.Leader != "" ||
		x.ExternalID != "" {
		t.Errorf("a replacement keeps nothing: %+v", x.Record)
	}
	s.call(http.StatusNoContent, http.MethodDelete, "/Users/zoe", "")
	s.call(http.StatusNotFound, http.MethodGet, "/Users/zoe", "")
	s.patch(http.StatusNotFound, "/Users/zoe", `{"op":"replace","value":{"active":true}}`)
	if gone := s.directory.GoneEntities(); len(gone) != 1 || gone[0].ID != "zoe" {
		t.Errorf("gone: %v", gone)
	}
	s.call(http.StatusCreated, http.MethodPost, "/Users", `{`+userSchema+`,"userName":"zoe","active":false}`)
	s.call(http.StatusConflict, http.MethodPost, "/Users", `{`+userSchema+`,"userName":"zoe"}`)
}

// TestGroups checks the life of a group.
func TestGroups(t *testing.T) {
	s := newServer(t)
	s.call(http.StatusCreated, http.MethodPost, "/Users", `{`+userSchema+`,"userName":"zoe","displayName":"Zoe"}`)
	made := s.call(http.StatusCreated, http.MethodPost, "/Groups", `{`+groupSchema+`,"displayName":"Storage & Caches (EU)","externalId":"g1"}`)
	if made["id"] != "Storage-Caches-EU" || made["displayName"] != "Storage & Caches (EU)" {
		t.Errorf("created group: %v", made)
	}
	const path = "/Groups/Storage-Caches-EU"
	members := func(want ...any) {
		t.Helper()
		list, _ := s.call(http.StatusOK, http.MethodGet, path, "")["members"].([]any)
		var got []any
		for _, m := range list {
			got = append(got, m.(map[string]any)["value"])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("members, -want +got:\n%s", diff)
		}
	}
	s.patch(http.StatusOK, path, `{"op":"Add","path":"members","value":[{"$ref":null,"value":"zoe"}]},
		{"op":"add","path":"members","value":[{"value":"bob"},{"value":"zoe"}]}`)
	members("bob", "zoe")
	if !s.directory.Catalog().InGroup("zoe", "Storage-Caches-EU") {
		t.Error("the catalog does not have the member")
	}
	s.patch(http.StatusOK, path, `{"op":"remove","path":"members[value eq \"bob\"]"}`)
	members("zoe")
	s.patch(http.StatusOK, path, `{"op":"Remove","path":"members","value":[{"value":"zoe"}]},{"op":"replace","value":{"displayName":"Storage"}}`)
	members()
	s.patch(http.StatusOK, path, `{"op":"replace","path":"members","value":[{"value":"zoe"},{"value":"bob"}]}`)
	s.patch(http.StatusOK, path, `{"op":"remove","path":"members"}`)
	members()
	if g := s.call(http.StatusOK, http.MethodGet, path, ""); g["displayName"] != "Storage" || g["externalId"] != "g1" {
		t.Errorf("renamed group: %v", g)
	}
	s.call(http.StatusNoContent, http.MethodDelete, path, "")
	s.call(http.StatusNotFound, http.MethodGet, path, "")
}

// TestRefusals checks what a client may not do, and that nothing is changed then.
func TestRefusals(t *testing.T) {
	s := newServer(t)
	s.call(http.StatusCreated, http.MethodPost, "/Users", `{`+userSchema+`,"userName":"zoe"}`)
	s.call(http.StatusCreated, http.MethodPost, "/Groups", `{`+groupSchema+`,"displayName":"storage"}`)
	revision := s.directory.Revision()
	for name, c := range map[string]struct {
		want               int
		method, path, body string
		says               string
	}{
		"OfAnotherSource": {404, "GET", "/Users/bob", "", "bob"},
		"TakenByPortal":   {409, "POST", "/Users", `{` + userSchema + `,"userName":"bob"}`, "portal"},
		"OtherCase":       {409, "POST", "/Users", `{` + userSchema + `,"userName":"ZOE"}`, "in use"},
		"NoName":          {400, "POST", "/Users", `{` + userSchema + `}`, ""},
		"TwoDomains":      {400, "POST", "/Users", `{` + userSchema + `,"userName":"zoe@corp.example@example.com"}`, "alice@corp.example"},
		"Guest":           {400, "POST", "/Users", `{` + userSchema + `,"userName":"zoe_partner.example#EXT#@corp.example"}`, "alice@corp.example"},
		"Renamed":         {400, "PUT", "/Users/zoe", `{` + userSchema + `,"userName":"zed"}`, "cannot be changed"},
		"RenamedByPatch": {400, "PATCH", "/Users/zoe", `{` + patchSchema + `,"Operations":[{"op":"replace","path":"userName","value":"zed"}]}`,
			"cannot be changed"},
		"OwnLeader": {400, "PUT", "/Users/zoe", `{` + userSchema + `,"userName":"zoe","` + enterprise + `":{"manager":{"value":"zoe"}}}`,
			"zoe"},
		"Nested":           {400, "PUT", "/Groups/storage", `{` + groupSchema + `,"displayName":"storage","members":[{"value":"x","type":"Group"}]}`, "nested"},
		"NamelessGroup":    {400, "POST", "/Groups", `{` + groupSchema + `,"displayName":"!!"}`, "letter"},
		"GroupOfThePortal": {409, "POST", "/Groups", `{` + groupSchema + `,"displayName":"security"}`, "portal"},
		"SelfGrant":        {403, "PUT", "/Groups/storage", `{` + groupSchema + `,"displayName":"storage","members":[{"value":"dave"}]}`, "storage"},
		"NotJSON":          {400, "POST", "/Users", `{`, ""},
		"NoOperations":     {400, "PATCH", "/Users/zoe", `{` + patchSchema + `,"Operations":[]}`, ""},
		"NoSchema":         {400, "PATCH", "/Users/zoe", `{"Operations":[{"op":"remove","path":"title"}]}`, ""},
		"UnknownPath":      {400, "PATCH", "/Users/zoe", `{` + patchSchema + `,"Operations":[{"op":"remove","path":"salary"}]}`, ""},
		"UnknownOperation": {400, "PATCH", "/Users/zoe", `{` + patchSchema + `,"Operations":[{"op":"steal","path":"title"}]}`, ""},
		"NoTarget": {400, "PATCH",
			"/Users/zoe", `{` + patchSchema + `,"Operations":[{"op":"replace","path":"emails[type eq \"home\"]","value":{"value":"a@b.c"}}]}`,
			"path"},
		"Filter":     {400, "GET", "/Users?filter=" + url.QueryEscape("userName is zoe"), "", ""},
		"LongFilter": {400, "GET", "/Users?filter=" + strings.Repeat("(", 2000), "", "filter"},
		"LongPath": {400, "PATCH", "/Users/zoe", `{` + patchSchema + `,"Operations":[{"op":"remove","path":"` + strings.Repeat("(", 2000) + `"}]}`,
			"filter"},
		"ManyOperations": {400, "PATCH", "/Users/zoe", `{` + patchSchema + `,"Operations":[` + strings.Repeat(`{"op":"remove","path":"title"},`, 1001) +
			`{"op":"remove","path":"title"}]}`, ""},
		"Method":   {404, "DELETE", "/Users", "", ""},
		"Endpoint": {404, "GET", "/Robots", "", ""},
		"Me":       {501, "GET", "/Me", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			x := *s
			x.TB = t
			got := x.call(c.want, c.method, c.path, c.body)
			detail, _ := got["detail"].(string)
			if got["status"] != fmt.Sprint(c.want) || !strings.Contains(strings.ToLower(detail), strings.ToLower(c.says)) {
				t.Errorf("%v", got)
			}
			if s.directory.Revision() != revision {
				t.Error("the catalog was changed")
			}
		})
	}
}

// TestVersions checks that a change that was made from an older version is refused.
func TestVersions(t *testing.T) {
	s := newServer(t)
	made := s.call(http.StatusCreated, http.MethodPost, "/Users", `{`+userSchema+`,"userName":"zoe"}`)
	s.etag = made["meta"].(map[string]any)["version"].(string)
	s.patch(http.StatusOK, "/Users/zoe", `{"op":"replace","path":"title","value":"A"}`)
	s.patch(http.StatusPreconditionFailed, "/Users/zoe", `{"op":"replace","path":"title","value":"B"}`)
	s.call(http.StatusPreconditionFailed, http.MethodDelete, "/Users/zoe", "")
	s.etag = "*"
	s.patch(http.StatusOK, "/Users/zoe", `{"op":"replace","path":"title","value":"C"}`)
}

// TestLists checks filters and pages.
func TestLists(t *testing.T) {
	s := newServer(t)
	for i := range 5 {
		s.call(
			http.StatusCreated,
			http.MethodPost,
			"/Users",
			fmt.Sprintf(`{%s,"userName":"u%d","externalId":"X%d","active":%t,"title":"T%d"}`, userSchema, i, i, i != 3, i%2),
		)
	}
	for query, want := range map[string]struct {
		ids   string
		total float64
	}{
		"":                           {"u0 u1 u2 u3 u4", 5},
		"?startIndex=2&count=2":      {"u1 u2", 5},
		"?startIndex=5&count=9":      {"u4", 5},
		"?startIndex=6":              {"", 5},
		"?count=0":                   {"", 5},
		"?startIndex=0&count=1":      {"u0", 5},
		`?filter=userName eq "U1"`:   {"u1", 1},
		`?filter=externalId eq "X2"`: {"u2", 1},
		`?filter=externalId eq "x2"`: {"", 0},
		`?filter=active eq false`:    {"u3", 1},
		`?filter=title eq "T1"&startIndex=2&count=1`:      {"u3", 2},
		`?filter=userName sw "u" and not (title eq "T0")`: {"u1 u3", 2},
		`?filter=id eq "u4"`:                              {"u4", 1},
		`?filter=userName eq "bob"`:                       {"", 0},
	} {
		parts := strings.Split(strings.TrimPrefix(query, "?"), "&")
		values := url.Values{}
		for _, p := range parts {
			if name, v, ok := strings.Cut(p, "="); ok {
				values.Set(name, v)
			}
		}
		ids, total := s.ids("/Users?" + values.Encode())
		if got := strings.Join(ids, " "); got != want.ids || total != want.total {
			t.Errorf("%s: %q of %v, want %q of %v", query, got, total, want.ids, want.total)
		}
	}
	found := s.call(http.StatusOK, http.MethodPost, "/Users/.search",
		`{"schemas":["urn:ietf:params:scim:api:messages:2.0:SearchRequest"],"filter":"userName eq \"u2\""}`)
	if found["totalResults"] != 1.0 {
		t.Errorf("search: %v", found)
	}
	for _, path := range []string{"/ServiceProviderConfig", "/ResourceTypes", "/Schemas"} {
		s.call(http.StatusOK, http.MethodGet, path, "")
	}
}

// TestManyRemovalsAreRefused checks that a client that removes more than a tenth is stopped, and may go on an hour later.
func TestManyRemovalsAreRefused(t *testing.T) {
	s := newServer(t)
	const users = 60
	for i := range users {
		s.call(http.StatusCreated, http.MethodPost, "/Users", fmt.Sprintf(`{%s,"userName":"u%d"}`, userSchema, i))
	}
	for i := range 3 {
		s.call(http.StatusNoContent, http.MethodDelete, fmt.Sprintf("/Users/u%d", i), "")
		s.patch(http.StatusOK, fmt.Sprintf("/Users/u%d", 10+i), `{"op":"replace","path":"active","value":false}`)
	}
	refused := s.call(http.StatusConflict, http.MethodDelete, "/Users/u20", "")
	if detail, _ := refused["detail"].(string); !strings.Contains(detail, "6 of the entities") {
		t.Errorf("%v", refused)
	}
	s.patch(http.StatusConflict, "/Users/u21", `{"op":"replace","path":"active","value":false}`)
	s.patch(http.StatusOK, "/Users/u21", `{"op":"replace","path":"title","value":"A"}`)
	s.call(http.StatusNoContent, http.MethodDelete, "/Users/u10", "") // it is deactivated already
	s.now = s.now.Add(time.Hour)
	s.call(http.StatusNoContent, http.MethodDelete, "/Users/u20", "")
}

// FuzzRequests checks that no body and no filter makes the service fail or change what belongs to another source.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		`{` + userSchema + `,"userName":"zoe","active":"x"}`,
		`{` + patchSchema + `,"Operations":[{"op":"replace","path":"emails[type eq \"work\"].value","value":"a"}]}`,
		`{` + patchSchema + `,"Operations":[{"op":"add","value":{"emails":[{"value":"a"}],"name":{"formatted":"x"}}}]}`,
		`{` + patchSchema + `,"Operations":[{"op":"remove","path":"emails[not (value pr) or primary eq true]"}]}`,
		`{` + patchSchema + `,"Operations":[{"op":"add","path":"manager","value":["x"]},{"op":"replace","value":{"name.givenName":"x","manager":[]}}]}`,
		`{` + groupSchema + `,"displayName":"g","members":[{"value":"zoe"},{}]}`,
		`{` + patchSchema + `,"Operations":[{"op":"add","path":"members[value eq \"a\"].display","value":"b"}]}`,
	} {
		f.Add(seed, `userName eq "x" or title pr`)
	}
	s := newServer(f)
	s.call(http.StatusCreated, http.MethodPost, "/Users", `{`+userSchema+`,"userName":"zoe"}`)
	s.call(http.StatusCreated, http.MethodPost, "/Groups", `{`+groupSchema+`,"displayName":"storage"}`)
	f.Fuzz(func(t *testing.T, body, filter string) {
		for _, p := range []string{"/Users/zoe", "/Groups/storage", "/Users", "/Groups", "/Users?filter=" + url.QueryEscape(filter)} {
			for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch} {
				r := httptest.NewRequestWithContext(t.Context(), method, "/v2"+p, bytes.NewReader([]byte(body)))
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				if w.Code >= http.StatusInternalServerError {
					t.Fatalf("%s %s: %d %s", method, p, w.Code, w.Body)
				}
			}
		}
		if b, ok := s.directory.Catalog().Person("bob"); !ok || b.DisplayName != "Bob of the portal" {
			t.Fatalf("another source's person: %+v", b)
		}
	})
}

// TestGroupsWithRoles checks that a group has a role only by its exact name, although other characters in names of groups are replaced.
func TestGroupsWithRoles(t *testing.T) {
	s := newServer(t)
	for _, name := range []string{"auditors!", "(auditors)", " auditors", ".auditors"} {
		s.call(http.StatusBadRequest, http.MethodPost, "/Groups", fmt.Sprintf(`{%s,"displayName":%q}`, groupSchema, name))
	}
	s.call(http.StatusCreated, http.MethodPost, "/Groups", `{`+groupSchema+`,"displayName":"auditors"}`)
	s.call(http.StatusCreated, http.MethodPost, "/Groups", `{`+groupSchema+`,"displayName":"auditors (team)"}`)
}

// TestPatchOfVeryManyValues checks that the work of a patch grows with the number of its values, and not with its square: the largest body
// would otherwise keep a core busy for a quarter of an hour.
func TestPatchOfVeryManyValues(t *testing.T) {
	s := newServer(t)
	s.call(http.StatusCreated, http.MethodPost, "/Groups", `{`+groupSchema+`,"displayName":"many"}`)
	var members strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&members, `,{"value":"m%d"}`, i)
	}
	list := "[" + members.String()[1:] + "]"
	begun := time.Now()
	s.patch(http.StatusBadRequest, "/Groups/many", `{"op":"add","path":"members","value":`+list+`}`)
	s.patch(http.StatusOK, "/Groups/many", `{"op":"remove","path":"members","value":`+list+`}`)
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("60,000 values took %v", took)
	}
}
