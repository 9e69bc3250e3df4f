package approval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// ObjectVanishedMessage is the message of a ticket whose object was removed outside of the portal.
const ObjectVanishedMessage = "The object was removed outside the portal. Ask again if it is still needed."

// ObjectAlteredMessage is the message of a ticket whose object was changed outside of the portal before it was in force.
const ObjectAlteredMessage = "What is in the host cluster is not what was approved: the object was changed outside the portal. Ask again if it is still needed."

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
		t.Fail(i, ObjectVanishedMessage, now)
	case seen.Generation < generation: // the cache is behind
	case !bytes.Equal(seen.Spec, it.Change.After):
		t.Fail(i, ObjectAlteredMessage, now)
	case seen.Observed < generation:
		t.leaving(i, seen.Clusters, now)
		t.waits(i, "", now)
	case seen.Refused != "":
		t.Fail(i, "The change is not in force: "+seen.Refused, now)
	case seen.Ready:
		t.clusterEvents(i, seen.Revision, seen.Clusters, now)
		t.left(i, seen.Clusters, now)
		t.objectEffective(i, now)
	default:
		t.clusterEvents(i, seen.Revision, seen.Clusters, now)
		t.left(i, seen.Clusters, now)
		t.waits(i, seen.Waits, now)
	}
}

// leaving records the members from which the change removes something, while the status still describes the state before
// the change. Only for these members it is known later that they were seen without it.
func (t *Ticket) leaving(i int, clusters []v1alpha1.ClusterState, now time.Time) {
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

// left adds an event for each member that the adapter does not list any more, because it was seen without the object.
func (t *Ticket) left(i int, clusters []v1alpha1.ClusterState, now time.Time) {
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

func (t *Ticket) waits(i int, what string, now time.Time) {
	if what == "" {
		what = "waiting for the adapter"
	}
	if t.Items[i].State == StateApplying {
		t.say(i, now, sentence(what))
	}
}
