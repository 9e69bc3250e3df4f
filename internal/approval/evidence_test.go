package approval_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// flows is what was seen, as a test says.
type flows struct {
	score   approval.Score
	err     error
	seen    map[string]bool
	stopped message.Message
	class   approval.ClassEvidence
	asked   []v1alpha1.ResourceClassSpec
}

func (f *flows) OfClass(_ context.Context, c v1alpha1.ResourceClassSpec) (approval.ClassEvidence, error) {
	f.asked = append(f.asked, c)
	return f.class, f.err
}

func (f *flows) Score(context.Context, string) (approval.Score, error) { return f.score, f.err }
func (f *flows) Seen(_ context.Context, app, resource string) (bool, error) {
	return f.seen[app+" "+resource], f.err
}
func (f *flows) Stopped(context.Context, string) (message.Message, error) { return f.stopped, nil }

const (
	appA    = "trnv1:rsc:o:iam:sa:app/a"
	highRes = "trnv1:rsc:o:redis:clusters:high"
	lowRes  = "trnv1:rsc:o:redis:clusters:low"
)

func mode(m v1alpha1.Mode, clusters map[string]v1alpha1.Mode) approval.Request {
	return approval.Request{Kind: approval.KindMode, Items: []approval.RequestItem{{Resource: "low", Mode: m, ClusterModes: clusters}}}
}

// TestEnforceNeedsEvidence checks that Enforce needs sufficient evidence, or an administrator's reason.
func TestEnforceNeedsEvidence(t *testing.T) {
	little := approval.Score{Value: 41, Threshold: 70, Missing: []message.Message{message.Verbatim("m1 was watched on 3 of 14 days.")}}
	partly := approval.Score{Value: 81, Threshold: 70, Missing: []message.Message{message.Verbatim("Half of the connections have no name.")}}
	enough := approval.Score{Value: 70, Threshold: 70, Enough: true}
	override := func(r approval.Request) approval.Request { r.Override = "an incident"; return r }
	for name, tc := range map[string]struct {
		reason  string
		flows   flows
		who     string
		request approval.Request
		want    approval.Code
		kept    string // of the evidence in the override
	}{
		"enough":     {"nothing stands in the way", flows{score: enough}, "bob", mode(v1alpha1.ModeEnforce, nil), "", ""},
		"too little": {"the owner has to wait", flows{score: little}, "bob", mode(v1alpha1.ModeEnforce, nil), approval.CodeEvidence, ""},
		"one member": {
			"closing one member closes", flows{score: little}, "bob",
			mode("", map[string]v1alpha1.Mode{"m1": v1alpha1.ModeEnforce}), approval.CodeEvidence, "",
		},
		"unknown":          {"no flows are no evidence", flows{err: errors.New("away")}, "bob", mode(v1alpha1.ModeEnforce, nil), approval.CodeEvidence, ""},
		"owner's override": {"only administrators override", flows{score: little}, "bob", override(mode(v1alpha1.ModeEnforce, nil)), approval.CodeEvidence, ""},
		"override":         {"with a reason they may", flows{score: little}, "erin", override(mode(v1alpha1.ModeEnforce, nil)), "", "41 of 70"},
		"a part is empty": {
			"a score does not make up for what is not known at all", flows{score: partly},
			"bob", mode(v1alpha1.ModeEnforce, nil), approval.CodeEvidence, "",
		},
		"override of a part": {
			"the ledger says what it was", flows{score: partly}, "erin",
			override(mode(v1alpha1.ModeEnforce, nil)), "", "81 of 70, a part without any point",
		},
		"override of unknown": {"also when nothing is known", flows{err: errors.New("away")}, "erin", override(mode(v1alpha1.ModeEnforce, nil)), "", "unknown"},
		"needless override":   {"is not kept, since nothing was overridden", flows{score: enough}, "erin", override(mode(v1alpha1.ModeEnforce, nil)), "", ""},
		"audit":               {"opening needs no evidence", flows{score: little}, "bob", mode(v1alpha1.ModeObserve, nil), "", ""},
		"stopped": {
			"denials stopped the rollout, whatever the evidence", flows{score: enough, stopped: message.Verbatim("30 refused.")},
			"bob", mode(v1alpha1.ModeEnforce, nil), approval.CodeGuard, "",
		},
		"stopped administrator": {"nor does an override go around it", flows{score: enough, stopped: message.Verbatim("30 refused.")}, "erin",
			override(mode(v1alpha1.ModeEnforce, nil)), approval.CodeGuard, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := quiet(t)
			m.catalog = m.catalogs[0]
			m.svc.Evidence = &tc.flows
			m.host.SetObject(approval.ObjectProtectedResource, policy.PolicyNameFor(lowRes), []byte(`{"resource":"`+lowRes+`","mode":"Audit"}`))
			tc.request.Reason = "the time has come"
			x, err := m.svc.Submit(t.Context(), m.actorOf(tc.who), tc.request)
			if approval.CodeOf(err) != tc.want {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if err != nil {
				return
			}
			o := x.Items[0].Override
			if (o == nil) != (tc.kept == "") || o != nil && (o.Evidence != tc.kept || o.Reason != "an incident") {
				t.Errorf("%s: %+v", tc.reason, o)
			}
			for _, l := range m.ledger() {
				if l.Action == "ticket.submitted" && l.Details["evidence"] != tc.kept {
					t.Errorf("%s: the ledger says %v", tc.reason, l.Details)
				}
			}
		})
	}
}

