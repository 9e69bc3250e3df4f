package portal

import (
	"encoding/csv"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/ledger"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// record appends entries to the ledger.
func (x *site) record(entries ...ledger.Entry) {
	x.t.Helper()
	if err := x.db.Write(x.t.Context(), func(tx *gorm.DB) error { return ledgerstore.Append(tx, entries...) }); err != nil {
		x.t.Fatal(err)
	}
}

type pastAccess struct {
	Items []struct {
		Subject             struct{ Name string }
		Sid, Ticket, Reason string
		LastUsed            *time.Time
		Uncertain, Counting bool
		TicketVisible       *bool
		Reached             []string
		Requester           *struct{ ID string }
	}
	Gaps []struct {
		Kind, Object string
		Message      struct{ Text string }
	}
	Mode                     string
	ModeKnown, Open, Limited bool
}

func pastAt(at time.Time) string {
	return "/api/v1/resources/bobs-cluster/past-access?at=" + url.QueryEscape(at.UTC().Format(time.RFC3339Nano))
}

// granted gives App888 access to Bob's cluster by a ticket whose statement the host cluster has.
func (x *site) granted(reason string) int64 {
	x.t.Helper()
	n := x.grantAccess("alice", "app-888", portaltest.App888, "bobs-cluster", portaltest.BobsCluster, reason)
	x.written(n)
	return n
}

// written writes the statement of an approved ticket about Bob's cluster to the host cluster, and returns its sid.
func (x *site) written(n int64) string {
	x.t.Helper()
	name := policy.PolicyNameFor(portaltest.BobsCluster)
	ticket, err := x.config.Tickets.Apply(x.t.Context(), n, func(t *approval.Ticket) error {
		t.Written(0, name, approval.Written{Generation: 1, UID: "u"}, x.now())
		return nil
	})
	if err != nil {
		x.t.Fatal(err)
	}
	x.host.mu.Lock()
	defer x.host.mu.Unlock()
	x.host.input.Policies = append(slices.Clone(x.host.input.Policies), &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{approval.Statement(ticket.Items[0])}}})
	return ticket.Items[0].SID
}

// TestPastAccessNow checks that the past access of the present instant has the rows of the present access, for everybody.
func TestPastAccessNow(t *testing.T) {
	x := newSite(t)
	x.granted("carts")
	x.stopBudgets()
	for _, who := range []string{"alice", "bob", "carol", "dave", "erin", "grace"} {
		var past, present pastAccess
		x.as(who).Get(pastAt(x.now())).Into(t, &past)
		x.as(who).Get("/api/v1/resources/bobs-cluster/access").Into(t, &present)
		var got, want []string
		for _, i := range past.Items {
			got = append(got, i.Subject.Name+" "+i.Sid+" "+i.Ticket)
		}
		for _, i := range present.Items {
			want = append(want, i.Subject.Name+" "+i.Sid+" "+i.Ticket)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", who, d)
		}
		if sees := who == "bob" || who == "dave" || who == "grace"; past.Limited == sees {
			t.Errorf("%s: limited is %v", who, past.Limited)
		}
	}
}

func TestPastAccessVisibility(t *testing.T) {
	x := newSite(t)
	at := x.now()
	x.record(ledger.Entry{At: at.Add(-time.Hour), Action: "token.created"},
		ledger.Entry{At: at.Add(-time.Minute), Actor: "unknown", Action: "object.updated", Object: "AccessControlPolicy/by-hand"})
	for name, tc := range map[string]struct {
		reason, who, path string
		status            int
		names             bool // of objects in gaps
	}{
		"owner":       {"sees everything", "bob", pastAt(at.Add(-time.Second * 90)), http.StatusOK, true},
		"auditor":     {"sees everything", "grace", pastAt(at.Add(-time.Second * 90)), http.StatusOK, true},
		"unconcerned": {"sees that there are gaps, but not of which objects", "carol", pastAt(at.Add(-time.Second * 90)), http.StatusOK, false},
		"future":      {"nobody knows", "bob", pastAt(at.Add(time.Hour)), http.StatusBadRequest, false},
		"no time":     {"it is required", "bob", "/api/v1/resources/bobs-cluster/past-access", http.StatusBadRequest, false},
		"unknown":     {"not in the catalog", "bob", strings.Replace(pastAt(at), "bobs-cluster", "none", 1), http.StatusNotFound, false},
		"nobody":      {"without a login", "", pastAt(at), http.StatusUnauthorized, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := x.as(tc.who).Get(tc.path)
			if a.Status != tc.status {
				t.Fatalf("%s: %d %s", tc.reason, a.Status, a.Body)
			}
			if tc.status != http.StatusOK {
				return
			}
			var got pastAccess
			a.Into(t, &got)
			named := slices.ContainsFunc(got.Gaps, func(g struct {
				Kind, Object string
				Message      struct{ Text string }
			}) bool {
				return g.Object == "AccessControlPolicy/by-hand"
			})
			if len(got.Gaps) == 0 || named != tc.names || !tc.names && strings.Contains(string(a.Body), "AccessControlPolicy/") {
				t.Errorf("%s: %s", tc.reason, a.Body)
			}
		})
	}
}

