package portal

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

type flowList struct {
	Available bool
	Items     []struct {
		Cluster, Decision, Verdict, Ticket, Node string
		Subject, Resource                        struct{ Name, Title string }
		Count                                    int64
		Disagrees, TicketVisible                 bool
		Approvers                                []struct{ ID string }
	}
	NextCursor string
}

func (l flowList) subjects() []string {
	out := []string{}
	for _, x := range l.Items {
		name := x.Subject.Name
		if name == "" {
			name = x.Subject.Title
		}
		out = append(out, name)
	}
	return out
}

// TestFlowsAreLimitedToOwnObjects checks that no filter shows connections between applications and resources of others.
func TestFlowsAreLimitedToOwnObjects(t *testing.T) {
	x := newSite(t)
	at := time.Now().Add(-30 * time.Minute)
	x.flows.see(
		at,
		audit.Edge{
			Cluster:  "m1",
			Source:   "namespace=lost",
			Resource: portaltest.LedgerCache,
			Port:     6379,
			Protocol: "TCP",
			Decision: policy.Audited,
			Verdict:  audit.VerdictForwarded,
		},
		7,
	)
	x.flows.append(&audit.Batch{Flows: []audit.Flow{{Time: at.UTC(), Node: "node-7", Edge: refused("m1", portaltest.App888), Count: 1}},
		Losses: []audit.Loss{{Cluster: "m1", Node: "node-7", Reason: audit.LossRing, Count: 4, From: at.UTC(), To: at.UTC()}}})
	all := []string{"namespace=lost", portaltest.App888, portaltest.App889}
	for name, tc := range map[string]struct {
		reason, who, query string
		want               []string
	}{
		"security":                 {"sees all", "dave", "", all},
		"auditor":                  {"sees all", "grace", "", all},
		"owner of the application": {"flows of the own application", "alice", "", []string{portaltest.App888}},
		"owner of the resource":    {"everything to it, and to what the group owns", "bob", "", all},
		"owner by a group":         {"what the group owns", "frank", "", []string{"namespace=lost"}},
		"unconcerned person":       {"owns nothing", "carol", "", []string{}},
		"others' application":      {"a filter shows nothing more", "alice", "subject=app-889", []string{}},
		"others' resource":         {"a filter shows nothing more", "alice", "resource=ledger-db-cache", []string{}},
		"others by name":           {"a filter shows nothing more", "alice", "subject=" + url.QueryEscape(portaltest.App889), []string{}},
		"others by text":           {"a filter shows nothing more", "alice", "q=lost", []string{}},
		"without a name":           {"the same for what has none", "alice", "unattributed=true", []string{}},
		"id":                       {"ids stand for names", "dave", "subject=app-888", []string{portaltest.App888}},
		"several":                  {"are alternatives", "dave", "cluster=m2&cluster=m3", []string{portaltest.App889}},
		"decision":                 {"in the words of the evaluator", "dave", "decision=audited", []string{"namespace=lost"}},
		"verdict":                  {"what the dataplane did", "dave", "verdict=forwarded", []string{"namespace=lost"}},
		"agreement":                {"nothing disagrees", "dave", "disagree=true", []string{}},
		"port":                     {"another one", "dave", "port=1", []string{}},
		"unattributed":             {"an end has no name", "dave", "unattributed=true", []string{"namespace=lost"}},
		"text":                     {"part of a name", "dave", "q=LEDGER", []string{"namespace=lost"}},
		"window":                   {"before all of it", "dave", "until=" + at.Add(-2*time.Hour).UTC().Format(time.RFC3339), []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			var list flowList
			a := x.as(tc.who).Get("/api/v1/flows?" + tc.query)
			a.Into(t, &list)
			got := map[string]bool{}
			for _, s := range list.subjects() {
				got[s] = true
			}
			want := map[string]bool{}
			for _, s := range tc.want {
				want[s] = true
			}
			if diff := cmp.Diff(want, got); a.Status != http.StatusOK || !list.Available || diff != "" {
				t.Errorf("%s: %d %s", tc.reason, a.Status, diff)
			}
			var series struct{ Points []struct{ Count int64 } }
			a = x.as(tc.who).Get("/api/v1/flows/series?" + tc.query)
			a.Into(t, &series)
			var sum, total int64
			for _, p := range series.Points {
				sum += p.Count
			}
			for _, i := range list.Items {
				total += i.Count
			}
			if a.Status != http.StatusOK || sum != total {
				t.Errorf("%s: the series counts %d, the list %d: %s", tc.reason, sum, total, a.Body)
			}
		})
	}
	for who, want := range map[string]struct {
		raw  int
		node string
	}{"dave": {1, "node-7"}, "grace": {1, "node-7"}, "alice": {1, ""}, "bob": {1, ""}, "carol": {0, ""}, "erin": {0, ""}} {
		var raw, losses flowList
		x.as(who).Get("/api/v1/flows/raw").Into(t, &raw)
		if len(raw.Items) != want.raw || len(raw.Items) > 0 && raw.Items[0].Node != want.node {
			t.Errorf("%s sees raw flows %+v", who, raw.Items)
		}
		x.as(who).Get("/api/v1/flows/losses").Into(t, &losses)
		if len(losses.Items) != 1 || losses.Items[0].Node != want.node || losses.Items[0].Count != 4 {
			t.Errorf("%s sees losses %+v", who, losses.Items)
		}
	}
}

