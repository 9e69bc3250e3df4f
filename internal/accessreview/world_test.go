package accessreview_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/accessreview"
	"github.com/acp-io/acp/internal/accessreview/gormstore"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	approvalstore "github.com/acp-io/acp/internal/approval/gormstore"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/ledger"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	notifystore "github.com/acp-io/acp/internal/notify/gormstore"
)

const company = `
{kind: Group, metadata: {name: security}, spec: {members: [sam, sue]}}
---
{kind: Group, metadata: {name: auditors}, spec: {members: [otto]}}
---
{kind: Group, metadata: {name: shop}, spec: {members: [alice, lea]},}
---
{kind: Group, metadata: {name: data}, spec: {members: [bob, dan]}}
---
{kind: User, metadata: {name: alice}}
---
{kind: User, metadata: {name: lea}}
---
{kind: User, metadata: {name: bob}}
---
{kind: User, metadata: {name: dan}}
---
{kind: User, metadata: {name: sam}}
---
{kind: User, metadata: {name: sue}}
---
{kind: User, metadata: {name: otto}}
---
{kind: Component, metadata: {name: cart, annotations: {acp.io/resource-name: "trnv1:rsc:o:iam:sa:app/cart"}}, spec: {owner: "group:shop"}}
---
{kind: Component, metadata: {name: search, annotations: {acp.io/resource-name: "trnv1:rsc:o:iam:sa:app/search"}}, spec: {owner: "user:bob"}}
---
kind: Resource
metadata: {name: orders, annotations: {acp.io/resource-name: "trnv1:rsc:o:redis:clusters:orders", acp.io/sensitivity: high}}
spec: {owner: "user:bob"}
---
{kind: Resource, metadata: {name: stock, annotations: {acp.io/resource-name: "trnv1:rsc:o:redis:clusters:stock"}}, spec: {owner: "group:data"}}
`

var (
	bob   = approval.Actor{ID: "bob"}
	dan   = approval.Actor{ID: "dan"}
	alice = approval.Actor{ID: "alice"}
	sam   = approval.Actor{ID: "sam", Security: true}
	otto  = approval.Actor{ID: "otto", Auditor: true, Security: true}
)