// TestHalt ends what would close a resource and is not written yet, and nothing else.
func TestHalt(t *testing.T) {
	m := quiet(t)
	m.catalog = m.catalogs[0]
	m.host.SetObject(approval.ObjectProtectedResource, policy.PolicyNameFor(lowRes), []byte(`{"resource":"`+lowRes+`","mode":"Audit"}`))
	closing := m.submit("bob", mode(v1alpha1.ModeEnforce, nil))
	if halted, err := m.svc.Halt(t.Context(), closing.Number, message.Verbatim("30 refused")); !halted || err != nil {
		t.Fatalf("it was not ended: %v", err)
	}
	m.is(closing.Number, approval.StateWithdrawn)
	if _, err := m.svc.Decide(
		t.Context(), m.actorOf("carol"), closing.Number, approval.EveryItem, m.version(closing.Number), true, "",
	); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("what was ended cannot be approved: %v", err)
	}
	opening := m.submit("bob", mode(v1alpha1.ModeObserve, nil))
	if halted, err := m.svc.Halt(t.Context(), opening.Number, message.Verbatim("30 refused")); halted || err != nil {
		t.Errorf("what opens goes on: %v", err)
	}
	m.is(opening.Number, approval.StatePending)
	approved := m.submit("alice", approval.Request{Items: []approval.RequestItem{{Application: "a", Resource: "low", Actions: []string{"x:read"}}}})
	if halted, err := m.svc.Halt(t.Context(), approved.Number, message.Verbatim("30 refused")); halted || err != nil {
		t.Errorf("grants go on: %v", err)
	}
}

// TestAdopt checks that an owner of a resource may request access for observed clients, and that another owner decides.
func TestAdopt(t *testing.T) {
	ask := func(resource string) approval.Request {
		return approval.Request{Adopt: true, Reason: "seen", Items: []approval.RequestItem{{Application: "a", Resource: resource, Actions: []string{"x:read"}}}}
	}
	for name, tc := range map[string]struct {
		reason, who, resource string
		unseen                bool
		company               int
		want                  approval.Code
		steps                 map[string][]string
	}{
		"an owner asks": {"another owner decides, and never the requester", "bob", "low", false, 0, "",
			map[string][]string{"owner": {"alice", "carol", "dan"}}},
		"the only owner asks": {"security decides in their place, and another of them as the resource is sensitive", "bob", "high", false, 0, "",
			map[string][]string{"owner": {"erin", "frank"}, "security": {"erin", "frank"}}},
		"a former owner asks": {"the catalog of today counts", "bob", "high", false, 3, approval.CodeForbidden, nil},
		"security asks": {"the owner decides; a sensitive resource needs the security team, too", "erin", "high", false, 0, "",
			map[string][]string{"owner": {"bob"}, "security": {"frank"}}},
		"a stranger asks": {"adopting is the resource's business", "zoe", "low", false, 0, approval.CodeForbidden, nil},
		"an auditor asks": {"changes nothing", "otto", "low", false, 0, approval.CodeForbidden, nil},
		"not seen":        {"nobody is invited who never came", "bob", "low", true, 0, approval.CodeConflict, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := quiet(t)
			m.catalog = m.catalogs[tc.company]
			m.svc.Evidence = &flows{seen: map[string]bool{appA + " " + lowRes: !tc.unseen, appA + " " + highRes: !tc.unseen}}
			x, err := m.svc.Submit(t.Context(), m.actorOf(tc.who), ask(tc.resource))
			if approval.CodeOf(err) != tc.want {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if err != nil {
				return
			}
			got := map[string][]string{}
			for _, s := range x.Items[0].Steps {
				got[s.Name] = s.Approvers
			}
			if diff := cmp.Diff(tc.steps, got); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

// TestAdoptedOnlyByTheResourcesSide checks that a requester who lost the resource meanwhile has adopted nothing.
func TestAdoptedOnlyByTheResourcesSide(t *testing.T) {
	m := quiet(t)
	m.svc.Evidence = &flows{seen: map[string]bool{appA + " " + highRes: true}}
	x := m.submit("bob", approval.Request{Adopt: true, Items: []approval.RequestItem{{Application: "a", Resource: "high", Actions: []string{"x:read"}}}})
	m.catalog = m.catalogs[3] // erin owns it now
	for _, p := range []string{"erin", "dan", "carol", "zoe"} {
		if _, err := m.svc.Decide(t.Context(), m.actorOf(p), x.Number, approval.EveryItem, m.version(x.Number), true, ""); err == nil {
			t.Errorf("%s approved what the owner of yesterday asked for", p)
		}
	}
	m.is(x.Number, approval.StatePending)
}
