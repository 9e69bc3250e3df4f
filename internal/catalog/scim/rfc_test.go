package scim_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/catalog"
)

// The JSON texts of this file and of testdata/rfc*.json are the examples of RFC 7643 (section 8) and RFC 7644 (section 3). A row says in
// which way a text was changed, and where ACP differs from the example. The differences are described in docs/catalog.md.

const (
	bjensen = "2819c223-7f76-453a-919d-413861904646" // ids of the examples
	mandy   = "902c246b-6245-4190-8e05-00816be7344a"
	smith   = "08e1d05d-121c-4561-8b96-473d93df9210"
)

// example returns a text of testdata.
func example(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// exchange is a request of an example with the expected response.
type exchange struct {
	name    string
	says    string // how ACP differs from the example, or what was changed in its text
	method  string
	path    string
	header  http.Header
	body    string
	status  int
	want    string // JSON that the body contains: objects may have more fields, arrays may not have more values
	without []string
	check   func(t *testing.T, h http.Header)
}

// contains reports whether decoded JSON has all fields and values of the wanted JSON. Objects may have more fields, arrays may not have more values.
func contains(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			return false
		}
		for k, v := range want {
			if !contains(got[k], v) {
				return false
			}
		}
		return true
	case []any:
		got, ok := got.([]any)
		return ok && slices.EqualFunc(got, want, contains)
	}
	return cmp.Equal(got, want)
}

func (s *server) run(t *testing.T, x exchange) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), x.method, "/v2"+x.path, strings.NewReader(x.body))
	maps.Copy(r.Header, x.header)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != x.status {
		t.Fatalf("%s %s: status %d, want %d: %s", x.method, x.path, w.Code, x.status, w.Body)
	}
	if x.check != nil {
		x.check(t, w.Header())
	}
	if x.want == "" {
		return
	}
	var got, want any
	if err := json.Unmarshal([]byte(x.want), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	if !contains(got, want) {
		t.Errorf("%s %s:\n%s\ndoes not contain\n%s", x.method, x.path, w.Body, x.want)
	}
	for _, name := range x.without {
		if _, has := got.(map[string]any)[name]; has {
			t.Errorf("%s %s: the response has %s: %s", x.method, x.path, name, w.Body)
		}
	}
}

