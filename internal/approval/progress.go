package approval

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// Unit returns the unit of a resource in a policy's status. If there is none, the status may have no room for it: see
// AccessControlPolicyStatus.UnitsUnlisted.
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

// containsStatement reports whether a unit contains a statement. known is false if the status has no room for the sids of the unit.
func containsStatement(u *v1alpha1.PolicyUnit, sid string) (has, known bool) {
	has = slices.Contains(u.SIDs, sid)
	return has, has || !u.LacksSIDs()
}

// Missing returns the targeted members of a unit that do not have its revision yet. unlisted is the number of those that
// the status does not list.
func Missing(u v1alpha1.PolicyUnit) (missing []string, unlisted, targeted int) {
	for _, c := range u.States() {
		if c.DesiredRevision == "" {
			continue
		}
		targeted++
		if c.State != v1alpha1.MemberRealized {
			missing = append(missing, string(c.Name))
		}
	}
	if u.Unlisted() > 0 {
		n := u.Counts()
		return missing, max(int(n.Waiting)-len(missing), 0), int(n.Targeted)
	}
	return missing, 0, targeted
}

// remaining returns the members of a unit that are not in the required state, including those that must not have it.
func remaining(u v1alpha1.PolicyUnit) (names []string, unlisted int) {
	for _, c := range u.States() {
		if c.State != v1alpha1.MemberRealized {
			names = append(names, string(c.Name))
		}
	}
	if u.Unlisted() > 0 {
		n := u.Counts()
		unlisted = max(int(n.Total-n.Realized)-len(names), 0)
	}
	return names, unlisted
}

// mostNamed bounds the members that a message names.
const mostNamed = 20

// members returns members by name, followed by the number of the others.
func members(names []string, unlisted int) message.Message {
	if n := len(names) - mostNamed; n > 0 {
		names, unlisted = names[:mostNamed], unlisted+n
	}
	switch {
	case unlisted == 0:
		return message.NamesList(names)
	case len(names) == 0:
		return message.MembersCount(unlisted)
	default:
		return message.MembersNamesAndMore(names, unlisted)
	}
}

// Vanished reports whether the statement of an item that is written is missing in a policy that is at least as new as the
// written one. A nil policy is one that does not exist.
func Vanished(it Item, p *v1alpha1.AccessControlPolicy) bool {
	if it.State != StateApplying && it.State != StateEffective || it.WrittenGeneration == 0 {
		return false
	}
	if p == nil {
		return true
	}
	return !it.precedes(p, it.WrittenGeneration) && statementOf(p, it) == nil
}

// Altered reports whether a policy that is at least as new as the written one has a statement under an item's sid that is
// not the approved one.
func Altered(it Item, p *v1alpha1.AccessControlPolicy) bool {
	if it.State != StateApplying && it.State != StateEffective || it.WrittenGeneration == 0 || p == nil || it.precedes(p, it.WrittenGeneration) {
		return false
	}
	return !it.asApproved(p)
}

// asApproved reports whether the statement in a policy is the approved one, or missing.
func (it Item) asApproved(p *v1alpha1.AccessControlPolicy) bool {
	s := statementOf(p, it)
	return s == nil || it.isApproved(*s)
}

// isApproved reports whether a statement is the approved one, with its end before or after a shortening.
func (it Item) isApproved(s v1alpha1.Statement) bool {
	if equality.Semantic.DeepEqual(s, Statement(it)) {
		return true
	}
	it.ShortenTo = time.Time{}
	return equality.Semantic.DeepEqual(s, Statement(it))
}

// Returned reports whether a policy has a removed statement again. A statement that is now a deny does not count, because
// it grants no access.
func Returned(it Item, p *v1alpha1.AccessControlPolicy) bool {
	switch it.State {
	case StateRevoking, StateRevoked, StateExpired:
	default:
		return false
	}
	if p == nil || p.Name != it.Policy || it.RevokeGeneration == 0 || it.precedes(p, it.RevokeGeneration) {
		return false
	}
	s := statementOf(p, it)
	return s != nil && s.Effect == v1alpha1.EffectAllow
}

// before reports whether a policy is older than the last write that the item records. A cache may be behind; a policy of the API server itself
// is older only if the host cluster was restored to an earlier state.
func (it Item) before(p *v1alpha1.AccessControlPolicy) bool {
	if p == nil || p.Name != it.Policy {
		return false
	}
	switch it.State {
	case StateApplying, StateEffective:
		return it.WrittenGeneration > 0 && it.precedes(p, it.WrittenGeneration)
	case StateRevoking, StateRevoked, StateExpired:
		return it.RevokeGeneration > 0 && it.precedes(p, it.RevokeGeneration)
	}
	return false
}

