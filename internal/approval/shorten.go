package approval

import (
	"time"

	"github.com/acp-io/acp/internal/message"
)

// Shorten gives a grant an earlier end. It reports false if the grant ends by then anyway. The statement gets the end by a
// job; the grant ends at that time even if the host cluster refuses the job's write. Only a second, different shortening
// waits for the job of the first one.
func (t *Ticket) Shorten(i int, until time.Time, why Event, now time.Time) (bool, error) {
	it := &t.Items[i]
	if !t.Kind.Access() || !it.State.MayBeOnHost() {
		return false, fail(CodeConflict, message.RevokeNoGrant(string(it.State)))
	}
	until = until.UTC().Truncate(time.Second) // as in approve
	if end := it.End(); !end.IsZero() && !until.Before(end) {
		return false, nil
	}
	if !it.ShortenTo.IsZero() {
		return false, fail(CodeConflict, message.ShortenUnderWay())
	}
	if t.Kind.Access() && it.GrantedAt.IsZero() {
		it.GrantedAt = t.granted(i) // it is computed from the end otherwise
	}
	it.ShortenTo, it.ShortenedAt = until, now
	it.WarnAt = nextWarning(it, now)
	why.Kind, why.Item = EventShortened, i
	t.event(now, why)
	t.enqueue(JobShorten, i)
	return true, nil
}

// ShortenWritten records that the statement of a shortened item has the given end, in a generation of its policy. An item
// that is not written yet has no policy, and is written with the earlier end. If the policy no longer has the approved
// statement, w is zero, and only the end of the item changes.
func (t *Ticket) ShortenWritten(i int, w Written, end, now time.Time) {
	it := &t.Items[i]
	if !it.State.MayBeOnHost() || it.ShortenTo.IsZero() {
		return
	}
	if it.Policy != "" && w != (Written{}) {
		it.PolicyUID, it.WrittenGeneration = w.UID, w.Generation
		if w.Policy != "" {
			it.Policy = w.Policy
		}
	}
	t.writtenUntil(i, end)
	t.touch(now)
}

// writtenUntil records which end the statement of an item has. If the item was shortened while the statement was being
// written, the statement has a later end and is written once more.
func (t *Ticket) writtenUntil(i int, end time.Time) {
	it := &t.Items[i]
	if !t.Kind.Access() || !it.State.MayBeOnHost() {
		return
	}
	want := it.End()
	if it.ExpiresAt, it.ShortenTo = want, (time.Time{}); !end.Equal(want) {
		it.ExpiresAt, it.ShortenTo = end, want
		t.enqueue(JobShorten, i)
	}
}