// TestResourcesOfRFC7643 creates the resources of section 8 of RFC 7643.
func TestResourcesOfRFC7643(t *testing.T) {
	const minimal = `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"id":"2819c223-7f76-453a-919d-413861904646",
		"userName":"bjensen@example.com","meta":{"resourceType":"User","created":"2010-01-23T04:56:22Z","lastModified":"2011-05-13T04:42:34Z",
		"version":"W\/\"3694e05e9dff590\"","location":"https://example.com/v2/Users/2819c223-7f76-453a-919d-413861904646"}}`
	const group = `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"id":"e9e30dba-f08f-4109-8486-d5c6a331660a","displayName":"Tour Guides",
		"members":[{"value":"2819c223-7f76-453a-919d-413861904646",
		"$ref":"https://example.com/v2/Users/2819c223-7f76-453a-919d-413861904646","display":"Babs Jensen"},
		{"value":"902c246b-6245-4190-8e05-00816be7344a",
		"$ref":"https://example.com/v2/Users/902c246b-6245-4190-8e05-00816be7344a","display":"Mandy Pepperidge"}],
		"meta":{"resourceType":"Group","created":"2010-01-23T04:56:22Z","lastModified":"2011-05-13T04:42:34Z",
		"version":"W\/\"3694e05e9dff592\"","location":"https://example.com/v2/Groups/e9e30dba-f08f-4109-8486-d5c6a331660a"}}`
	stored := `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User","urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],
		"id":"bjensen@example.com","externalId":"701984","userName":"bjensen@example.com","displayName":"Babs Jensen",
		"title":"Tour Guide","active":true,"emails":[{"value":"bjensen@example.com","type":"work","primary":true}],
		"meta":{"resourceType":"User","location":"https://acp.example.com/scim/v2/Users/bjensen@example.com"}}`
	notStored := []string{"password", "groups", "nickName", "profileUrl", "addresses", "phoneNumbers", "ims", "photos", "userType",
		"preferredLanguage", "locale", "timezone", "x509Certificates"}
	for _, x := range []exchange{
		{
			name: "8.1", says: "id and meta of a client are ignored, because they are read-only (section 3.1)",
			method: "POST", path: "/Users", body: minimal, status: 201,
			want: `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User","urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],
				"id":"bjensen@example.com","userName":"bjensen@example.com",
				"meta":{"resourceType":"User","location":"https://acp.example.com/scim/v2/Users/bjensen@example.com"}}`,
		},
		{
			name: "8.2", says: "other attributes are accepted and not stored", method: "POST", path: "/Users", body: example(t, "rfc7643-8.2.json"),
			status: 201, want: stored, without: notStored,
		},
		{
			name: "8.3", says: "of the enterprise extension only the manager is stored", method: "POST", path: "/Users",
			body: example(t, "rfc7643-8.3.json"), status: 201, without: notStored,
			want: `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User","urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],
				"id":"bjensen@example.com",
				"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"manager":{"value":"26118915-6090-4610-87e4-49d8ca9f808d",
				"$ref":"https://acp.example.com/scim/v2/Users/26118915-6090-4610-87e4-49d8ca9f808d"}}}`,
		},
		{
			name: "8.4", says: "the id of a group is made of its displayName", method: "POST", path: "/Groups", body: group, status: 201,
			want: `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"id":"Tour-Guides","displayName":"Tour Guides",
				"members":[{"value":"2819c223-7f76-453a-919d-413861904646"},{"value":"902c246b-6245-4190-8e05-00816be7344a"}],
				"meta":{"resourceType":"Group","location":"https://acp.example.com/scim/v2/Groups/Tour-Guides"}}`,
		},
		{
			name: "8.5", says: "neither bulk requests, sorting nor changes of passwords; the identity provider has the passwords", method: "GET",
			path: "/ServiceProviderConfig", status: 200,
			want: `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"],"patch":{"supported":true},"bulk":{"supported":false},
				"filter":{"supported":true,"maxResults":200},"changePassword":{"supported":false},"sort":{"supported":false}}`,
		},
		{
			name: "8.6 user", method: "GET", path: "/ResourceTypes/User", status: 200,
			want: `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:ResourceType"],"id":"User","name":"User","endpoint":"/Users",
				"schema":"urn:ietf:params:scim:schemas:core:2.0:User",
				"schemaExtensions":[{"schema":"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User","required":false}]}`,
		},
		{
			name: "8.6 group", method: "GET", path: "/ResourceTypes/Group", status: 200,
			want: `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:ResourceType"],"id":"Group","name":"Group","endpoint":"/Groups",
				"schema":"urn:ietf:params:scim:schemas:core:2.0:Group"}`,
		},
		{
			name: "8.7.1 user", method: "GET", path: "/Schemas/urn:ietf:params:scim:schemas:core:2.0:User", status: 200,
			want: `{"id":"urn:ietf:params:scim:schemas:core:2.0:User","name":"User"}`,
		},
		{
			name: "8.7.1 group", method: "GET", path: "/Schemas/urn:ietf:params:scim:schemas:core:2.0:Group", status: 200,
			want: `{"id":"urn:ietf:params:scim:schemas:core:2.0:Group","name":"Group"}`,
		},
		{
			name: "8.7.1 enterprise", method: "GET", path: "/Schemas/urn:ietf:params:scim:schemas:extension:enterprise:2.0:User", status: 200,
			want: `{"id":"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"}`,
		},
	} {
		t.Run(x.name, func(t *testing.T) { newServer(t).run(t, x) })
	}
}

