package portal

import (
	"net/http"
	"strings"
	"testing"

	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// TestBodies checks which bodies of requests are refused, and how.
func TestBodies(t *testing.T) {
	x := newSite(t)
	alice := x.as("alice")
	ours := http.Header{"X-Acp-Request": {"1"}}
	const good = `{"reason":"r","items":[{"application":"app-888","resource":"bobs-cluster","actions":["redis:connect"]}]}`
	for name, tc := range map[string]struct {
		reason, body, kind string
		status             int
		code, field        string
	}{
		"good":    {"a valid request", good, "application/json", 200, "", ""},
		"charset": {"browsers add it", good, "application/json; charset=utf-8", 200, "", ""},
		"form":    {"what a form of another site can send", good, "text/plain", 415, "invalid", ""},
		"unknown field": {
			"a misspelled field must not become unlimited access", strings.Replace(good, `"reason"`, `"durationSecond":300,"reason"`, 1),
			"application/json", 400, "invalid", "durationSecond",
		},
		"twice": {
			"two parsers may use different values", strings.Replace(good, `"reason"`, `"reason":"x","reason"`, 1),
			"application/json", 400, "invalid", "reason",
		},
		"twice by case": {
			"Go's decoder ignores case", strings.Replace(good, `"reason"`, `"Reason":"x","reason"`, 1),
			"application/json", 400, "invalid", "reason",
		},
		"twice deep inside": {
			"in an item as well", strings.Replace(good, `"resource"`, `"resource":"x","resource"`, 1),
			"application/json", 400, "invalid", "resource",
		},
		"deep":       {"nesting is limited", strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "application/json", 400, "invalid", ""},
		"two values": {"only one is read", good + good, "application/json", 400, "invalid", ""},
		"cut off":    {"not JSON", good[:20], "application/json", 400, "invalid", ""},
		"empty":      {"not JSON", "", "application/json", 400, "invalid", ""},
		"too large":  {"64 KiB", `{"reason":"` + strings.Repeat("x", core.MaxBody) + `"}`, "application/json", 413, "too-large", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := send(t, alice, "/api/v1/tickets/preview", tc.body, tc.kind, ours)
			var p problemBody
			if a.Into(t, &p); a.Status != tc.status || p.Code != tc.code || tc.field != "" && (len(p.Fields) != 1 || p.Fields[0].Field != tc.field) {
				t.Errorf("%s: %d %s", tc.reason, a.Status, a.Body)
			}
			if a.Status >= 400 && (p.RequestID == "" || a.Header.Get("Content-Type") != "application/problem+json") {
				t.Errorf("the problem lacks its type or its id: %v %s", a.Header, a.Body)
			}
		})
	}
}

func send(t *testing.T, b *portaltest.Browser, path, body, kind string, h http.Header) portaltest.Answer {
	t.Helper()
	h = h.Clone()
	h.Set("Content-Type", kind)
	return b.Raw(http.MethodPost, path, strings.NewReader(body), h)
}
