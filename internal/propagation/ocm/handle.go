package ocm

import (
	"cmp"
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/acp-io/acp/internal/federation"
)

// failureOf returns the reason of a failed write, which does not change from one attempt to the next. A ManifestWork that changed meanwhile
// is none.
func failureOf(err error) string {
	switch {
	case err == nil || errors.Is(err, errSuperseded):
		return ""
	case errors.Is(err, errTextTooLong):
		return reasonTooLong
	}
	return cmp.Or(string(apierrors.ReasonForError(err)), reasonNoAnswer)
}

// handle makes the next change that an object needs in a member, and returns when to handle it again, or 0 if only after an event.
func (e *Engine) handle(ctx context.Context, at place) (time.Duration, error) {
	c, ok := e.config.Works.config.Members.Cluster(at.cluster)
	if !ok || !c.HasWorkAgent() || !e.config.Works.listed(at.cluster) {
		return 0, nil // Registrations, and the end of the first list, are events.
	}
	o, recorded := e.config.Host.Get(at.key)
	w := e.work(at)
	if c.Quarantined {
		return 0, e.hold(ctx, w)
	}
	switch {
	case c.Engine != federation.EngineOCM && c.Engine != federation.EngineNone && recorded && isToBeAbsent(o, at.cluster):
		return e.releaseAbsent(ctx, at, w)
	case c.Engine != federation.EngineOCM:
		return e.release(ctx, at, w)
	case !recorded:
		// Without a record nothing is known about the object. The member keeps it, and it is reported as an orphan.
		e.update(at, func(p *progress) { *p = progress{} })
		return 0, e.keep(ctx, w) // the record is gone
	case o.Meta.DeletionTimestamp != nil:
		if _, err := federation.WithoutKubeFedFinalizer(ctx, e.config.Host, o); err != nil && !errors.Is(err, federation.ErrStale) {
			return 0, err
		}
		return 0, e.keep(ctx, w)
	case o.ForeignFields:
		return 0, e.keep(ctx, w)
	case o.IsPlacedIn(at.cluster):
		return e.apply(ctx, at, o, w)
	}
	return e.ensureAbsent(ctx, at, o, w)
}

// keep leaves an object in a member as it is, and makes the agent report on it again after it was away.
func (e *Engine) keep(ctx context.Context, w *work) error {
	if w == nil || w.deleting || w.purpose == purposeRead {
		return nil
	}
	if alive, _ := e.config.Works.alive(w.cluster); !alive || e.config.Works.isOfPresentEpoch(w) {
		return nil
	}
	return e.config.Works.refresh(ctx, w)
}

// hold stops the agent from changing an object while the member is quarantined: the agent then only reports on it.
func (e *Engine) hold(ctx context.Context, w *work) error {
	if w == nil || w.deleting || w.readOnly {
		return e.keep(ctx, w)
	}
	return e.config.Works.suspend(ctx, w)
}

// release makes the agent stop owning an object in a member that uses another engine now. The object stays there.
func (e *Engine) release(ctx context.Context, at place, w *work) (time.Duration, error) {
	works := e.config.Works
	switch {
	case w == nil:
		e.update(at, func(p *progress) { *p = progress{} })
		return 0, nil
	case w.deleting:
		return 0, nil
	case w.purpose == purposeRead:
		return 0, works.remove(ctx, w)
	case w.purpose != purposeRelease || !w.orphan || w.readOnly:
		e.update(at, func(p *progress) { p.asked = attempts{} })
		return 0, works.release(ctx, w)
	case !w.applied:
		return 0, nil
	case w.refused == "":
		return 0, works.remove(ctx, w) // the agent owns nothing any more
	}
	return e.retryRequest(at, func() error { return works.release(ctx, w) })
}

// isToBeAbsent reports whether a record says that a member must not have the object.
func isToBeAbsent(o *federation.Object, cluster string) bool {
	return o.Meta.DeletionTimestamp == nil && !o.ForeignFields && !o.IsPlacedIn(cluster)
}