// TestRequestsOfRFC7644 sends the requests of section 3 of RFC 7644 in the order of the sections to one service.
func TestRequestsOfRFC7644(t *testing.T) {
	s := newServer(t)
	for _, id := range []string{bjensen, mandy, smith} {
		s.call(http.StatusCreated, http.MethodPost, "/Users", `{`+userSchema+`,"userName":"`+id+`"}`)
	}
	s.call(http.StatusCreated, http.MethodPost, "/Groups", `{`+groupSchema+`,"displayName":"guides","members":[{"value":"`+mandy+`"}]}`)
	has := func(name, part string) func(*testing.T, http.Header) {
		return func(t *testing.T, h http.Header) {
			t.Helper()
			if got := h.Get(name); !strings.Contains(got, part) {
				t.Errorf("%s: %q, want %q", name, got, part)
			}
		}
	}
	const created = `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"bjensen","externalId":"bjensen",
		"name":{"formatted":"Ms. Barbara J Jensen III","familyName":"Jensen","givenName":"Barbara"}}`
	const patchOp = `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[`
	member := func(id string) string { return `{"value":"` + id + `","type":"User"}` }
	steps := []exchange{
		{
			name: "3.3 create", says: "of the name only its formatted text is stored; schemas always names the extension", method: "POST",
			path: "/Users", body: created, status: 201,
			want: `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User","urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],
				"id":"bjensen","externalId":"bjensen","userName":"bjensen","name":{"formatted":"Ms. Barbara J Jensen III"},
				"meta":{"resourceType":"User","location":"https://acp.example.com/scim/v2/Users/bjensen"}}`,
			check: has("Location", "https://acp.example.com/scim/v2/Users/bjensen"),
		},
		{
			name: "3.3 create again", method: "POST", path: "/Users", body: created, status: 409,
			want: `{"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],"scimType":"uniqueness","status":"409"}`,
		},
		{
			name:   "3.4.1 known resource",
			method: "GET",
			path:   "/Users/bjensen",
			status: 200,
			want:   `{"id":"bjensen","externalId":"bjensen"}`,
			check:  has("ETag", `W/"`),
		},
		{
			name: "3.4.2 partial attributes", says: "the parameter attributes is ignored: all attributes are returned", method: "GET",
			path: "/Users?attributes=userName&filter=" + url.QueryEscape(`userName eq "bjensen"`), status: 200,
			want: `{"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],"totalResults":1,"Resources":[{"id":"bjensen","userName":"bjensen",
				"externalId":"bjensen"}]}`,
		},
		{
			name: "3.4.2.4 pages", method: "GET", path: "/Users?startIndex=1&count=2", status: 200,
			want: `{"totalResults":4,"itemsPerPage":2,"startIndex":1,"Resources":[{"id":"` + smith + `"},{"id":"` + bjensen + `"}]}`,
		},
		{
			name: "3.4.3 search", says: "at the resource type, and not at the root of the service", method: "POST", path: "/Users/.search", status: 200,
			body: `{"schemas":["urn:ietf:params:scim:api:messages:2.0:SearchRequest"],"attributes":["displayName","userName"],
				"filter":"displayName sw \"ms. barb\"","startIndex":1,"count":10}`,
			want: `{"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],"totalResults":1,"startIndex":1,"Resources":[{"id":"bjensen"}]}`,
		},
		{
			name: "3.4.3 search at the root", method: "POST", path: "/.search", status: 400,
			body: `{"schemas":["urn:ietf:params:scim:api:messages:2.0:SearchRequest"],"attributes":["displayName","userName"],
				"filter":"displayName sw \"smith\"","startIndex":1,"count":10}`,
			want: `{"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],"scimType":"tooMany","status":"400"}`,
		},
		{
			name: "3.5.1 replace", says: "only one address is stored: the primary or the first one", method: "PUT", path: "/Users/bjensen", status: 200,
			body: `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"id":"2819c223-7f76-453a-919d-413861904646","userName":"bjensen",
				"externalId":"bjensen","name":{"formatted":"Ms. Barbara J Jensen III","familyName":"Jensen","givenName":"Barbara","middleName":"Jane"},
				"roles":[],"emails":[{"value":"bjensen@example.com"},{"value":"babs@jensen.org"}]}`,
			want: `{"id":"bjensen","externalId":"bjensen","emails":[{"value":"bjensen@example.com","type":"work","primary":true}]}`,
		},
		{
			name: "3.5.1 replace what does not exist", method: "PUT", path: "/Users/none", body: created, status: 404,
			want: `{"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],"detail":"Resource none not found.","status":"404"}`,
		},
		{
			name: "3.5.2.1 add a member", method: "PATCH", path: "/Groups/guides", status: 200,
			body: patchOp + `{"op":"add","path":"members","value":[{"display":"Babs Jensen",
				"$ref":"https://example.com/v2/Users/2819c223...413861904646","value":"2819c223-7f76-453a-919d-413861904646"}]}]}`,
			want: `{"members":[` + member(bjensen) + `,` + member(mandy) + `]}`,
		},
		{
			name: "3.5.2.1 add an address", says: "the primary one stays", method: "PATCH", path: "/Users/bjensen", status: 200,
			body: patchOp + `{"op":"add","value":{"emails":[{"value":"babs@jensen.org","type":"home"}],"nickname":"Babs"}}]}`,
			want: `{"emails":[{"value":"bjensen@example.com","type":"work","primary":true}]}`, without: []string{"nickname", "nickName"},
		},
		{
			name: "3.5.2.2 remove a member", says: "the example shortens the id", method: "PATCH", path: "/Groups/guides", status: 200,
			body: patchOp + `{"op":"remove","path":"members[value eq \"2819c223-7f76-453a-919d-413861904646\"]"}]}`,
			want: `{"members":[` + member(mandy) + `]}`,
		},
		{
			name: "3.5.2.2 remove all members", method: "PATCH", path: "/Groups/guides", status: 200, without: []string{"members"},
			body: patchOp + `{"op":"remove","path":"members"}]}`, want: `{"displayName":"guides"}`,
		},
		{
			name: "3.5.2.2 remove an address", method: "PATCH", path: "/Users/bjensen", status: 200, without: []string{"emails"},
			body: patchOp + `{"op":"remove","path":"emails[type eq \"work\" and value ew \"example.com\"]"}]}`, want: `{"id":"bjensen"}`,
		},
		{
			name: "3.5.2.3 replace all addresses", method: "PATCH", path: "/Users/bjensen", status: 200,
			body: patchOp + `{"op":"replace","value":{"emails":[{"value":"bjensen@example.com","type":"work","primary":true},
				{"value":"babs@jensen.org","type":"home"}],"nickname":"Babs"}}]}`,
			want: `{"emails":[{"value":"bjensen@example.com","type":"work","primary":true}]}`,
		},
		{
			name: "3.5.2.3 replace all members", says: "the example shortens addresses of $ref", method: "PATCH", path: "/Groups/guides", status: 200,
			body: patchOp + `{"op":"remove","path":"members"},{"op":"add","path":"members","value":[
				{"display":"Babs Jensen","$ref":"https://example.com/v2/Users/2819c223...413861904646","value":"2819c223-7f76-453a-919d-413861904646"},
				{"display":"James Smith","$ref":"https://example.com/v2/Users/08e1d05d...473d93df9210","value":"08e1d05d-121c-4561-8b96-473d93df9210"}]}]}`,
			want: `{"members":[` + member(smith) + `,` + member(bjensen) + `]}`,
		},
		{
			name: "3.5.2.2 remove and add a member", says: "the example shortens the ids, and has no space after eq", method: "PATCH", path: "/Groups/guides",
			status: 200,
			body: patchOp + `{"op":"remove","path":"members[value eq \"2819c223-7f76-453a-919d-413861904646\"]"},
				{"op":"add","path":"members","value":[{"display":"James Smith","$ref":"https://example.com/v2/Users/08e1d05d...473d93df9210",
				"value":"08e1d05d-121c-4561-8b96-473d93df9210"}]}]}`,
			want: `{"members":[` + member(smith) + `]}`,
		},
		{
			name: "3.5.2.3 replace the work address", says: "addresses are not stored", method: "PATCH", path: "/Users/bjensen", status: 200,
			body: patchOp + `{"op":"replace","path":"addresses[type eq \"work\"]","value":{"type":"work","streetAddress":"911 Universal City Plaza",
				"locality":"Hollywood","region":"CA","postalCode":"91608","country":"US",
				"formatted":"911 Universal City Plaza\nHollywood, CA 91608 US","primary":true}}]}`,
			want: `{"id":"bjensen"}`, without: []string{"addresses"},
		},
		{
			name: "3.5.2.3 replace the street", says: "addresses are not stored", method: "PATCH", path: "/Users/bjensen", status: 200,
			body: patchOp + `{"op":"replace","path":"addresses[type eq \"work\"].streetAddress","value":"1010 Broadway Ave"}]}`,
			want: `{"id":"bjensen"}`, without: []string{"addresses"},
		},
		{
			name: "3.5.2 what is not stored does not prevent the rest", method: "PATCH", path: "/Users/bjensen", status: 200,
			body: patchOp + `{"op":"replace","path":"phoneNumbers[type eq \"work\"]","value":{"type":"work","value":"1"}},
				{"op":"replace","path":"active","value":false}]}`,
			want: `{"active":false}`,
		},
		{
			name: "3.5.2.3 no target", says: "of what is stored", method: "PATCH", path: "/Users/bjensen", status: 400,
			body: patchOp + `{"op":"replace","path":"emails[type eq \"home\"]","value":{"type":"home","value":"a@b.c"}}]}`,
			want: `{"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],"scimType":"noTarget","status":"400"}`,
		},
		{
			name: "3.6 delete another version", method: "DELETE", path: "/Users/bjensen", header: http.Header{"If-Match": {`W/"c310cd84f0671b7"`}}, status: 412,
			want: `{"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],"status":"412"}`,
		},
		{name: "3.6 delete", method: "DELETE", path: "/Users/bjensen", status: 204},
		{
			name: "3.6 after the deletion", says: "the id is that of ACP", method: "GET", path: "/Users/bjensen", status: 404,
			want: `{"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],"detail":"Resource bjensen not found.","status":"404"}`,
		},
		{
			name: "3.7 bulk", says: "bulk requests are not supported, as /ServiceProviderConfig says", method: "POST", path: "/Bulk", status: 501,
			body: `{"schemas":["urn:ietf:params:scim:api:messages:2.0:BulkRequest"],"failOnErrors":1,"Operations":[{"method":"POST","path":"/Users",
				"bulkId":"qwerty","data":{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"Alice"}},
				{"method":"DELETE","path":"/Users/902c246b-6245-4190-8e05-00816be7344a"}]}`,
			want: `{"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],"status":"501"}`,
		},
		{name: "3.7 bulk deleted nothing", method: "GET", path: "/Users/" + mandy, status: 200, want: `{"id":"` + mandy + `"}`},
		{
			name: "3.11 me", method: "GET", path: "/Me", status: 501,
			want: `{"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],"status":"501"}`,
		},
		{
			name: "3.12 the id is read-only", says: "a path that the schema does not have", method: "PATCH", path: "/Users/" + mandy, status: 400,
			body: patchOp + `{"op":"replace","path":"id","value":"x"}]}`,
			want: `{"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],"status":"400"}`,
		},
		{
			name:   "3.12 invalid syntax",
			method: "POST",
			path:   "/Users",
			body:   `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":`,
			status: 400,
			want:   `{"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],"scimType":"invalidSyntax","status":"400"}`,
		},
		{
			name: "3.14 not modified", says: "If-None-Match is ignored", method: "GET", path: "/Users/" + mandy, header: http.Header{"If-None-Match": {"*"}},
			status: 200, want: `{"id":"` + mandy + `"}`,
		},
	}
	for _, x := range steps {
		t.Run(x.name, func(t *testing.T) { s.run(t, x) })
	}
	if g, ok := s.directory.Provisioned(catalog.Ref{Kind: catalog.KindGroup, ID: "guides"}); !ok || !slices.Equal(g.Members, []string{smith}) {
		t.Errorf("the group is %+v", g.Record)
	}
}

