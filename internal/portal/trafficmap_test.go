package portal

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

type trafficMap struct {
	Available bool
	Nodes     []struct {
		Name, Title, ID, Kind string
		Team                  *int
	}
	Teams []struct{ ID, Kind, DisplayName string }
	Links []struct {
		From, To                                           int
		Allowed, Audited, Unmanaged, DefaultDenied, Denied *int64
		Granted, Disagrees                                 bool
		LastSeen, LastUsed, Policy, Sid, Ticket            string
	}
	Total int
	Cut   bool
}

// texts returns each link with its ends, counts and grant.
func (m *trafficMap) texts() []string {
	out := []string{}
	for _, l := range m.Links {
		from, to := m.Nodes[l.From], m.Nodes[l.To]
		text := from.Kind + " " + from.Title + " -> " + to.Kind + " " + to.Title
		for _, c := range []struct {
			name string
			n    *int64
		}{{"allowed", l.Allowed}, {"audited", l.Audited}, {"unmanaged", l.Unmanaged}, {"default-denied", l.DefaultDenied}, {"denied", l.Denied}} {
			if c.n != nil {
				text += fmt.Sprintf(" %s=%d", c.name, *c.n)
			}
		}
		if l.Granted {
			text += " granted"
		}
		if l.Ticket != "" {
			text += " by " + l.Ticket
		}
		out = append(out, text)
	}
	return out
}

// mapped is a site with connections to two resources, and access of an application that came from a ticket.
func mapped(t *testing.T) *site {
	t.Helper()
	x := newSite(t)
	x.approveFirstTicket(t)
	at := time.Now().Add(-30 * time.Minute)
	x.flows.see(at, audit.Edge{Cluster: "m1", Source: "namespace=lost", Resource: portaltest.LedgerCache, Port: 6379, Protocol: "TCP",
		Decision: policy.Audited, Verdict: audit.VerdictForwarded}, 7)
	x.flows.see(at, audit.Edge{
		Cluster:   "m1",
		Subject:   portaltest.App888,
		Resource:  portaltest.BobsCluster,
		Port:      6379,
		Protocol:  "TCP",
		Decision:  policy.Allowed,
		Verdict:   audit.VerdictForwarded,
		Statement: policy.Ref{Policy: policy.PolicyNameFor(portaltest.BobsCluster), SID: "t-1-1"},
	}, 40)
	return x
}

// TestTrafficMapIsLimitedToOwnObjects checks that people see the links of what they own, and that no filter shows more: neither
// connections nor statements of others.
func TestTrafficMapIsLimitedToOwnObjects(t *testing.T) {
	x := mapped(t)
	const (
		own    = "application App 888 -> resource Bob's cluster allowed=40 default-denied=3 granted"
		others = "application App 889 -> resource Bob's cluster default-denied=5 granted"
		lost   = "unnamed namespace=lost -> resource ledger-db-cache audited=7"
	)
	everything := []string{own, lost, others}
	for name, tc := range map[string]struct {
		reason, who, query string
		want               []string
	}{
		"security":                 {"sees all: refused and audited first, then the most connections", "dave", "", everything},
		"auditor":                  {"sees all", "grace", "", everything},
		"owner of the application": {"links of the own application", "alice", "", []string{own}},
		"owner by a group":         {"what the group owns", "frank", "", []string{lost}},
		"unconcerned person":       {"owns nothing", "carol", "", []string{}},
		"others' application":      {"a filter shows nothing more", "alice", "subject=app-889", []string{}},
		"others' resource":         {"a filter shows nothing more", "alice", "resource=ledger-db-cache", []string{}},
		"others by text":           {"a filter shows nothing more", "alice", "q=lost", []string{}},
		"id":                       {"ids stand for names", "dave", "subject=app-889", []string{others}},
		"resource":                 {"and of resources", "dave", "resource=ledger-db-cache", []string{lost}},
		"cluster":                  {"of the destination; statements are in no cluster", "dave", "cluster=m2&subject=app-889", []string{others}},
		"text":                     {"part of a name", "dave", "q=LEDGER", []string{lost}},
	} {
		t.Run(name, func(t *testing.T) {
			var m trafficMap
			a := x.as(tc.who).Get("/api/v1/flows/map?" + tc.query)
			a.Into(t, &m)
			if d := cmp.Diff(tc.want, m.texts()); a.Status != http.StatusOK || !m.Available || m.Total != len(tc.want) || m.Cut || d != "" {
				t.Errorf("%s: %d %s", tc.reason, a.Status, d)
			}
			for _, n := range m.Nodes {
				if n.ID == "bobs-cluster" && (n.Team == nil || m.Teams[*n.Team].ID != "bob") {
					t.Errorf("the resource has the team %v of %v", n.Team, m.Teams)
				}
			}
			table := x.as(tc.who).Get("/api/v1/flows/map?format=csv&" + tc.query)
			rows, err := csv.NewReader(bytes.NewReader(table.Body)).ReadAll()
			if err != nil || table.Status != http.StatusOK || len(rows) != len(tc.want)+1 {
				t.Errorf("%s: the table has %d rows: %d %v", tc.reason, len(rows), table.Status, err)
			}
		})
	}
	var bobs trafficMap
	x.as("bob").Get("/api/v1/flows/map?resource=bobs-cluster").Into(t, &bobs)
	if texts := bobs.texts(); !slices.Contains(texts, own) || !slices.Contains(texts, others) {
		t.Errorf("the owner of the resource sees %q", texts)
	}
}