// releaseAbsent is release for an object that the other engine has to remove. An agent that handles the version of release afterwards would create the
// object again, with the content that the ManifestWork has, so the agent must not write it at all. The ManifestWork is deleted when the member was read
// without the object: the agent then has nothing to delete, also if the object is placed again meanwhile, because it does not delete an object that
// was created again.
func (e *Engine) releaseAbsent(ctx context.Context, at place, w *work) (time.Duration, error) {
	switch {
	case w == nil || w.deleting || w.purpose == purposeRead:
		return e.release(ctx, at, w)
	case !w.readOnly:
		return 0, e.config.Works.suspend(ctx, w)
	case !w.applied || e.config.Read == nil || !isAbsent(e.config.Read.Observe(at.cluster, at.key)):
		return 0, nil // An event follows when the agent has handled this version, and when the object is gone.
	}
	return 0, e.config.Works.remove(ctx, w)
}

// isAbsent reports whether a member was read without the object.
func isAbsent(seen federation.Observation) bool { return seen.Reachable && seen.Object == nil }

// retryRequest repeats a request to the agent after a delay that grows with each attempt.
func (e *Engine) retryRequest(at place, ask func() error) (time.Duration, error) {
	asked := e.progressOf(at).asked
	if wait := asked.wait(e.clock.Now()); wait > 0 {
		return wait, nil
	}
	e.update(at, func(p *progress) { p.asked = asked.next(e.clock.Now()) })
	return 0, ask()
}

// contradictsReport reports whether the adapter itself read another revision in the member than the agent reported, so that the ManifestWork has to
// be written again. Otherwise the agent would report the change only at its interval.
func (e *Engine) contradictsReport(at place, revision string) bool {
	if e.config.Read == nil {
		return false
	}
	seen := e.config.Read.Observe(at.cluster, at.key)
	return seen.Reachable && (seen.Object == nil || seen.Object.Revision != revision)
}

// apply makes the member have a recorded object.
func (e *Engine) apply(ctx context.Context, at place, o *federation.Object, w *work) (time.Duration, error) {
	e.update(at, func(p *progress) { p.absence, p.adopted = "", attempts{} })
	if w != nil && w.deleting {
		return 0, nil // The agent removes the object. An event follows when it has, and then the object is created again.
	}
	d, err := objectWork(o, at.cluster, purposeApply, e.revisionIn(o, at.cluster), e.config.Of)
	if err != nil {
		return 0, err
	}
	return e.ensure(ctx, at, &d, w)
}

// ensure makes a ManifestWork have a content, and requests another report of the agent from time to time until it reports that the member has it.
func (e *Engine) ensure(ctx context.Context, at place, d *desired, w *work) (time.Duration, error) {
	if w == nil || !d.matches(w) {
		e.update(at, func(p *progress) { p.asked = attempts{} })
		return 0, e.config.Works.write(ctx, d, e.config.Works.nonce(at.cluster))
	}
	if alive, _ := e.config.Works.alive(at.cluster); !alive {
		return 0, nil // An event follows when the agent is back.
	}
	if !e.config.Works.isOfPresentEpoch(w) {
		return 0, e.config.Works.write(ctx, d, e.config.Works.nonce(at.cluster))
	}
	switch {
	case w.exact() && !e.contradictsReport(at, d.revision):
		e.update(at, func(p *progress) { p.asked = attempts{} })
		return 0, nil
	case w.exact():
	case !w.applied || w.refused == "" && !w.answered() && w.available == available:
		return 0, nil // An event follows when the agent has handled this version, and read the object.
	}
	// The member differs, or refuses the object. A new version makes the agent retry at once; otherwise it waits for minutes.
	return e.retryRequest(at, func() error { return e.config.Works.write(ctx, d, e.config.Works.nonce(at.cluster)) })
}

