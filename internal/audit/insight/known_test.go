package insight

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// TestKnown checks which clients are new since a review, also if the window of the proposal begins after the review.
func TestKnown(t *testing.T) {
	snapshot := with(world(), protect(bobs, v1alpha1.ModeAudit))
	model := store(
		flows(edge(app+"steady", bobs, 6379, policy.Audited), 1, 10, 5, 1),
		flows(edge(app+"other-action", bobs, 6379, policy.Audited), 1, 10, 1), flows(edge(app+"other-action", bobs, 6380, policy.Audited), 1, 1),
		flows(edge(app+"new", bobs, 6379, policy.Audited), 1, 1),
		flows(edge(app+"long-gone", bobs, 6379, policy.Audited), 1, 120, 1),
		flows(edge("", bobs, 6379, policy.Audited, from("203.0.113.0/24")), 1, 10, 1),
		flows(edge("", bobs, 6379, policy.Audited, from("198.51.100.0/24")), 1, 1),
		flows(edge(app+"steady", bobs, 9121, policy.Audited), 1, 10, 1), flows(edge(app+"new", bobs, 9121, policy.Audited), 1, 1),
	)
	for _, days := range []int{14, 2} {
		in := ProposeInput{Snapshot: snapshot, Resource: bobs, Since: ago(days), Now: now}
		p := must[Proposal](t)(Propose(t.Context(), model, in))
		k := must[*KnownClients](t)(Known(t.Context(), model, KnownInput{ProposeInput: in, Before: ago(7)}))
		got := []string{}
		for _, l := range p.Lines {
			if !k.Line(l) {
				got = append(got, l.Subject+" "+l.Action)
			}
		}
		for _, l := range p.Unattributed {
			if !k.Source(l) {
				got = append(got, l.Source)
			}
		}
		for _, u := range p.UnknownPorts {
			for _, client := range u.Clients {
				if !k.Port(u.Protocol, u.Port, client) {
					got = append(got, client+" at 9121")
				}
			}
		}
		want := []string{
			app + "other-action redis:admin", app + "long-gone redis:connect", app + "new redis:connect", "198.51.100.0/24", app + "new at 9121",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("new since the review with a window of %d days (-want +got):\n%s", days, diff)
		}
	}
}

// TestKnownWithoutFirstSeen checks that a client of which it is not known when it was first seen is new.
func TestKnownWithoutFirstSeen(t *testing.T) {
	k := KnownClients{before: now}
	if k.Line(ProposalLine{Subject: app + "1", Action: "redis:connect"}) || k.Source(UnattributedLine{Source: "x"}) || k.Port("TCP", 1, "x") {
		t.Error("a client is old without evidence")
	}
	at := audit.Rollup{Bucket: now.Add(-time.Minute), Edge: edge(app+"1", bobs, 6379, policy.Audited), Count: 1, FirstSeen: now.Add(time.Second), LastSeen: now}
	in := ProposeInput{Snapshot: with(world()), Resource: bobs, Now: now}
	later := must[*KnownClients](t)(Known(t.Context(), store(&audit.Batch{Rollups: []audit.Rollup{at}}), KnownInput{ProposeInput: in, Before: now}))
	if later.Line(ProposalLine{Subject: app + "1", Action: "redis:connect"}) {
		t.Error("a client that was first seen after the review in the same minute is old")
	}
	if _, err := Known(t.Context(), broken{}, KnownInput{ProposeInput: in, Before: now}); !errors.Is(err, errBroken) {
		t.Errorf("a failure of the store: %v", err)
	}
}
