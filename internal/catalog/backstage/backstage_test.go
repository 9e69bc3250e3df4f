package backstage_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/catalog/backstage"
)

// server answers like Backstage: filters on the first page, an opaque cursor after it.
type server struct {
	*httptest.Server
	token    string
	entities []map[string]any
	answer   func(w http.ResponseWriter, r *http.Request) bool // returns true if it has answered
	pages    int
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{token: "s3cret"}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	s.pages++
	q := r.URL.Query()
	switch {
	case s.answer != nil && s.answer(w, r):
		return
	case r.Header.Get("Authorization") != "Bearer "+s.token:
		w.WriteHeader(http.StatusUnauthorized)
		return
	case r.URL.Path != "/base/api/catalog/entities/by-query", !q.Has("cursor") && len(q["filter"]) != 4, q.Has("cursor") && q.Has("filter"):
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	from, _ := strconv.Atoi(q.Get("cursor"))
	limit, _ := strconv.Atoi(q.Get("limit"))
	to := min(from+limit, len(s.entities))
	out := map[string]any{"items": s.entities[from:to], "totalItems": len(s.entities), "pageInfo": map[string]any{}}
	if to < len(s.entities) {
		out["pageInfo"] = map[string]any{"nextCursor": strconv.Itoa(to)}
	}
	_ = json.NewEncoder(w).Encode(out)
}

func component(i int) map[string]any {
	return map[string]any{"kind": "Component", "metadata": map[string]any{
		"namespace": "default",
		"name":      fmt.Sprintf("app-%d", i),
		"annotations": map[string]any{
			"acp.io/resource-name": fmt.Sprintf("trnv1:rsc:a:iam:sa:app/%d", i),
		},
	}, "spec": map[string]any{"owner": "user:default/bob"}}
}

func source(t *testing.T, url, token string) *backstage.Source {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := backstage.New(backstage.Config{Name: "company", URL: url, TokenFile: file})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPages(t *testing.T) {
	s := newServer(t)
	for i := range 1201 {
		s.entities = append(s.entities, component(i))
	}
	s.entities = append(
		s.entities,
		map[string]any{
			"kind":     "User",
			"metadata": map[string]any{"name": "bob", "annotations": map[string]any{"acp.io/leader": "user:default/carol"}},
			"spec":     map[string]any{"memberOf": []string{"storage"}},
		},
		map[string]any{"kind": "Component", "metadata": map[string]any{"name": "no-name"}},
		map[string]any{
			"kind":     "Resource",
			"metadata": map[string]any{"name": "bad", "annotations": map[string]any{"acp.io/resource-name": "x"}},
			"spec":     map[string]any{"owner": "bob"},
		},
	)
	r, err := source(t, s.URL+"/base/", s.token).Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Records) != 1202 || s.pages != 3 {
		t.Errorf("got %d records in %d pages", len(r.Records), s.pages)
	}
	want := catalog.Record{Kind: catalog.KindPerson, ID: "bob", Title: "bob", Leader: "carol", Groups: []string{"storage"}, Where: "company, entity 1202"}
	if d := cmp.Diff(want, r.Records[1201]); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if len(r.Problems) != 1 || r.Problems[0].Ref != (catalog.Ref{Kind: catalog.KindResource, ID: "bad"}) {
		t.Errorf("one bad entity is a problem of its own: %v", r.Problems)
	}
}

func TestNothingIsHalfRead(t *testing.T) {
	write := func(text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool { _, _ = w.Write([]byte(text)); return true }
	}
	for name, tc := range map[string]struct {
		reason, token, want string
		answer              func(http.ResponseWriter, *http.Request) bool
	}{
		"token": {"says where the token is", "other", "401: check the token in", nil},
		"words": {"a header must not be broken", "two words", "is not one word", nil},
		"redirect": {"the token goes to one host only", "s3cret", "redirects", func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return true
		}},
		"failed": {"a failed page ends it", "s3cret", "answered 500", func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}},
		"no JSON": {"a login page is no catalog", "s3cret", "not what the catalog API", write("<html>")},
		"circle": {
			"a cursor that comes again ends it", "s3cret", "do not end",
			write(`{"items":[{"kind":"User","metadata":{"name":"a"}}],"totalItems":9,"pageInfo":{"nextCursor":"x"}}`),
		},
		"short": {"fewer than it says", "s3cret", "gave 1 of its 9", write(`{"items":[{"kind":"User","metadata":{"name":"a"}}],"totalItems":9,"pageInfo":{}}`)},
		"empty": {"a token that reads nothing must not make everything go", "s3cret", "no entities found", write(`{"items":[],"totalItems":0,"pageInfo":{}}`)},
		"huge": {"an endless answer is cut", "s3cret", "more than 32 MiB", func(w http.ResponseWriter, r *http.Request) bool {
			for range 33 {
				_, _ = w.Write(make([]byte, 1<<20))
			}
			return true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.entities = []map[string]any{component(1)}
			s.answer = tc.answer
			r, err := source(t, s.URL+"/base", tc.token).Read(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) || len(r.Records) != 0 {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the token is in the error: %v", err)
			}
		})
	}
	s := newServer(t)
	s.Close()
	if _, err := source(t, s.URL, "x").Read(t.Context()); err == nil || strings.Contains(err.Error(), "filter=") {
		t.Errorf("a server that is away: %v", err)
	}
	if _, err := source(t, s.URL, "").Read(t.Context()); err == nil || errors.Is(err, catalog.ErrEmpty) {
		t.Errorf("an empty token file: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	for url, reason := range map[string]string{
		"http://backstage.example.com":    "the token would travel in the clear",
		"https://user:pw@example.com":     "a password in a flag",
		"https://example.com/?x=y":        "a query",
		"ftp://example.com":               "another scheme",
		"backstage":                       "no host",
		"https://example.com:port/%zz":    "no URL",
		"http://127.0.0.1.nip.io":         "a name that looks like this machine",
		"http://localhost.evil.example":   "a name that begins like this machine",
		"https://example.com/#fragment":   "a fragment",
		"http://0.0.0.0:7007":             "not this machine alone",
		"http://[2001:db8::1]:7007":       "another machine",
		"http://127.0.0.1@evil.example/x": "a user that looks like this machine",
	} {
		if _, err := backstage.New(backstage.Config{Name: "x", URL: url}); err == nil || strings.Contains(err.Error(), "pw@") {
			t.Errorf("%s (%s): %v", url, reason, err)
		}
	}
}