// TestLossPages checks that the cursor of losses contains no names of nodes for callers who may not see them.
func TestLossPages(t *testing.T) {
	x := newSite(t)
	at := time.Now().Add(-30 * time.Minute).UTC()
	for i := range 3 {
		x.flows.append(
			&audit.Batch{
				Losses: []audit.Loss{
					{
						Cluster: "m1",
						Node:    fmt.Sprint("node-", i),
						Reason:  audit.LossRing,
						Count:   int64(i + 1),
						From:    at,
						To:      at.Add(time.Duration(i) * time.Minute),
					},
				},
			},
		)
	}
	for who, secret := range map[string]bool{"dave": false, "carol": true} {
		cursor, got := "", []int64{}
		for range 9 {
			var list flowList
			a := x.as(who).Get("/api/v1/flows/losses?limit=1&cursor=" + cursor)
			if a.Into(t, &list); a.Status != http.StatusOK || len(list.Items) != 1 {
				t.Fatalf("%s: %d %s", who, a.Status, a.Body)
			}
			got = append(got, list.Items[0].Count)
			if cursor = list.NextCursor; cursor == "" {
				break
			}
			text := cursor
			for range 3 { // a cursor is in a cursor
				b, err := base64.RawURLEncoding.DecodeString(text)
				if err != nil {
					break
				}
				if secret && bytes.Contains(b, []byte("node-")) {
					t.Errorf("the cursor of %s contains names of nodes: %s", who, b)
				}
				if _, rest, ok := bytes.Cut(b, []byte(":")); ok {
					b = rest
				}
				text = string(b)
			}
		}
		if diff := cmp.Diff([]int64{3, 2, 1}, got); diff != "" {
			t.Errorf("%s: %s", who, diff)
		}
	}
}

