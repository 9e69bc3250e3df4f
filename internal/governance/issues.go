package governance

import (
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// IssueKind classifies an issue of a statement.
type IssueKind string

const (
	// Shadowed is the issue of an allow of which denies remove everything.
	Shadowed IssueKind = "shadowed"
	// Contradictory is the issue of an allow of which denies remove a part.
	Contradictory IssueKind = "contradictory"
	// Redundant is the issue of a statement of which other statements of the same effect contain everything, for at
	// least as long.
	Redundant IssueKind = "redundant"
	// Refused is the issue of a statement that cannot be translated as written and is left out in the members.
	Refused IssueKind = "refused"
	// Unused is the issue of an allow by which no connection was let in during the quiet period.
	Unused IssueKind = "unused"
	// Expiring is the issue of a statement that ends within ExpiresSoon.
	Expiring IssueKind = "expiring"
	// Expired is the issue of a statement that has ended.
	Expired IssueKind = "expired"
)

// ExpiresSoon is the time before its end in which a statement counts as expiring.
const ExpiresSoon = 14 * 24 * time.Hour

// Issue is one reason why a statement of a policy should be changed or removed, such as that it is expired, refused or has no effect.
type Issue struct {
	Kind    IssueKind
	Message message.Message
	// Others are the statements that cause it.
	Others []policy.Ref
}

// Issues returns the issues by statement; statements without issues are left out. Refusals are taken from the policies'
// statuses, because only the adapter reads the members' capabilities. Unused statements depend on flows and are added
// by the caller.
func Issues(s *policy.Snapshot, at time.Time) map[policy.Ref][]Issue {
	out := map[policy.Ref][]Issue{}
	add := func(ref policy.Ref, i Issue) { out[ref] = append(out[ref], i) }
	for _, f := range s.Analyze(at) {
		add(f.Ref, Issue{Kind: IssueKind(f.Kind), Message: f.Message, Others: f.Other})
	}
	var last *v1alpha1.AccessControlPolicy
	for _, w := range s.Statements() {
		if w.Policy != last { // statements are ordered by policy
			last = w.Policy
			there := map[string]bool{}
			for i := range last.Spec.Statements {
				there[last.Spec.Statements[i].SID] = true
			}
			for _, r := range last.Status.Refused {
				if there[r.SID] { // otherwise it was removed meanwhile
					add(policy.Ref{Policy: last.Name, SID: r.SID}, Issue{Kind: Refused, Message: message.Restore(r.Message, r.MessageCode, r.MessageParams)})
				}
			}
		}
		if slices.Contains(last.Status.RefusedOthers, w.Ref.SID) {
			add(w.Ref, Issue{Kind: Refused, Message: message.FindingRefusalLeftOut()})
		}
		end := w.Statement.NotAfter
		switch {
		case end == nil:
		case !at.Before(end.Time):
			add(w.Ref, Issue{Kind: Expired, Message: message.IssueExpired(end.UTC().Format(time.RFC3339))})
		case end.Sub(at) <= ExpiresSoon:
			add(w.Ref, Issue{Kind: Expiring, Message: message.IssueExpiring(end.UTC().Format(time.RFC3339))})
		}
	}
	return out
}