// hostRestored updates an item whose policy is that of a host cluster that was restored to an earlier state. What was revoked since is removed
// again, and a statement that is missing or different is not in force.
func (t *Ticket) hostRestored(i int, p *v1alpha1.AccessControlPolicy, now time.Time) {
	it := &t.Items[i]
	s := statementOf(p, *it)
	switch it.State {
	case StateApplying, StateEffective:
		it.WrittenGeneration = p.Generation
		t.touch(now)
		if s == nil {
			t.Fail(i, message.TicketStatementVanished(), now)
		} else if !it.isApproved(*s) {
			t.Fail(i, message.TicketStatementAltered(), now)
		}
	case StateRevoking, StateRevoked, StateExpired:
		if s != nil && s.Effect == v1alpha1.EffectAllow {
			t.Remove(i, now)
		} else if it.State == StateRevoking { // the status may be that of the earlier state, too
			it.RevokeGeneration = 0
			t.touch(now)
			t.enqueue(JobRemove, i)
		}
	}
}

// precedes reports whether a policy is older than one of its generations. A policy that was created again never is.
func (it Item) precedes(p *v1alpha1.AccessControlPolicy, generation int64) bool {
	return string(p.UID) == it.PolicyUID && p.Generation < generation
}

func statementOf(p *v1alpha1.AccessControlPolicy, it Item) *v1alpha1.Statement {
	i := slices.IndexFunc(p.Spec.Statements, func(s v1alpha1.Statement) bool { return s.SID == it.SID })
	if i < 0 {
		return nil
	}
	return &p.Spec.Statements[i]
}

// Progress updates an item by the status of its policy, which must exist. It is idempotent.
func (t *Ticket) Progress(i int, p *v1alpha1.AccessControlPolicy, now time.Time) {
	it := &t.Items[i]
	switch {
	case (it.State == StateApplying || it.State == StateEffective) && it.WrittenGeneration > 0:
		if it.observed(p, it.WrittenGeneration) {
			t.grantProgress(i, p, now)
		}
	case it.State == StateFailed && it.WrittenGeneration > 0:
		if it.observed(p, it.WrittenGeneration) && it.inForceAgain(p) {
			it.State = StateApplying
			t.touch(now)
			t.grantProgress(i, p, now)
		}
	case it.State == StateRevoking && it.RevokeGeneration > 0:
		if it.observed(p, it.RevokeGeneration) {
			t.revokeProgress(i, p, now)
		}
	}
}

// observed reports whether the status is about a generation that contains the item's change. The generations of a policy
// that was created again start at one.
func (it Item) observed(p *v1alpha1.AccessControlPolicy, generation int64) bool {
	if string(p.UID) != it.PolicyUID {
		generation = 1
	}
	return p.Status.ObservedGeneration >= generation
}

// inForceAgain reports whether a failed item is in force again because the cause of its failure is gone.
func (it Item) inForceAgain(p *v1alpha1.AccessControlPolicy) bool {
	if it.Scope != nil {
		return statementOf(p, it) != nil && it.asApproved(p) && len(it.unitsWith(p)) > 0 && it.refused(p).IsZero()
	}
	u, ok := Unit(p, it.ResourceName)
	return statementOf(p, it) != nil && it.asApproved(p) && ok && slices.Contains(u.SIDs, it.SID) && it.refused(p).IsZero()
}

// refused returns why the item's statement is not enforced; the zero Message if it is not refused.
func (it Item) refused(p *v1alpha1.AccessControlPolicy) message.Message {
	i := slices.IndexFunc(p.Status.Refused, func(r v1alpha1.RefusedStatement) bool { return r.SID == it.SID })
	switch {
	case i >= 0:
		r := p.Status.Refused[i]
		return cmp.Or(message.Restore(r.Message, r.MessageCode, r.MessageParams), message.Verbatim(r.Reason), message.WriteRefusedNoReason())
	case slices.Contains(p.Status.RefusedOthers, it.SID):
		return message.WriteRefusedStatusFull()
	default:
		return message.Message{}
	}
}