// TestPastAccessLastUse checks that a past access was used when its own statement decided, and otherwise is not known to have been used or
// not.
func TestPastAccessLastUse(t *testing.T) {
	x := newSite(t)
	now := time.Now().UTC().Truncate(time.Minute)
	see := func(minutes int, subject, sid string) {
		x.flows.see(
			now.Add(-time.Duration(minutes)*time.Minute),
			audit.Edge{Cluster: "m1", Subject: subject, Resource: portaltest.BobsCluster, Action: "redis:connect", Port: 6379,
				Protocol: "TCP", Decision: policy.Allowed, Verdict: audit.VerdictForwarded, Statement: policy.Ref{Policy: "by-hand", SID: sid}},
			1,
		)
	}
	see(50, portaltest.App888, "eight")
	see(40, portaltest.App888, "eight")
	see(30, portaltest.App888, "nine") // of another application
	see(20, portaltest.App888, "gone") // a later statement for the same application
	for who, want := range map[string]map[string]string{
		"bob":   {"eight": now.Add(-40 * time.Minute).Format(time.RFC3339), "nine": ""},
		"alice": {"eight": now.Add(-40 * time.Minute).Format(time.RFC3339)},
		"erin":  {"nine": ""},
	} {
		var list pastAccess
		x.as(who).Get(pastAt(x.now())).Into(t, &list)
		got := map[string]string{}
		for _, row := range list.Items {
			got[row.Sid] = ""
			if row.LastUsed != nil {
				got[row.Sid] = row.LastUsed.Format(time.RFC3339)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", who, d)
		}
	}
	table := func() string { return string(x.as("bob").Get(pastAt(x.now()) + "&format=csv").Body) }
	used := now.Add(-40*time.Minute).Format(time.RFC3339) + ",by-hand,eight"
	if text := table(); !strings.Contains(text, used) || !strings.Contains(text, "unknown,by-hand,nine") {
		t.Errorf("the file: %s", text)
	}
	x.flows.err = errUnavailable
	if text := table(); !strings.Contains(text, "unknown,by-hand,eight") || !strings.Contains(text, "uses,") || !strings.Contains(text, "Load the page again") {
		t.Errorf("without flows: %s", text)
	}
	if a := x.as("bob").Get(pastAt(x.now())); !strings.Contains(string(a.Body), `"usesMessage":{"code":"history.uses-unavailable"`) {
		t.Errorf("the list does not say that the uses could not be read: %s", a.Body)
	}
	x.flows.err = nil
	if a := x.as("bob").Get(pastAt(x.now())); strings.Contains(string(a.Body), "usesMessage") {
		t.Errorf("the uses can be read: %s", a.Body)
	}
}

func TestPastAccessCSV(t *testing.T) {
	x := newSite(t)
	x.granted("=HYPERLINK(1)")
	at := x.now()
	x.record(ledger.Entry{At: at.Add(time.Second), Action: "portal.restored"})
	a := x.as("bob").Get(pastAt(at) + "&format=csv")
	if a.Status != http.StatusOK || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/csv") ||
		!strings.Contains(a.Header.Get("Content-Disposition"), "access-bobs-cluster-") {
		t.Fatalf("%d %v", a.Status, a.Header)
	}
	rows, err := csv.NewReader(strings.NewReader(string(a.Body))).ReadAll()
	if err != nil || len(rows) < 2 || rows[1][0] != "gap" {
		t.Errorf("the gaps are first: %v %v", rows, err)
	}
	if text := string(a.Body); strings.Contains(text, ",=") || !strings.Contains(text, "'=HYPERLINK(1)") {
		t.Errorf("a formula: %s", text)
	}
	if a := x.as("bob").Get(pastAt(x.now()) + "&format=xml"); a.Status != http.StatusBadRequest {
		t.Errorf("another format: %d", a.Status)
	}
}

func TestAccessPeriods(t *testing.T) {
	x := newSite(t)
	x.granted("carts")
	path := "/api/v1/resources/bobs-cluster/access-periods?application=app-888"
	for who, status := range map[string]int{
		"alice": http.StatusOK, // owns the application
		"bob":   http.StatusOK, // owns the resource
		"dave":  http.StatusOK,
		"grace": http.StatusOK,
		"carol": http.StatusForbidden,
		"erin":  http.StatusForbidden,
		"":      http.StatusUnauthorized,
	} {
		a := x.as(who).Get(path)
		if a.Status != status {
			t.Errorf("%s: %d %s", who, a.Status, a.Body)
		}
		if who == "alice" && strings.Contains(string(a.Body), "AccessControlPolicy/") {
			t.Errorf("alice does not own the resource, and sees names of objects: %s", a.Body)
		}
	}
	var list struct {
		Items []struct {
			Reach   string
			Tickets []struct {
				Ticket  string
				Visible bool
			}
			Began []struct{ Kind, Ticket string }
			To    *time.Time
		}
		RecordsBegin *time.Time
	}
	x.as("bob").Get(path).Into(t, &list)
	if len(list.Items) == 0 || list.RecordsBegin == nil {
		t.Fatalf("%+v", list)
	}
	last := list.Items[0]
	if last.Reach != "allowed" || last.To != nil || len(last.Tickets) != 1 || last.Tickets[0].Ticket != "T-1" || len(last.Began) == 0 ||
		last.Began[0].Kind != "granted" || last.Began[0].Ticket != "T-1" {
		t.Errorf("%+v", last)
	}
	if a := x.as("bob").Get("/api/v1/resources/bobs-cluster/access-periods?application=none"); a.Status != http.StatusNotFound {
		t.Errorf("an unknown application: %d", a.Status)
	}
	if a := x.as("bob").Get(path + "&format=csv"); !strings.Contains(string(a.Body), "granted T-1") ||
		!strings.Contains(string(a.Body), "Earlier periods are not known.") {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

func TestModeHistory(t *testing.T) {
	x := newSite(t)
	at := x.now().Add(-2 * time.Hour)
	until := at.Add(time.Hour).UTC()
	x.record(
		ledger.Entry{At: at, Actor: "bob", Action: "resource.temporary-audit", Object: "bobs-cluster",
			Details: map[string]string{"reason": "incident", "until": until.Format(time.RFC3339)}},
		ledger.Entry{At: at.Add(90 * time.Minute), Actor: "kubernetes:mallory", Action: "object.updated", Object: "ProtectedResource/bobs-cluster"},
		ledger.Entry{At: at.Add(91 * time.Minute), Actor: "kubernetes:mallory", Action: "object.updated", Object: "ProtectedResource/others-cluster"},
	)
	path := "/api/v1/resources/bobs-cluster/mode-history"
	for who, status := range map[string]int{"bob": http.StatusOK, "dave": http.StatusOK, "grace": http.StatusOK, "alice": http.StatusForbidden,
		"erin": http.StatusForbidden, "": http.StatusUnauthorized} {
		if a := x.as(who).Get(path); a.Status != status {
			t.Errorf("%s: %d %s", who, a.Status, a.Body)
		}
	}
	var list struct {
		Items []struct {
			Kind, Reason, OutsideBy string
			By                      *struct{ ID string }
		}
	}
	x.as("bob").Get(path).Into(t, &list)
	var kinds []string
	for _, i := range list.Items {
		kinds = append(kinds, i.Kind)
	}
	if d := cmp.Diff([]string{"outside", "audit-expired", "audit"}, kinds); d != "" {
		t.Fatal(d)
	}
	if first, audit := list.Items[0], list.Items[2]; first.OutsideBy != "kubernetes:mallory" || audit.By == nil ||
		audit.By.ID != "bob" || audit.Reason != "incident" {
		t.Errorf("%+v", list)
	}
	if a := x.as("bob").Get(path + "?format=csv"); !strings.Contains(string(a.Body), "incident") {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}
