package governance

import (
	"fmt"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// IssueKind is what is odd about a statement.
type IssueKind string

const (
	Shadowed      IssueKind = "shadowed"
	Contradictory IssueKind = "contradictory"
	Redundant     IssueKind = "redundant"
	Refused       IssueKind = "refused"
	Unused        IssueKind = "unused"
	Expiring      IssueKind = "expiring"
	Expired       IssueKind = "expired"
)

// ExpiresSoon is how long before its end a statement counts as expiring.
const ExpiresSoon = 14 * 24 * time.Hour

// Issue of a statement.
type Issue struct {
	Kind    IssueKind
	Message string
	// Others are the statements that make it so.
	Others []policy.Ref
}

// Issues by statement; those without any are left out. What is refused is what the adapter said of the policies, because
// it alone knows what the members can do. Unused needs the flows, and is added by who has them.
func Issues(s *policy.Snapshot, at time.Time) map[policy.Ref][]Issue {
	out := map[policy.Ref][]Issue{}
	add := func(ref policy.Ref, i Issue) { out[ref] = append(out[ref], i) }
	for _, f := range s.Analyze(at) {
		add(f.Ref, Issue{Kind: IssueKind(f.Kind), Message: f.Message, Others: f.Other})
	}
	var last *v1alpha1.AccessControlPolicy
	for _, w := range s.Statements() {
		if w.Policy != last { // statements come policy by policy
			last = w.Policy
			there := map[string]bool{}
			for i := range last.Spec.Statements {
				there[last.Spec.Statements[i].SID] = true
			}
			for _, r := range last.Status.Refused {
				if there[r.SID] { // else it was removed meanwhile
					add(policy.Ref{Policy: last.Name, SID: r.SID}, Issue{Kind: Refused, Message: r.Message})
				}
			}
		}
		if slices.Contains(last.Status.RefusedOthers, w.Ref.SID) {
			add(w.Ref, Issue{Kind: Refused, Message: noReason})
		}
		end := w.Statement.NotAfter
		switch {
		case end == nil:
		case !at.Before(end.Time):
			add(w.Ref, Issue{Kind: Expired, Message: fmt.Sprintf("it ended at %s and decides nothing any more", end.UTC().Format(time.RFC3339))})
		case end.Sub(at) <= ExpiresSoon:
			add(w.Ref, Issue{Kind: Expiring, Message: fmt.Sprintf("it ends at %s", end.UTC().Format(time.RFC3339))})
		}
	}
	return out
}