// ensureAbsent removes an object from a member, in these steps, of which all but the second can be reverted:
//
//  1. The ManifestWork no longer lets the agent write the object, and the agent confirms it, so that no earlier version is in flight.
//  2. The ManifestWork is deleted, which makes the agent delete the object.
//  3. A read request makes the agent report whether the member has the object.
//  4. If it has, because somebody created it again or the agent does not own it, the agent adopts it, and the steps begin again.
func (e *Engine) ensureAbsent(ctx context.Context, at place, o *federation.Object, w *work) (time.Duration, error) {
	works := e.config.Works
	if w == nil && e.progressOf(at).absence == e.absenceOf(at, o) && e.isInMember(at) {
		works.countFound(place{at.cluster, e.config.Of.key(at.key)}) // Somebody created it again.
		return 0, nil
	}
	if w == nil && (!o.WasPlacedIn(at.cluster) || e.progressOf(at).absence == e.absenceOf(at, o)) {
		return 0, nil
	}
	if alive, _ := works.alive(at.cluster); !alive || w != nil && w.deleting {
		return 0, nil // The deletion of a ManifestWork cannot be reverted, so it waits until the agent is alive. An event follows.
	}
	switch {
	case w == nil:
		d := readRequest(o, at.cluster, e.config.Of)
		return 0, works.write(ctx, &d, works.nonce(at.cluster))
	case w.purpose == purposeRead:
		return e.handleReadResult(ctx, at, o, w)
	case w.purpose == purposeAdopt && !w.exact():
		return e.adopt(ctx, at, o, w)
	case !w.readOnly:
		return 0, works.suspend(ctx, w)
	case !w.applied:
		return 0, nil
	}
	return 0, works.remove(ctx, w) // the agent removes the object
}

// isInMember reports whether the adapter itself read the object in the member.
func (e *Engine) isInMember(at place) bool {
	if e.config.Read == nil {
		return false
	}
	seen := e.config.Read.Observe(at.cluster, at.key)
	return seen.Reachable && seen.Object != nil
}

// handleReadResult handles what the agent reported for a read request.
func (e *Engine) handleReadResult(ctx context.Context, at place, o *federation.Object, w *work) (time.Duration, error) {
	works := e.config.Works
	switch {
	case w.record != recordOf(o) || !works.isOfPresentEpoch(w):
		return 0, works.remove(ctx, w) // The request is outdated. A new one follows.
	case !w.applied || w.available == "":
		return 0, nil
	case w.missing():
		absence := e.absenceOf(at, o)
		if e.update(at, func(p *progress) { p.absence, p.adopted = absence, attempts{} }) {
			e.config.Reported(at.key)
		}
		return 0, works.remove(ctx, w)
	}
	p := e.progressOf(at)
	if wait := p.adopted.wait(e.clock.Now()); wait > 0 {
		return wait, nil
	}
	e.update(at, func(p *progress) { p.adopted = p.adopted.next(e.clock.Now()) })
	if w.available != available {
		return 0, works.remove(ctx, w) // The object could not be read. A new request follows.
	}
	return e.adopt(ctx, at, o, w)
}

// adopt makes the agent own an object that has to be removed, so that the agent deletes it with the ManifestWork.
func (e *Engine) adopt(ctx context.Context, at place, o *federation.Object, w *work) (time.Duration, error) {
	d, err := objectWork(o, at.cluster, purposeAdopt, e.config.Revision(o.TemplateSpec), e.config.Of)
	if err != nil {
		return 0, err
	}
	return e.ensure(ctx, at, &d, w)
}

// revisionIn returns the revision of the recorded spec for a member.
func (e *Engine) revisionIn(o *federation.Object, cluster string) string {
	if revision := o.RevisionIn(cluster); revision != "" {
		return revision
	}
	return e.config.Revision(o.SpecIn(cluster))
}
