package approval

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// VanishedMessage is what a ticket says whose statement somebody else removed.
const VanishedMessage = "No longer in force: the statement was removed from its policy outside the portal. Ask again if it is still needed."

// Unit of a policy's status that is about a resource.
func Unit(p *v1alpha1.AccessControlPolicy, resource string) (v1alpha1.PolicyUnit, bool) {
	if p == nil {
		return v1alpha1.PolicyUnit{}, false
	}
	i := slices.IndexFunc(p.Status.Units, func(u v1alpha1.PolicyUnit) bool { return string(u.Resource) == resource })
	if i < 0 {
		return v1alpha1.PolicyUnit{}, false
	}
	return p.Status.Units[i], true
}

// Missing lists the targeted members of a unit that do not have its revision yet.
func Missing(u v1alpha1.PolicyUnit) (missing []string, targeted int) {
	for _, c := range u.Clusters {
		if c.DesiredRevision == "" {
			continue
		}
		targeted++
		if c.State != v1alpha1.MemberRealized {
			missing = append(missing, string(c.Name))
		}
	}
	return missing, targeted
}

// Vanished tells whether a policy that is at least as new as the written one lacks a statement of a ticket whose
// grant is written. A nil policy is one that does not exist.
func Vanished(t *Ticket, p *v1alpha1.AccessControlPolicy) bool {
	if t.State != StateApplying && t.State != StateEffective || t.WrittenGeneration == 0 {
		return false
	}
	if p == nil {
		return true
	}
	if string(p.UID) == t.PolicyUID && p.Generation < t.WrittenGeneration {
		return false
	}
	for _, it := range t.Items {
		if !slices.ContainsFunc(p.Spec.Statements, func(s v1alpha1.Statement) bool { return s.SID == it.SID }) {
			return true
		}
	}
	return false
}

// Progress moves a ticket by what its policy's status says; it is idempotent. The policy must exist.
func (t *Ticket) Progress(p *v1alpha1.AccessControlPolicy, now time.Time) {
	switch {
	case (t.State == StateApplying || t.State == StateEffective) && t.WrittenGeneration > 0:
		if observed(p, t, t.WrittenGeneration) {
			t.grantProgress(p, now)
		}
	case t.State == StateRevoking && t.RevokeGeneration > 0:
		if observed(p, t, t.RevokeGeneration) {
			t.revokeProgress(p, now)
		}
	}
}

// observed tells whether the status is about a generation that has the ticket's change. A policy that was created
// anew counts its generations from one.
func observed(p *v1alpha1.AccessControlPolicy, t *Ticket, generation int64) bool {
	if string(p.UID) != t.PolicyUID {
		generation = 1
	}
	return p.Status.ObservedGeneration >= generation
}

func (t *Ticket) grantProgress(p *v1alpha1.AccessControlPolicy, now time.Time) {
	var waits []string
	for _, it := range t.Items {
		if i := slices.IndexFunc(p.Status.Refused, func(r v1alpha1.RefusedStatement) bool { return r.SID == it.SID }); i >= 0 {
			t.Fail("The statement is not enforced: "+p.Status.Refused[i].Message, now)
			return
		}
		u, ok := Unit(p, it.ResourceName)
		if !ok || !slices.Contains(u.SIDs, it.SID) {
			waits = append(waits, fmt.Sprintf("%s is not protected yet (no ProtectedResource in Audit or Enforce), so the grant has nothing to open", it.ResourceName))
			continue
		}
		t.clusterEvents(u, now)
		missing, targeted := Missing(u)
		if targeted == 0 {
			waits = append(waits, "the placement names no member cluster, so nothing can be in force")
		} else if len(missing) > 0 {
			waits = append(waits, "waiting for "+strings.Join(missing, ", "))
		}
	}
	if t.State == StateEffective {
		return // drift of a member is shown live; the grant itself stands
	}
	if len(waits) > 0 {
		t.say(now, sentence(waits))
		return
	}
	t.State = StateEffective
	t.event(now, Event{Kind: EventEffective})
	t.say(now, "")
}

func (t *Ticket) revokeProgress(p *v1alpha1.AccessControlPolicy, now time.Time) {
	var waits []string
	for _, it := range t.Items {
		u, ok := Unit(p, it.ResourceName)
		if !ok {
			continue // nothing of it is left in any member
		}
		if slices.Contains(u.SIDs, it.SID) {
			waits = append(waits, "waiting for the adapter")
			continue
		}
		t.clusterEvents(u, now)
		var missing []string
		for _, c := range u.Clusters {
			if c.State != v1alpha1.MemberRealized {
				missing = append(missing, string(c.Name))
			}
		}
		if len(missing) > 0 {
			waits = append(waits, "still to be taken back in "+strings.Join(missing, ", "))
		}
	}
	if len(waits) > 0 {
		t.say(now, sentence(waits))
		return
	}
	t.State = StateRevoked
	t.event(now, Event{Kind: EventRevoked})
	t.say(now, "")
}

// clusterEvents writes one line for each revision that came to a member for this ticket's sake. Once effective, later
// revisions are other tickets' stories.
func (t *Ticket) clusterEvents(u v1alpha1.PolicyUnit, now time.Time) {
	if t.State == StateEffective {
		return
	}
	if u.Revision != "" && !t.has(EventCompiled, "", u.Revision) {
		t.event(now, Event{Kind: EventCompiled, Revision: u.Revision})
	}
	for _, c := range u.Clusters {
		if c.DesiredRevision == "" {
			continue
		}
		if (c.Propagated || c.State == v1alpha1.MemberRealized) && !t.has(EventPropagated, string(c.Name), c.DesiredRevision) {
			t.event(now, Event{Kind: EventPropagated, Cluster: string(c.Name), Revision: c.DesiredRevision})
		}
		if c.State == v1alpha1.MemberRealized && !t.has(EventRealized, string(c.Name), c.DesiredRevision) {
			t.event(now, Event{Kind: EventRealized, Cluster: string(c.Name), Revision: c.DesiredRevision})
		}
	}
}

func sentence(parts []string) string {
	s := strings.Join(parts, "; ")
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
