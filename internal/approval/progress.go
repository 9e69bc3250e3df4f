package approval

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/acp-io/acp/api/v1alpha1"
)

// VanishedMessage is what a ticket says whose statement somebody else removed.
const VanishedMessage = "No longer in force: the statement was removed from its policy outside the portal. Ask again if it is still needed."

// AlteredMessage is what a ticket says whose statement somebody else changed. The portal does not put the approved one
// back: what was changed may have been narrowed in an emergency.
const AlteredMessage = "What is in the policy is not what was approved: the statement was changed outside the portal. Revoke it, and ask again if it is still needed."

// ReturnedMessage is what a ticket says whose statement somebody else put back after its end.
const ReturnedMessage = "The statement was put back into its policy outside the portal; it is removed again."

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
	if t.precedes(p, t.WrittenGeneration) {
		return false
	}
	return slices.ContainsFunc(t.Items, func(it Item) bool { return statementOf(p, it) == nil })
}

// Altered tells whether a policy that is at least as new as the written one has another statement under a ticket's sid
// than the one that was approved.
func Altered(t *Ticket, p *v1alpha1.AccessControlPolicy) bool {
	if t.State != StateApplying && t.State != StateEffective || t.WrittenGeneration == 0 || p == nil || t.precedes(p, t.WrittenGeneration) {
		return false
	}
	return !t.asApproved(p)
}

// asApproved tells whether every statement in a policy is the one that was approved; the policy may lack some.
func (t *Ticket) asApproved(p *v1alpha1.AccessControlPolicy) bool {
	return !slices.ContainsFunc(t.Items, func(it Item) bool {
		s := statementOf(p, it)
		return s != nil && !equality.Semantic.DeepEqual(*s, Statement(t, it))
	})
}

// Returned tells whether a policy has a statement again that was removed from it. A statement that became a deny is
// nobody's access, and stays.
func Returned(t *Ticket, p *v1alpha1.AccessControlPolicy) bool {
	switch t.State {
	case StateRevoking, StateRevoked, StateExpired:
	default:
		return false
	}
	if p == nil || p.Name != t.Policy || t.RevokeGeneration == 0 || t.precedes(p, t.RevokeGeneration) {
		return false
	}
	return slices.ContainsFunc(t.Items, func(it Item) bool {
		s := statementOf(p, it)
		return s != nil && s.Effect == v1alpha1.EffectAllow
	})
}

// precedes tells whether a policy is older than one of its generations; one that was created anew never is.
func (t *Ticket) precedes(p *v1alpha1.AccessControlPolicy, generation int64) bool {
	return string(p.UID) == t.PolicyUID && p.Generation < generation
}

func statementOf(p *v1alpha1.AccessControlPolicy, it Item) *v1alpha1.Statement {
	i := slices.IndexFunc(p.Spec.Statements, func(s v1alpha1.Statement) bool { return s.SID == it.SID })
	if i < 0 {
		return nil
	}
	return &p.Spec.Statements[i]
}

// Progress moves a ticket by what its policy's status says; it is idempotent. The policy must exist.
func (t *Ticket) Progress(p *v1alpha1.AccessControlPolicy, now time.Time) {
	switch {
	case (t.State == StateApplying || t.State == StateEffective) && t.WrittenGeneration > 0:
		if observed(p, t, t.WrittenGeneration) {
			t.grantProgress(p, now)
		}
	case t.State == StateFailed && t.WrittenGeneration > 0:
		if observed(p, t, t.WrittenGeneration) && t.inForceAgain(p) {
			t.State = StateApplying
			t.touch(now)
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

// inForceAgain tells that what made a written ticket fail is gone, so that its statements count: it must not say otherwise.
func (t *Ticket) inForceAgain(p *v1alpha1.AccessControlPolicy) bool {
	return t.asApproved(p) && !slices.ContainsFunc(t.Items, func(it Item) bool {
		u, ok := Unit(p, it.ResourceName)
		return statementOf(p, it) == nil || !ok || !slices.Contains(u.SIDs, it.SID) ||
			slices.ContainsFunc(p.Status.Refused, func(r v1alpha1.RefusedStatement) bool { return r.SID == it.SID })
	})
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
	t.clustersWithout(now)
	t.State = StateRevoked
	if t.has(EventExpired, "", "") {
		t.State = StateExpired
	}
	t.event(now, Event{Kind: EventRevoked})
	t.say(now, "")
}

// clustersWithout writes the line of each member that had the grant and was seen without it in the adapter's last word,
// which drops the unit together with the revision.
func (t *Ticket) clustersWithout(now time.Time) {
	had, without := []string{}, map[string]bool{}
	for _, e := range t.Events {
		switch e.Kind {
		case EventRealized:
			if !slices.Contains(had, e.Cluster) {
				had = append(had, e.Cluster)
			}
			without[e.Cluster] = true
		case EventRevokeRequested, EventExpired:
			clear(without)
		}
	}
	for _, cluster := range had {
		if !without[cluster] {
			t.event(now, Event{Kind: EventRealized, Cluster: cluster})
		}
	}
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