// TestFiltersOfRFC7644 selects with the filters of section 3.4.2.2 of RFC 7644.
func TestFiltersOfRFC7644(t *testing.T) {
	s := newServer(t)
	for _, body := range []string{
		`{` + userSchema + `,"userName":"bjensen","displayName":"Babs Jensen","title":"Tour Guide","userType":"Employee",
			"emails":[{"type":"work","value":"bjensen@example.com"}]}`,
		`{` + userSchema + `,"userName":"jsmith","displayName":"James Smith","emails":[{"type":"work","value":"jsmith@foo.com"}]}`,
		`{` + userSchema + `,"userName":"john","displayName":"John O'Malley","title":"Driver"}`,
	} {
		s.call(http.StatusCreated, http.MethodPost, "/Users", body)
	}
	for _, c := range []struct{ filter, says, want string }{
		{`userName Eq "john"`, "", "john"},
		{`Username eq "john"`, "", "john"},
		{`userName eq "bjensen"`, "", "bjensen"},
		{`name.familyName co "O'Malley"`, "of the name only the formatted text is stored", ""},
		{`name.formatted co "O'Malley"`, "the formatted text is stored", "john"},
		{`userName sw "J"`, "", "john jsmith"},
		{`urn:ietf:params:scim:schemas:core:2.0:User:userName sw "J"`, "", "john jsmith"},
		{`title pr`, "", "bjensen john"},
		{`title pr and userType eq "Employee"`, "userType is not stored", ""},
		{`title pr or userType eq "Intern"`, "userType is not stored", "bjensen john"},
		{`userType ne "Employee" and not (emails co "example.com" or emails.value co "example.org")`,
			"userType is not stored", ""},
		{`emails[type eq "work" and value co "@example.com"]`, "", "bjensen"},
		{`meta.lastModified gt "2011-05-13T04:42:34Z"`, "dates of changes are not stored", ""},
		{`schemas eq "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"`, "schemas are not compared", ""},
		{`emails[type eq "work" and value co "@example.com"] or ims[type eq "xmpp" and value co "@foo.com"]`, "ims are not stored", "bjensen"},
	} {
		t.Run(c.filter, func(t *testing.T) {
			x := *s
			x.TB = t
			ids, _ := x.ids("/Users?filter=" + url.QueryEscape(c.filter))
			if got := strings.Join(ids, " "); got != c.want {
				t.Errorf("%q, want %q (%s)", got, c.want, c.says)
			}
		})
	}
}
