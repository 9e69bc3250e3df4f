package insight

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/insight/insighttest"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/testenv/golden"
)

func TestProposeStates(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		policies *policy.Snapshot
		flows    []*audit.Batch
		want     []string // subject's end, action and state
	}{
		"New": {
			reason:   "nothing is said, and nobody looks after the resource",
			policies: with(world()),
			flows:    []*audit.Batch{flows(edge(app+"1", bobs, 6379, policy.Unmanaged), 1, 1)},
			want:     []string{"1 redis:connect new"},
		},
		"CoveredInObserve": {
			reason:   "an allow does not count in Observe, but it will",
			policies: with(world(), allow("a", app+"1", "redis:connect", bobs)),
			flows:    []*audit.Batch{flows(edge(app+"1", bobs, 6379, policy.Unmanaged), 1, 1)},
			want:     []string{"1 redis:connect covered p-a/a"},
		},
		"CoveredByWildcard": {
			reason:   "so does an allow on a wildcard",
			policies: with(world(), allow("a", app+"*", "redis:*", redis+"*")),
			flows:    []*audit.Batch{flows(edge(app+"1", bobs, 6379, policy.Allowed), 1, 1)},
			want:     []string{"1 redis:connect covered p-a/a"},
		},
		"Audited": {
			reason:   "let in only because of Audit; the word when it was seen does not matter",
			policies: with(world(), protect(bobs, v1alpha1.ModeAudit), allow("a", app+"1", "redis:admin", bobs)),
			flows:    []*audit.Batch{flows(edge(app+"1", bobs, 6379, policy.Unmanaged), 1, 1), flows(edge(app+"1", bobs, 6380, policy.Allowed), 1, 1)},
			want:     []string{"1 redis:admin covered p-a/a", "1 redis:connect audited"},
		},
		"DefaultDenied": {
			reason:   "refused today, so it is not proposed automatically",
			policies: with(world(), protect(bobs, v1alpha1.ModeEnforce)),
			flows:    []*audit.Batch{flows(edge(app+"1", bobs, 6379, policy.DefaultDenied), 1, 1)},
			want:     []string{"1 redis:connect denied"},
		},
		"EnforcedInOneMember": {
			reason:   "what still passes elsewhere will have to be decided",
			policies: with(world(), protect(bobs, v1alpha1.ModeAudit, v1alpha1.ClusterMode{Cluster: "m2", Mode: v1alpha1.ModeEnforce})),
			flows: []*audit.Batch{
				flows(edge(app+"1", bobs, 6379, policy.Audited), 1, 1),
				flows(edge(app+"1", bobs, 6379, policy.DefaultDenied, in("m2")), 1, 1),
			},
			want: []string{"1 redis:connect audited"},
		},
		"Denied": {
			reason:   "no allow helps against a deny, even one that does not count yet",
			policies: with(world(), addStatement("d", v1alpha1.EffectDeny, app+"1", "redis:connect", bobs), allow("a", app+"1", "redis:connect", bobs)),
			flows:    []*audit.Batch{flows(edge(app+"1", bobs, 6379, policy.Unmanaged), 1, 1)},
			want:     []string{"1 redis:connect denied p-d/d"},
		},
		"BesideADeny": {
			reason:   "a pod that also carries a name that is denied does not speak for those that do not",
			policies: with(world(), addStatement("d", v1alpha1.EffectDeny, svc+"x", "redis:connect", bobs)),
			flows: []*audit.Batch{flows(edge(app+"1", bobs, 6379, policy.Unmanaged, func(e *audit.Edge) { e.OtherSubjects = svc + "x" }), 1, 1),
				flows(edge(app+"1", bobs, 6379, policy.Unmanaged), 1, 1)},
			want: []string{"1 redis:connect new"},
		},
		"CoveredByItsOtherName": {
			reason:   "the pod is let in by either of its names",
			policies: with(world(), allow("a", svc+"x", "redis:connect", bobs)),
			flows: []*audit.Batch{flows(edge(app+"1", bobs, 6379, policy.Unmanaged, func(e *audit.Edge) { e.OtherSubjects = svc + "x" }), 1, 1),
				flows(edge(svc+"x", bobs, 6379, policy.Unmanaged, func(e *audit.Edge) { e.OtherSubjects = app + "1" }), 1, 1)},
			want: []string{"1 redis:connect covered p-a/a", "x redis:connect covered p-a/a"},
		},
		"WholeConnections": {
			reason:   "flows show no requests, so the action of all of them is meant",
			policies: with(world()),
			flows:    []*audit.Batch{flows(edge(app+"1", shop, 80, policy.Unmanaged), 1, 1)},
			want:     []string{"1 web:visit new"},
		},
		"OnlyRequests": {
			reason:   "where there is none of all of them, somebody has to choose",
			policies: with(world()),
			flows:    []*audit.Batch{flows(edge(app+"1", shop, 8443, policy.Unmanaged), 1, 1)},
			want:     []string{"1 web:manage new requests"},
		},
		"MachineInARange": {
			reason:   "a machine outside the fleet is let in by its address, too",
			policies: with(world(), allow("a", cidr+"10.6.0.0/24", "redis:connect", bobs)),
			flows:    []*audit.Batch{flows(edge(vm, bobs, 6379, policy.Unmanaged, func(e *audit.Edge) { e.SourceCluster = "" }), 1, 1)},
			want:     []string{"vm redis:connect covered p-a/a"},
		},
		"MachineHalfInARange": {
			reason:   "which of its addresses it was is not known, so it is not covered",
			policies: with(world(), allow("a", cidr+"10.6.0.0/31", "redis:connect", bobs)),
			flows:    []*audit.Batch{flows(edge(vm, bobs, 6379, policy.Unmanaged, func(e *audit.Edge) { e.SourceCluster = "" }), 1, 1)},
			want:     []string{"vm redis:connect new"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			resource := tc.flows[0].Rollups[0].Resource
			p := must[Proposal](t)(Propose(t.Context(), store(tc.flows...), ProposeInput{Snapshot: tc.policies, Resource: resource, Now: now}))
			var got []string
			for _, l := range p.Lines {
				text := l.Subject[strings.LastIndexAny(l.Subject, "/:")+1:] + " " + l.Action + " " + string(l.State)
				for _, ref := range l.Statements {
					text += " " + ref.String()
				}
				if l.Requests {
					text += " requests"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// busy is two weeks of a resource that has something of everything.
func busy() (*policy.Snapshot, *insighttest.Model) {
	s := with(world(), protect(bobs, v1alpha1.ModeAudit), allow("old", app+"100", "redis:connect", bobs),
		addStatement("no", v1alpha1.EffectDeny, app+"777", "redis:connect", bobs))
	return s, store(
		watched(14, "m1", "m2"),
		flows(edge(app+"100", bobs, 6379, policy.Allowed), 1000, every(14)...),
		flows(edge(app+"101", bobs, 6379, policy.Unmanaged), 20, 13, 12, 11),
		flows(edge(app+"101", bobs, 6379, policy.Audited, in("m2")), 30, 2, 1, 0),
		flows(edge(app+"weekly", bobs, 6379, policy.Audited), 1, 3, 10),
		flows(edge(app+"admin", bobs, 6380, policy.Audited), 1, 6),
		flows(edge(app+"777", bobs, 6379, policy.Audited), 5, 1),
		flows(edge("", bobs, 6379, policy.Audited, from("203.0.113.0/24")), 7, 4),
		flows(edge("", bobs, 6379, policy.Audited, from("namespace=apps,app=who\nami: x")), 3, 4),
		flows(edge("", bobs, 8080, policy.Allowed, from("reserved:host")), 5000, every(14)...),
		flows(edge(app+"metrics", bobs, 9121, policy.Audited), 40, every(14)...),
		flows(edge(app+"999", orders, 6379, policy.Audited), 99, 1),
		flows(edge(app+"long-ago", bobs, 6379, policy.Audited), 99, 20),
	)
}

func TestProposalGolden(t *testing.T) {
	s, r := busy()
	p := must[Proposal](t)(Propose(t.Context(), r, ProposeInput{Snapshot: s, Resource: bobs, Now: now}))
	golden.Compare(t, "testdata/proposal.yaml", p.YAML())
	var back v1alpha1.AccessControlPolicy
	if err := yaml.UnmarshalStrict([]byte(p.YAML()), &back); err != nil {
		t.Fatalf("the proposal is no YAML: %v", err)
	}
	if diff := cmp.Diff(p.Policy, &back); diff != "" {
		t.Errorf("the YAML is not the policy (-want +got):\n%s", diff)
	}
	again := must[Proposal](t)(Propose(t.Context(), r, ProposeInput{Snapshot: s, Resource: bobs, Now: now}))
	if diff := cmp.Diff(p, again); diff != "" {
		t.Errorf("the same question has another answer:\n%s", diff)
	}
	empty := must[Proposal](t)(Propose(t.Context(), r, ProposeInput{Snapshot: s, Resource: redis + "idle", Now: now}))
	if empty.Policy != nil {
		t.Errorf("a policy for nobody: %+v", empty.Policy)
	}
	golden.Compare(t, "testdata/nothing.yaml", empty.YAML())
}

func TestProposalYAMLOfHostileNames(t *testing.T) {
	for _, id := range []string{
		`x" # y`, "a: b", "- x", "#x", "true", "{}", "*x", "é", "'", `\`, "x:",
		"y-: z", "01", "~", "null", "&a", "!b", "%c", "@d", "`e`", "a,b", "[f]",
	} {
		p := Proposal{
			Resource: redis + id,
			Lines: []ProposalLine{
				{Subject: app + id, Action: "redis:connect", State: StateNew, Evidence: FlowEvidence{Count: 1, Clusters: []string{"m1\n- evil"}}},
			},
			Unattributed: []UnattributedLine{{Source: "a=\r\nspec: {}\u2028x\u0085y", State: StateNew}},
		}
		p.Policy = p.PolicyFor(ProposalLine.Wanted)
		var back v1alpha1.AccessControlPolicy
		if err := yaml.UnmarshalStrict([]byte(p.YAML()), &back); err != nil {
			t.Errorf("%q: %v\n%s", id, err, p.YAML())
			continue
		}
		if diff := cmp.Diff(p.Policy, &back); diff != "" {
			t.Errorf("%q: the YAML says something else (-want +got):\n%s", id, diff)
		}
	}
}

func TestRefine(t *testing.T) {
	s, r := busy()
	p := must[Proposal](t)(Refine(t.Context(), r, RefineInput{ProposeInput: ProposeInput{Snapshot: s, Resource: bobs, Now: now}, Reviewed: ago(7)}))
	var got []string
	for _, l := range p.Lines {
		got = append(got, l.Subject+" "+l.Action)
	}
	for _, u := range p.Unattributed {
		got = append(got, u.Source)
	}
	want := []string{app + "admin redis:admin", "203.0.113.0/24", "namespace=apps,app=who\nami: x"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("new since the review are those that Audit lets in and that came after it (-want +got):\n%s", diff)
	}
	if n := len(p.Policy.Spec.Statements); n != 1 {
		t.Errorf("the policy has %d statements, want that of the one new client", n)
	}
}

func TestProposeLeavesOutRareClients(t *testing.T) {
	s, r := busy()
	p := must[Proposal](t)(Propose(t.Context(), r, ProposeInput{Snapshot: s, Resource: bobs, Now: now, MinCount: 10}))
	for _, l := range p.Lines {
		if l.Evidence.Count < 10 {
			t.Errorf("%s has %d connections, fewer than asked for", l.Subject, l.Evidence.Count)
		}
	}
	if len(p.Lines) != 2 {
		t.Errorf("%d lines, want those of 100 and 101", len(p.Lines))
	}
}

func TestProposeKeepsOpenPools(t *testing.T) {
	pool := flows(edge(app+"pool", bobs, 6379, policy.Audited), 0, every(3)...)
	s := with(world(), protect(bobs, v1alpha1.ModeAudit))
	p := must[Proposal](t)(Propose(t.Context(), store(watched(14, "m1"), pool, flows(edge(app+"once", bobs, 6379, policy.Audited), 1, 2)),
		ProposeInput{Snapshot: s, Resource: bobs, Now: now, MinCount: 10}))
	if len(p.Lines) != 1 || p.Lines[0].Subject != app+"pool" {
		t.Fatalf("lines %+v, want the client whose pool was opened before anything was counted", p.Lines)
	}
	if e := p.Lines[0].Evidence; e.Count != 0 || e.Days != 3 || e.First.IsZero() || !e.First.Before(e.Last) {
		t.Errorf("evidence %+v, want three days without a new connection", e)
	}
	if got := p.Lines[0].Evidence.String(); !strings.HasPrefix(got, "open connections, ") {
		t.Errorf("said as %q", got)
	}
}

func TestPolicyForManySubjects(t *testing.T) {
	p := Proposal{Resource: bobs}
	for _, action := range []string{"redis:a-b", "redis:a.b", "redis:connect"} {
		for i := range 300 {
			p.Lines = append(p.Lines, ProposalLine{Subject: app + string(rune('a'+i/26)) + string(rune('a'+i%26)), Action: action, State: StateNew})
		}
	}
	acp := p.PolicyFor(ProposalLine.Wanted)
	sids, subjects := map[string]bool{}, 0
	for _, st := range acp.Spec.Statements {
		if sids[st.SID] || len(st.Subjects) > maxSubjects || len(st.SID) > maxSID || len(st.Actions) != 1 {
			t.Errorf("statement %q with %d subjects cannot be in a policy", st.SID, len(st.Subjects))
		}
		sids[st.SID] = true
		subjects += len(st.Subjects)
	}
	if subjects != 900 || len(sids) != 6 {
		t.Errorf("%d subjects in %d statements, want 900 in 6", subjects, len(sids))
	}
}

func TestStoreFailureIsReported(t *testing.T) {
	s, r := busy()
	for name, reader := range map[string]Reader{"Totals": broken{r}, "Coverage": uncovered{r}} {
		t.Run(name, func(t *testing.T) {
			_, err := Propose(t.Context(), reader, ProposeInput{Snapshot: s, Resource: bobs, Now: now})
			_, err2 := Replay(t.Context(), reader, ReplayInput{Before: s, After: s, Since: ago(14), Until: now})
			_, err3 := Unused(t.Context(), reader, UnusedInput{Snapshot: s, Now: now, QuietFor: 10 * day, Fleet: onlyIn("m1")})
			_, err4 := Evidence(t.Context(), reader, EvidenceInput{Snapshot: s, Resource: bobs, Now: now})
			for _, err := range []error{err, err2, err3, err4} {
				if !errors.Is(err, audit.ErrUnavailable) {
					t.Errorf("%v, want ErrUnavailable", err)
				}
			}
		})
	}
}