// TestTrafficMapOfPeriod checks that a statement which was used in another period is unused in this one, and who sees it.
func TestTrafficMapOfPeriod(t *testing.T) {
	x := mapped(t)
	since := "since=" + url.QueryEscape(time.Now().Add(-10*time.Minute).UTC().Format(time.RFC3339))
	const (
		own    = "application App 888 -> resource Bob's cluster granted"
		others = "application App 889 -> resource Bob's cluster granted"
	)
	for name, tc := range map[string]struct {
		who, query string
		want       []string
	}{
		"security":                {"dave", "", []string{own, others}},
		"owner of an application": {"alice", "", []string{own}},
		"owner of the resource":   {"bob", "", []string{own, others}},
		"unconcerned person":      {"frank", "", []string{}},
		"another's statement":     {"alice", "&subject=app-889", []string{}},
		"a name":                  {"dave", "&subject=app-889", []string{others}},
		"text":                    {"dave", "&q=APP/888", []string{own}},
		"another resource":        {"dave", "&resource=ledger-db-cache", []string{}},
	} {
		var m trafficMap
		x.as(tc.who).Get("/api/v1/flows/map?"+since+tc.query).Into(t, &m)
		if d := cmp.Diff(tc.want, m.texts()); d != "" || !m.Available {
			t.Errorf("%s: %s", name, d)
		}
		for _, l := range m.Links {
			if l.LastUsed != "" || l.LastSeen != "" || l.Policy != "by-hand" {
				t.Errorf("%s: %+v", name, l)
			}
		}
	}
}

// TestTrafficMapQueriesAreBounded checks that queries that would read too much or are inconsistent are refused with a code.
func TestTrafficMapQueriesAreBounded(t *testing.T) {
	x := newSite(t)
	many := "x=y"
	for i := range 60 {
		many += fmt.Sprintf("&subject=s%d", i)
	}
	for reason, query := range map[string]string{
		"too long a window": "since=2025-01-01T00:00:00Z&until=2026-01-03T00:00:00Z", "backwards": "since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z",
		"the future": "until=2126-01-01T00:00:00Z", "no time": "since=x", "too long a name": "subject=" + strings.Repeat("x", 600),
		"empty": "cluster=", "too long a text": "q=" + strings.Repeat("x", 300), "too many values": many, "another format": "format=xml",
	} {
		a := x.as("dave").Get("/api/v1/flows/map?" + query)
		var p problemBody
		if a.Into(t, &p); a.Status != http.StatusBadRequest || p.Code != "invalid" {
			t.Errorf("%s: %d %s", reason, a.Status, a.Body)
		}
	}
}

// TestTrafficMapOfAYear checks that the map has what was seen many months ago, and says what to do if the store needs too long for so much.
func TestTrafficMapOfAYear(t *testing.T) {
	x := newSite(t)
	now := time.Now()
	x.flows.see(now.Add(-300*24*time.Hour), refused("m1", portaltest.App888), 11)
	for days, want := range map[int]string{366: "default-denied=14", 31: "default-denied=3"} {
		since := url.QueryEscape(now.Add(-time.Duration(days) * 24 * time.Hour).UTC().Format(time.RFC3339))
		var m trafficMap
		if x.as("alice").Get("/api/v1/flows/map?since="+since).Into(t, &m); !strings.Contains(strings.Join(m.texts(), "\n"), want) {
			t.Errorf("%d days: %v, want %s", days, m.texts(), want)
		}
	}
	for _, path := range []string{"/api/v1/flows", "/api/v1/flows/series", "/api/v1/flows/raw", "/api/v1/flows/losses", "/api/v1/flows/coverage"} {
		since := url.QueryEscape(now.Add(-90 * 24 * time.Hour).UTC().Format(time.RFC3339))
		if a := x.as("dave").Get(path + "?since=" + since); a.Status != http.StatusBadRequest || !bytes.Contains(a.Body, []byte("31 days")) {
			t.Errorf("%s over 90 days: %d %s", path, a.Status, a.Body)
		}
	}
	x.flows.err = fmt.Errorf("totals: %w", context.DeadlineExceeded)
	a := x.as("dave").Get("/api/v1/flows/map")
	var m trafficMap
	if a.Into(t, &m); a.Status != http.StatusOK || m.Available || len(m.Links) > 0 || !bytes.Contains(a.Body, []byte(`"flows.too-slow"`)) {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// TestTrafficMapWithoutFlows checks that the map says that the flows are unavailable, and claims of no statement that it is unused.
func TestTrafficMapWithoutFlows(t *testing.T) {
	x := mapped(t)
	x.flows.err = fmt.Errorf("open /secret/flows.db: %w", audit.ErrUnavailable)
	var m trafficMap
	a := x.as("dave").Get("/api/v1/flows/map")
	if a.Into(t, &m); a.Status != http.StatusOK || m.Available || len(m.Links) > 0 || bytes.Contains(a.Body, []byte("secret")) {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	x.flows.err = errors.New("/secret/flows.db: disk I/O error")
	var p problemBody
	a = x.as("dave").Get("/api/v1/flows/map")
	if a.Into(t, &p); p.Code != "internal" || bytes.Contains(a.Body, []byte("secret")) {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}
