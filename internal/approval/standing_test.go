package approval_test

import (
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/catalog"
)

const orgOfOne = `
{kind: Group, metadata: {name: payments, annotations: {acp.io/lead: carol}}, spec: {members: [alice, carol, erin]}}
---
{kind: Group, metadata: {name: security}, spec: {members: [dave]}}
---
{kind: User, metadata: {name: alice}}
---
{kind: User, metadata: {name: bob}}
---
{kind: User, metadata: {name: carol}}
---
{kind: User, metadata: {name: dave}}
---
{kind: User, metadata: {name: erin}}
---
{kind: Component, metadata: {name: a, annotations: {acp.io/resource-name: "trnv1:rsc:o:iam:sa:app/a"}}, spec: {owner: "user:alice"}}
---
{kind: Resource, metadata: {name: r, annotations: {acp.io/resource-name: "trnv1:rsc:o:redis:clusters:r", acp.io/sensitivity: high}}, spec: {owner: "user:bob"}}
`

// office is a service whose catalog can change under a pending ticket.
type office struct {
	*approval.Service
	t    *testing.T
	text string
	host *approvaltest.Host
}

// policies that hold from now on.
func (o *office) policies(all []*v1alpha1.ApprovalPolicy) { o.host.Policies = all }

// The sensitivities of the resource in the text of the catalog.
const lowSensitivity, highSensitivity = "acp.io/sensitivity: low", "acp.io/sensitivity: high"

func (o *office) setSensitivity(to string) {
	for _, from := range []string{lowSensitivity, highSensitivity} {
		o.text = strings.Replace(o.text, from, to, 1)
	}
}

// submitOne submits alice's request for access to the resource.
func (o *office) submitOne() *approval.Ticket {
	o.t.Helper()
	x, err := o.Submit(
		o.t.Context(),
		approval.Actor{ID: "alice"},
		approval.Request{Reason: "why", Items: []approval.RequestItem{{Application: "a", Resource: "r", Actions: []string{"x:y"}}}},
	)
	if err != nil {
		o.t.Fatal(err)
	}
	return x
}

func newOffice(t *testing.T) *office {
	w := newWorld(t)
	w.host.Actions = []string{"x:y", "x:z"}
	o := &office{t: t, text: orgOfOne, host: w.host}
	var err error
	o.Service, err = approval.NewService(approval.Config{Store: w.store, Delegations: w.store, Host: w.host, Now: w.clock.Now,
		Catalog: func() *catalog.Catalog { return readCatalog(t, o.text) }})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *office) decide(x *approval.Ticket, who string, approve bool) (*approval.Ticket, error) {
	o.t.Helper()
	now, err := o.Store.Get(o.t.Context(), x.Number)
	if err != nil {
		o.t.Fatal(err)
	}
	return o.Decide(o.t.Context(), approval.Actor{ID: who}, x.Number, approval.EveryItem, now.Version, approve, "comment")
}

func TestApproverWhoLostTheirRole(t *testing.T) {
	ask := approval.Request{Reason: "why", Items: []approval.RequestItem{{Application: "a", Resource: "r", Actions: []string{"x:y"}}}}
	for name, tc := range map[string]struct {
		reason   string
		old, new string
		before   []string // who approve while the catalog is as it was
		who      string
		code     approval.Code
	}{
		"nothing":   {"the chain as it was resolved", "", "", nil, "carol", ""},
		"leader":    {"carol does not lead alice any more", "acp.io/lead: carol", "acp.io/lead: erin", nil, "carol", approval.CodeForbidden},
		"owner":     {"bob transferred the resource", `owner: "user:bob"`, `owner: "user:erin"`, []string{"carol"}, "bob", approval.CodeForbidden},
		"security":  {"dave left the team", "members: [dave]", "members: [erin]", []string{"carol", "bob"}, "dave", approval.CodeForbidden},
		"requester": {"alice gave the application away", `owner: "user:alice"`, `owner: "user:erin"`, nil, "carol", approval.CodeConflict},
		"resource": {
			"the server is not in the catalog", "metadata: {name: r, annotations: {acp.io/resource-name: \"trnv1:rsc:o:redis:clusters:r\"",
			"metadata: {name: r, annotations: {acp.io/resource-name: \"trnv1:rsc:o:redis:clusters:q\"", nil, "carol", approval.CodeConflict,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			x, err := o.Submit(t.Context(), approval.Actor{ID: "alice"}, ask)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range tc.before {
				if _, err := o.decide(x, p, true); err != nil {
					t.Fatal(err)
				}
			}
			if tc.old != "" && !strings.Contains(o.text, tc.old) {
				t.Fatal("the catalog does not change")
			}
			o.text = strings.Replace(o.text, tc.old, tc.new, 1)
			now, err := o.Store.Get(t.Context(), x.Number)
			if err != nil {
				t.Fatal(err)
			}
			if may := approval.MayDo(o.Catalog(), approval.Actor{ID: tc.who}, now); may.Approve != (tc.code == "") || !may.Reject {
				t.Errorf("%s: %+v", tc.reason, may)
			}
			if _, err := o.decide(x, tc.who, true); approval.CodeOf(err) != tc.code {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if tc.code == "" {
				return
			}
			if got, err := o.decide(x, tc.who, false); err != nil || got.State() != approval.StateRejected {
				t.Errorf("a rejection opens nothing, and ends a ticket that nobody could approve: %v", err)
			}
		})
	}
}

func TestIdempotencyKeyOfAnotherRequest(t *testing.T) {
	o := newOffice(t)
	ask := approval.Request{Reason: "why", IdempotencyKey: "key-1"}
	submit := func(change func(*approval.Request)) (*approval.Ticket, error) {
		r := ask
		r.Items = []approval.RequestItem{{Application: "a", Resource: "r", Actions: []string{"x:y"}, Duration: time.Hour}}
		change(&r)
		return o.Submit(t.Context(), approval.Actor{ID: "alice"}, r)
	}
	first, err := submit(func(*approval.Request) {})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := submit(func(r *approval.Request) { r.Reason = " why " }); err != nil || again.Number != first.Number {
		t.Errorf("the same request is the same ticket: %v", err)
	}
	for name, change := range map[string]func(*approval.Request){
		"actions":  func(r *approval.Request) { r.Items[0].Actions = []string{"x:y", "x:z"} },
		"reason":   func(r *approval.Request) { r.Reason = "another" },
		"duration": func(r *approval.Request) { r.Items[0].Duration = 2 * time.Hour },
	} {
		if _, err := submit(change); approval.CodeOf(err) != approval.CodeConflict {
			t.Errorf("other %s: the caller would assume that they requested it: %v", name, err)
		}
	}
}