func (t *Ticket) grantProgress(i int, p *v1alpha1.AccessControlPolicy, now time.Time) {
	it := &t.Items[i]
	if why := it.refused(p); !why.IsZero() {
		t.Fail(i, message.TicketStatementNotEnforced(why), now)
		return
	}
	if _, outside := it.HoursBegin(now); outside {
		// No member has the statement now. The ticket does not wait for its hours, because while it does nobody could request other access.
		if it.State != StateEffective {
			t.effective(i, now)
		}
		return
	}
	var wait message.Message
	if it.Scope != nil {
		t.statementProgress(i, p, now)
		return
	}
	u, ok := Unit(p, it.ResourceName)
	has, known := containsStatement(&u, it.SID)
	switch {
	case !ok && p.Status.UnitsUnlisted() > 0, ok && !known:
		wait = message.TicketStatusFull()
	case !ok || !has:
		wait = message.TicketResourceNotProtected(it.ResourceName)
	default:
		t.clusterEvents(i, u.Revision, u.States(), now)
		missing, unlisted, targeted := Missing(u)
		if targeted == 0 {
			wait = message.TicketNoMemberPlaced()
		} else if len(missing)+unlisted > 0 {
			wait = message.TicketWaitingForMembers(members(missing, unlisted))
		}
	}
	if it.State == StateEffective {
		return // drift in a member is shown elsewhere; the grant stays in force
	}
	if !wait.IsZero() {
		t.setMessage(i, now, wait)
		return
	}
	t.effective(i, now)
}

// mostEdges bounds the search for the beginning of hours: they begin and end at most so often in a week, and the zone's offset may change.
const mostEdges = 2*7*maxHourPeriods + 2

// HoursBegin reports whether the access is outside of its hours at an instant, and when they begin next.
func (it *Item) HoursBegin(at time.Time) (begin time.Time, outside bool) {
	if it.Hours == nil {
		return time.Time{}, false
	}
	hours, err := policy.ParseHours(it.Hours)
	if err != nil || hours.Open(at) { // the adapter refuses invalid hours
		return time.Time{}, false
	}
	begin = at
	for range mostEdges {
		if begin, outside = hours.Next(begin); !outside || hours.Open(begin) {
			break
		}
	}
	return begin, true
}

func (t *Ticket) effective(i int, now time.Time) {
	t.Items[i].State = StateEffective
	t.event(now, Event{Kind: EventEffective, Item: i})
	t.setMessage(i, now, message.Message{})
}

func (t *Ticket) revokeProgress(i int, p *v1alpha1.AccessControlPolicy, now time.Time) {
	it := &t.Items[i]
	if it.Scope != nil {
		t.statementRemoval(i, p, now)
		return
	}
	u, ok := Unit(p, it.ResourceName)
	if !ok && p.Status.UnitsUnlisted() > 0 {
		t.setMessage(i, now, message.TicketStatusFull())
		return
	}
	if ok { // otherwise no member has anything of it
		has, known := containsStatement(&u, it.SID)
		if !known {
			t.setMessage(i, now, message.TicketStatusFull())
			return
		}
		if has {
			t.setMessage(i, now, message.TicketWaitingForAdapter())
			return
		}
		t.clusterEvents(i, u.Revision, u.States(), now)
		if names, unlisted := remaining(u); len(names)+unlisted > 0 {
			t.setMessage(i, now, message.TicketRemovingFromMembers(members(names, unlisted)))
			return
		}
	}
	t.gone(i, now)
}

// gone records that no member has the grant any more.
func (t *Ticket) gone(i int, now time.Time) {
	it := &t.Items[i]
	t.clustersWithout(i, now)
	it.State = StateRevoked
	if t.has(i, EventExpired, "", "") {
		it.State = StateExpired
	}
	t.event(now, Event{Kind: EventRevoked, Item: i})
	t.setMessage(i, now, message.Message{})
}

// clustersWithout adds an event for each member that had the grant and was seen without it in the adapter's last report,
// which removes the unit together with the revision.
func (t *Ticket) clustersWithout(i int, now time.Time) {
	had, without := []string{}, map[string]bool{}
	for _, e := range t.Events {
		if e.Item != i {
			continue
		}
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
			t.event(now, Event{Kind: EventRealized, Item: i, Cluster: cluster})
		}
	}
}

// clusterEvents adds one event for each revision that was compiled, and read back from a member, because of this item. Later
// revisions, once the item is effective, belong to other tickets.
func (t *Ticket) clusterEvents(i int, compiled string, clusters []v1alpha1.ClusterState, now time.Time) {
	if t.Items[i].State == StateEffective {
		return
	}
	once := func(kind EventKind, cluster, revision string) {
		if !t.has(i, kind, cluster, revision) {
			t.event(now, Event{Kind: kind, Item: i, Cluster: cluster, Revision: revision})
		}
	}
	if compiled != "" {
		once(EventCompiled, "", compiled)
	}
	for _, c := range clusters {
		if c.DesiredRevision != "" && c.State == v1alpha1.MemberRealized {
			once(EventRealized, string(c.Name), c.DesiredRevision)
		}
	}
}