// world is a database with tickets and campaigns, and a clock that stands still.
type world struct {
	t       *testing.T
	now     time.Time
	db      *database.DB
	catalog *catalog.Catalog
	store   *gormstore.Store
	tickets *approval.Service
	*accessreview.Service
	worker   *accessreview.Worker
	evidence map[string]accessreview.Evidence // by the name of the resource
	failing  error                            // what reading flows gives
	reading  func(context.Context)            // is called while flows are read, unless it is nil
	// hostUnknown reports whether the host cluster was not read yet.
	hostUnknown bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "company.yaml"), []byte(company), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, now: approvaltest.Start.Add(time.Hour), db: databasetest.Open(t, databasetest.SQLite(t)), evidence: map[string]accessreview.Evidence{}}
	read, err := catalog.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	w.catalog = read
	store := approvalstore.New(w.db)
	clock := func() time.Time { return w.now }
	w.tickets, err = approval.NewService(approval.Config{Store: store, Delegations: store, Catalog: func() *catalog.Catalog { return w.catalog },
		Host: &approvaltest.Host{}, Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	w.store = gormstore.New(w.db)
	w.Service = accessreview.NewService(accessreview.Config{Store: w.store, Grants: w.tickets, Catalog: func() *catalog.Catalog { return w.catalog },
		ClassOf:   classOf,
		HostKnown: func() bool { return !w.hostUnknown }, Now: clock})
	w.worker = w.another("one")
	return w
}

// another returns the worker of another replica.
func (w *world) another(name string) *accessreview.Worker {
	return accessreview.NewWorker(w.Service, name, w, time.Hour, slog.New(slog.DiscardHandler))
}

// Evidence implements accessreview.EvidenceReader.
func (w *world) Evidence(ctx context.Context, grants []approval.StandingGrant, days int, now time.Time) (map[approval.Target]accessreview.Evidence, error) {
	if w.reading != nil {
		w.reading(ctx)
	}
	if w.failing != nil {
		return nil, w.failing
	}
	out := map[approval.Target]accessreview.Evidence{}
	for _, g := range grants {
		e := w.evidence[g.Resource]
		e.At, e.Days = now, days
		out[g.Target] = e
	}
	return out, nil
}

func name(kind, id string) string {
	if kind == "app" {
		return "trnv1:rsc:o:iam:sa:app/" + id
	}
	return "trnv1:rsc:o:redis:clusters:" + id
}

func classOf(name string) string {
	if strings.Contains(name, ":mq:") {
		return "mq"
	}
	return "redis"
}

// grant creates an approved grant; length 0 means until revoked.
func (w *world) grant(requester, app, resource string, length time.Duration, extends ...int64) int64 {
	w.t.Helper()
	it := approval.Item{Application: app, ApplicationName: name("app", app), Resource: resource, ResourceName: name("", resource),
		Actions: []string{fmt.Sprintf("redis:a%d", w.now.Unix())}, Duration: length,
		Steps: []approval.Step{{Name: "owner", Approvers: []string{"nina"}, Quorum: 1}}}
	kind := approval.KindGrant
	if len(extends) > 0 {
		kind, it.Target = approval.KindExtend, &approval.Target{Ticket: extends[0]}
	}
	return w.approved(kind, requester, it)
}

// statement creates an approved statement; length 0 means until revoked.
func (w *world) statement(requester string, scope approval.StatementScope, length time.Duration, extends ...int64) int64 {
	w.t.Helper()
	scope.Effect = cmp.Or(scope.Effect, v1alpha1.EffectAllow)
	it := approval.Item{Scope: &scope, Actions: []string{fmt.Sprintf("redis:a%d", w.now.Unix())}, Duration: length,
		Steps: []approval.Step{{Name: "owner", Approvers: []string{"nina"}, Quorum: 1}}}
	if len(extends) > 0 {
		it.Target = &approval.Target{Ticket: extends[0]}
	}
	return w.approved(approval.KindStatement, requester, it)
}

// approved creates a ticket that nina has approved, and returns its number.
func (w *world) approved(kind approval.Kind, requester string, it approval.Item) int64 {
	w.t.Helper()
	w.now = w.now.Add(time.Second)
	t, err := w.tickets.Store.Create(
		w.t.Context(),
		approval.NewTicket(approval.Draft{Kind: kind, Requester: requester, Reason: "because", Items: []approval.Item{it}}, w.now),
	)
	if err == nil {
		t, err = w.tickets.Apply(w.t.Context(), t.Number, func(t *approval.Ticket) error {
			return t.Vote(0, approval.Vote{Person: "nina", Approve: true, At: w.now})
		})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return t.Number
}

func (w *world) ticket(n int64) *approval.Ticket {
	w.t.Helper()
	t, err := w.tickets.Store.Get(w.t.Context(), n)
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

func (w *world) revoke(n int64) {
	w.t.Helper()
	if _, err := w.tickets.Apply(w.t.Context(), n, func(t *approval.Ticket) error { return t.Revoke(0, "bob", "enough", w.now) }); err != nil {
		w.t.Fatal(err)
	}
}

// input is a campaign of three days.
func (w *world) input() accessreview.Input {
	return accessreview.Input{Name: "Quarterly", Silence: accessreview.SilenceShorten, Grace: 48 * time.Hour, Deadline: w.now.Add(72 * time.Hour)}
}

// open creates a campaign and lets the worker open it.
func (w *world) open(in accessreview.Input) accessreview.Campaign {
	w.t.Helper()
	c, err := w.Create(w.t.Context(), sam, in)
	if err != nil {
		w.t.Fatal(err)
	}
	w.work()
	return w.campaign(c.ID)
}

func (w *world) work() {
	w.t.Helper()
	if err := w.worker.Once(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) campaign(id int64) accessreview.Campaign {
	w.t.Helper()
	c, err := w.store.Campaign(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// line returns the line of a ticket in a campaign.
func (w *world) line(id, ticket int64) accessreview.Line {
	w.t.Helper()
	lines, err := w.store.Lines(w.t.Context(), accessreview.LineFilter{Campaign: id})
	if err != nil {
		w.t.Fatal(err)
	}
	i := slices.IndexFunc(lines, func(l accessreview.Line) bool { return l.Target.Ticket == ticket })
	if i < 0 {
		w.t.Fatalf("no line of %s", approval.FormatID(ticket))
	}
	return lines[i]
}

// decide decides the line of a ticket, as it is now.
func (w *world) decide(a approval.Actor, id, ticket int64, d accessreview.Decision) error {
	w.t.Helper()
	l := w.line(id, ticket)
	return w.choose(a, id, accessreview.Choice{Line: l.Number, Version: l.Version, Decision: d, Days: 7, Comment: "seen"})
}

func (w *world) choose(a approval.Actor, id int64, c accessreview.Choice) error {
	w.t.Helper()
	got, err := w.Decide(w.t.Context(), a, id, []accessreview.Choice{c})
	if err != nil {
		return err
	}
	return got[0].Err
}

// entries returns the actions of the ledger about a campaign, each with the line and the outcome.
func (w *world) entries(id int64) []ledger.Entry {
	w.t.Helper()
	var out []ledger.Entry
	for line, err := range ledgerstore.NewReader(w.db).Lines(w.t.Context(), 1) {
		if err != nil {
			w.t.Fatal(err)
		}
		e, err := line.Entry()
		if err != nil {
			w.t.Fatal(err)
		}
		if e.Object == accessreview.FormatID(id) {
			out = append(out, e)
		}
	}
	return out
}

// notified returns the people who are notified of an event, with their counts.
func (w *world) notified(event string) map[string]int64 {
	w.t.Helper()
	changes, err := notifystore.New(w.db).Changes(w.t.Context(), 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	var out map[string]int64
	for _, c := range changes {
		if c.ResourceEvent != nil && c.ResourceEvent.Facts.Event == event {
			out = c.ResourceEvent.Counts
		}
	}
	return out
}

var errCrash = errors.New("crash")

// start is the time at which the tests begin.
var start = approvaltest.Start.Add(time.Hour)