func TestFlowPages(t *testing.T) {
	x := newSite(t)
	for i := range 5 {
		x.flows.see(
			time.Now().Add(-time.Duration(i+1)*time.Minute),
			audit.Edge{Cluster: "m1", Subject: fmt.Sprint("s", i), Resource: portaltest.BobsCluster, Port: 1, Protocol: "TCP",
				Decision: policy.Allowed, Verdict: audit.VerdictDropped},
			1,
		)
	}
	var got []string
	cursor := ""
	for range 9 {
		var list flowList
		a := x.as("bob").Get("/api/v1/flows?limit=2&disagree=true&cursor=" + cursor)
		if a.Into(t, &list); a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		for _, i := range list.Items {
			if !i.Disagrees {
				t.Errorf("%+v agrees", i)
			}
		}
		got = append(got, list.subjects()...)
		if cursor = list.NextCursor; cursor == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"s0", "s1", "s2", "s3", "s4"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestFlowQueriesAreBounded checks that queries that would read too much or are inconsistent are refused with a code.
func TestFlowQueriesAreBounded(t *testing.T) {
	x := newSite(t)
	long := url.QueryEscape(string(make([]byte, 600)))
	for reason, query := range map[string]string{
		"too long a window": "since=2026-01-01T00:00:00Z&until=2026-03-01T00:00:00Z", "backwards": "since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z",
		"the future": "until=2126-01-01T00:00:00Z", "no time": "since=x", "no decision": "decision=perhaps", "no verdict": "verdict=x", "no port": "port=70000",
		"no number": "port=x", "too long a name": "subject=" + long, "empty": "cluster=", "too long a text": "q=" + long, "a forged cursor": "cursor=YQ",
		"another list's cursor": "cursor=" + *core.EncodeCursor("tickets", "1"),
		"a forged place":        "cursor=" + *core.EncodeCursor("flows", "../../x"), "limit": "limit=1000",
	} {
		a := x.as("dave").Get("/api/v1/flows?" + query)
		var p problemBody
		a.Into(t, &p)
		if a.Status != http.StatusBadRequest || p.Code != "invalid" || p.Detail == "" {
			t.Errorf("%s: %d %s", reason, a.Status, a.Body)
		}
	}
	for reason, query := range map[string]string{
		"not a minute": "stepSeconds=61", "too short": "stepSeconds=1",
		"too many steps": "stepSeconds=60&since=" + time.Now().Add(-20*24*time.Hour).UTC().Format(time.RFC3339),
	} {
		if a := x.as("dave").Get("/api/v1/flows/series?" + query); a.Status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", reason, a.Status, a.Body)
		}
	}
	for _, path := range []string{"/resources/bobs-cluster/connections", "/applications/app-888/connections"} {
		if a := x.as("dave").Get("/api/v1" + path + "?since=0001-01-01T00:00:00Z"); a.Status != http.StatusBadRequest {
			t.Errorf("an unbounded query of %s: %d", path, a.Status)
		}
	}
	var many string
	for i := range 60 {
		many += fmt.Sprintf("&subject=s%d", i)
	}
	if a := x.as("dave").Get("/api/v1/flows?" + many); a.Status != http.StatusBadRequest {
		t.Errorf("too many values: %d", a.Status)
	}
}

// TestFlowStoreUnavailable checks that pages report that flows are unavailable, without the error text of the store.
func TestFlowStoreUnavailable(t *testing.T) {
	x := newSite(t)
	x.flows.err = fmt.Errorf("open /secret/flows.db: %w", audit.ErrUnavailable)
	for _, path := range []string{"/flows", "/flows/series", "/flows/raw", "/flows/losses", "/flows/coverage"} {
		var list struct {
			Available bool
			Items     []any
		}
		a := x.as("dave").Get("/api/v1" + path)
		if a.Into(t, &list); a.Status != http.StatusOK || list.Available || len(list.Items) > 0 {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
	x.flows.err = errors.New("/secret/flows.db: disk I/O error")
	for _, path := range []string{"/flows", "/flows/series", "/flows/raw", "/flows/losses", "/flows/coverage"} {
		var p problemBody
		a := x.as("dave").Get("/api/v1" + path)
		if a.Into(t, &p); p.Code != "internal" || string(a.Body) == "" || bytes.Contains(a.Body, []byte("secret")) {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
}

// TestFlowShowsTicketAndApprovers checks that a connection shows the statement that allowed it, its ticket, and the approvers.
func TestFlowShowsTicketAndApprovers(t *testing.T) {
	x := newSite(t)
	x.approveFirstTicket(t)
	let := func(subject, sid string) audit.Edge {
		return audit.Edge{
			Cluster:   "m3",
			Subject:   subject,
			Resource:  portaltest.BobsCluster,
			Port:      6379,
			Protocol:  "TCP",
			Decision:  policy.Allowed,
			Verdict:   audit.VerdictForwarded,
			Statement: policy.Ref{Policy: policy.PolicyNameFor(portaltest.BobsCluster), SID: sid},
		}
	}
	x.flows.see(time.Now().Add(-time.Minute), let(portaltest.App888, "t-1-1"), 1)
	x.flows.see(time.Now().Add(-time.Minute), let(portaltest.App889, "t-1-1"), 1)
	var list flowList
	x.as("bob").Get("/api/v1/flows?cluster=m3").Into(t, &list)
	for _, i := range list.Items {
		var people []string
		for _, p := range i.Approvers {
			people = append(people, p.ID)
		}
		switch i.Subject.Name {
		case portaltest.App888:
			if diff := cmp.Diff([]string{"carol", "bob"}, people); diff != "" || i.Ticket != "T-1" || !i.TicketVisible {
				t.Errorf("%+v: %s", i, diff)
			}
		default:
			if i.Ticket != "" || people != nil {
				t.Errorf("the ticket was not for %s: %+v", i.Subject.Name, i)
			}
		}
	}
	if len(list.Items) != 2 {
		t.Errorf("%+v", list.Items)
	}
}
