package approval

import (
	"bytes"
	"time"
)

// ObjectVanishedMessage is what a ticket says whose object somebody else removed.
const ObjectVanishedMessage = "The object was removed outside the portal. Ask again if it is still needed."

// ObjectAlteredMessage is what a ticket says whose object somebody else changed before it was in force.
const ObjectAlteredMessage = "What is in the host cluster is not what was approved: the object was changed outside the portal. Ask again if it is still needed."

// ObjectProgress moves a change of an object by what the host cluster says of it; it is idempotent.
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
		t.waits(i, "", now)
	case seen.Refused != "":
		t.Fail(i, "The change is not in force: "+seen.Refused, now)
	case seen.Ready:
		t.clusterEvents(i, seen.Revision, seen.Clusters, now)
		t.objectEffective(i, now)
	default:
		t.clusterEvents(i, seen.Revision, seen.Clusters, now)
		t.waits(i, seen.Waits, now)
	}
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
