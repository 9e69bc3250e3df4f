package approval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// ObjectProgress updates an item by the state of the object that it changes. It is idempotent.
func (t *Ticket) ObjectProgress(i int, seen ObjectSeen, now time.Time) {
	it := &t.Items[i]
	if it.Change == nil || it.WrittenGeneration == 0 || it.State != StateApplying && it.State != StateFailed {
		return
	}
	if it.Change.Verb == VerbDelete {
		if !seen.Exists || seen.UID != it.PolicyUID {
			t.objectEffective(i, now)
			return
		}
		t.waits(i, seen.Waits, now)
		return
	}
	generation := it.WrittenGeneration
	if seen.UID != it.PolicyUID {
		generation = 1
	}
	switch {
	case !seen.Exists:
		t.Fail(i, message.TicketObjectVanished(), now)
	case seen.Generation < generation: // the cache is behind
	case !bytes.Equal(seen.Spec, it.Change.After):
		t.Fail(i, message.TicketObjectAltered(), now)
	case seen.Observed < generation:
		t.recordLeaving(i, seen.Clusters, now)
		t.waits(i, message.Message{}, now)
	case !seen.Refused.IsZero():
		t.Fail(i, message.TicketChangeNotInForce(seen.Refused), now)
	case seen.Ready:
		t.clusterEvents(i, seen.Revision, seen.Clusters, now)
		t.recordRemoved(i, seen.Clusters, now)
		t.objectEffective(i, now)
	default:
		t.clusterEvents(i, seen.Revision, seen.Clusters, now)
		t.recordRemoved(i, seen.Clusters, now)
		if members := seen.unrealized(); !members.IsZero() && it.State == StateApplying {
			t.setMessage(i, now, message.TicketWaitingForMembers(members))
			return
		}
		t.waits(i, seen.Waits, now)
	}
}

// unrealized returns the members that are not in the required state; zero if there are none.
func (s ObjectSeen) unrealized() message.Message {
	var names []string
	for _, c := range s.Clusters {
		if c.State != v1alpha1.MemberRealized {
			names = append(names, string(c.Name))
		}
	}
	if unlisted := max(s.Unrealized-len(names), 0); len(names)+unlisted > 0 {
		return members(names, unlisted)
	}
	return message.Message{}
}

// recordLeaving records the members from which the change removes something, while the status still describes the state before
// the change. Only for these members it is known later that they were seen without it.
func (t *Ticket) recordLeaving(i int, clusters []v1alpha1.ClusterState, now time.Time) {
	it := &t.Items[i]
	var after v1alpha1.ProtectedResourceSpec
	if it.Change.Kind != ObjectProtectedResource || json.Unmarshal(it.Change.After, &after) != nil {
		return
	}
	modes := make(map[v1alpha1.ClusterName]v1alpha1.Mode, len(after.ClusterModes))
	for _, m := range after.ClusterModes {
		modes[m.Cluster] = m.Mode
	}
	for _, c := range clusters {
		if cmp.Or(modes[c.Name], after.Mode) == v1alpha1.ModeObserve && !slices.Contains(it.Leaving, string(c.Name)) {
			it.Leaving = append(it.Leaving, string(c.Name))
			t.touch(now)
		}
	}
}

// recordRemoved adds an event for each member that the adapter does not list any more, because it was seen without the object.
func (t *Ticket) recordRemoved(i int, clusters []v1alpha1.ClusterState, now time.Time) {
	it := &t.Items[i]
	var still []string
	for _, name := range it.Leaving {
		if slices.ContainsFunc(clusters, func(c v1alpha1.ClusterState) bool { return string(c.Name) == name }) {
			still = append(still, name)
			continue
		}
		t.event(now, Event{Kind: EventRealized, Item: i, Cluster: name})
	}
	it.Leaving = still
}

func (t *Ticket) objectEffective(i int, now time.Time) {
	if t.Items[i].State == StateFailed {
		t.Items[i].State = StateApplying
		t.touch(now)
	}
	t.effective(i, now)
}

func (t *Ticket) waits(i int, what message.Message, now time.Time) {
	if t.Items[i].State != StateApplying {
		return
	}
	if what.IsZero() {
		t.setMessage(i, now, message.TicketWaitingForAdapter())
		return
	}
	t.setMessage(i, now, message.Sentence(what))
}
