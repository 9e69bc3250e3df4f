package accesshistory

import (
	"bytes"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/externalchanges"
	"github.com/acp-io/acp/internal/externalchanges/event"
)

// recorder does with the objects of a world what the portals' recorder does, with the same ledger entries.
type recorder struct {
	w              *world
	live, recorded map[externalchanges.Key]*externalchanges.RecordedObject
	own            map[externalchanges.OwnChange]bool
	uids           int
	// down reports whether no portal runs.
	down bool
	// watched is when the last change is known to be recorded.
	watched time.Time
	// The following are of the changes that are not recorded.
	contents map[string]map[int64]externalchanges.Content
	gone     []externalchanges.Row
	changes  []event.Change
}

// record begins to record the changes of the world's objects.
func (w *world) record() *recorder {
	w.recorder = &recorder{w: w, recorded: map[externalchanges.Key]*externalchanges.RecordedObject{}, own: map[externalchanges.OwnChange]bool{},
		live: map[externalchanges.Key]*externalchanges.RecordedObject{}, contents: map[string]map[int64]externalchanges.Content{}}
	w.recorder.look(true, "")
	return w.recorder
}

// look finds what was done since the last time, by the portal or a user, who is empty if the webhook did not report it. Portals that run
// record it.
func (r *recorder) look(own bool, user string) {
	r.w.t.Helper()
	r.find(own, user, true)
	if !r.down {
		r.flush()
	}
}

// find finds what was done since the last time. seen says whether a portal that runs sees the content of what it finds.
func (r *recorder) find(own bool, user string, seen bool) {
	r.w.t.Helper()
	now := map[externalchanges.Key]metav1.Object{}
	for _, o := range r.w.input.Policies {
		now[externalchanges.Key{Kind: kindPolicy, Name: o.Name}] = o
	}
	for _, o := range r.w.input.Resources {
		now[externalchanges.Key{Kind: kindProtection, Name: o.Name}] = o
	}
	for _, o := range r.w.input.ResourceClasses {
		now[externalchanges.Key{Kind: kindClass, Name: o.Name}] = o
	}
	changed := func(o externalchanges.Row, operation event.Operation) {
		generation := o.Generation
		if operation == event.Delete {
			generation = externalchanges.Deletion
		}
		if own {
			r.own[externalchanges.OwnChange{UID: o.UID, Generation: generation}] = true
		} else if user != "" {
			r.changes = append(r.changes, event.Change{At: r.w.now, User: user, UID: o.UID, Operation: operation, Generation: o.Generation})
		}
	}
	for k, old := range maps.Clone(r.live) {
		if now[k] == nil || !old.Created.Equal(now[k].GetCreationTimestamp().Time) {
			delete(r.live, k)
			r.gone = append(r.gone, old.Row)
			changed(old.Row, event.Delete)
		}
	}
	for k, o := range now {
		content := r.w.content(o)
		next := externalchanges.RecordedObject{Row: externalchanges.Row{Key: k, Generation: 1}, Content: content, At: r.w.now}
		operation := event.Create
		if old := r.live[k]; old != nil {
			if bytes.Equal(old.Spec, content.Spec) {
				continue
			}
			next.UID, next.Generation, operation = old.UID, old.Generation+1, event.Update
		} else {
			r.uids++
			next.UID = string(rune('A' + r.uids))
		}
		r.live[k] = &next
		changed(next.Row, operation)
		if seen && !r.down {
			if r.contents[next.UID] == nil {
				r.contents[next.UID] = map[int64]externalchanges.Content{}
			}
			r.contents[next.UID][next.Generation] = content
		}
	}
}

func (w *world) content(o metav1.Object) externalchanges.Content {
	w.t.Helper()
	var spec any
	switch o := o.(type) {
	case *v1alpha1.AccessControlPolicy:
		spec = o.Spec
	case *v1alpha1.ProtectedResource:
		spec = o.Spec
	case *v1alpha1.ResourceClass:
		spec = o.Spec
	}
	text, err := externalchanges.Canonical(spec)
	if err != nil {
		w.t.Fatal(err)
	}
	return externalchanges.Content{Spec: text, Created: o.GetCreationTimestamp().Time}
}

// flush writes the entries about what was found.
func (r *recorder) flush() {
	keys := map[externalchanges.Key]bool{}
	for k := range r.live {
		keys[k] = true
	}
	for k := range r.recorded {
		keys[k] = true
	}
	for k := range keys {
		before, now := r.recorded[k], r.live[k]
		o := externalchanges.Observation{Before: before, Contents: r.contents, Changes: r.changes, Since: r.watched, At: r.w.now}
		if now != nil {
			o.Current = &externalchanges.LiveObject{Row: now.Row, Content: now.Content}
		}
		if !r.down {
			o.Intermediate = slices.DeleteFunc(slices.Clone(r.gone), func(g externalchanges.Row) bool { return g.Key != k })
		}
		if before != nil && before.At.After(o.Since) {
			o.Since = before.At
		}
		r.w.lines = append(r.w.lines, o.Lines(r.own)...)
		delete(r.recorded, k)
		if now != nil {
			copied := *now
			copied.At = r.w.now
			r.recorded[k] = &copied
		}
	}
	r.contents, r.gone, r.changes = map[string]map[int64]externalchanges.Content{}, nil, nil
	r.watched = r.w.now
}

// stop stops the portals, and start starts them, which then find what was done meanwhile.
func (r *recorder) stop() { r.down, r.watched = true, r.w.now }

func (r *recorder) start() {
	r.w.t.Helper()
	r.gone = nil // nobody saw what existed only meanwhile
	r.flush()
	r.down = false
	r.follow()
}

// by does something outside of the portal, which the portal sees within half a minute if it runs.
func (r *recorder) by(user string, do func()) {
	r.w.t.Helper()
	if !r.down {
		r.watched = r.w.now.Add(-30 * time.Second)
	}
	do()
	r.look(false, user)
	if !r.down {
		r.follow()
	}
	r.w.hour()
}

// portal does something in the portal.
func (r *recorder) portal(do func()) {
	r.w.t.Helper()
	do()
	r.look(true, "")
}

// follow fails the tickets whose statements were removed or changed outside of the portal.
func (r *recorder) follow() {
	for _, t := range r.w.tickets {
		it := &t.Items[0]
		if t.Kind != approval.KindGrant || it.State != approval.StateEffective {
			continue
		}
		st := statementOf(r.w.policy(ours), it)
		if st == nil || !bytes.Equal(marshal(r.w.t, st), marshal(r.w.t, approval.Statement(*it))) {
			it.State = approval.StateFailed
			r.w.event(t, approval.EventFailed)
		}
	}
}

// hand returns a statement by hand.
func hand(sid, resource string, effect v1alpha1.Effect, subject string) v1alpha1.Statement {
	return v1alpha1.Statement{SID: sid, Effect: effect, Subjects: []v1alpha1.Subject{v1alpha1.Subject(subject)},
		Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(resource)}}
}

// setMode changes the mode of the protection, or creates it.
func (w *world) setMode(mode v1alpha1.Mode) {
	p := &v1alpha1.ProtectedResource{}
	p.Name, p.CreationTimestamp, p.Spec.Resource = ours, w.at(), bobs
	if old := w.protection(); old != nil {
		p = old.DeepCopy()
	}
	p.Spec.Mode = mode
	w.protect(p)
}

// setStatements replaces the statements of a policy; it is created if there is none.
func (w *world) setStatements(name string, list ...v1alpha1.Statement) {
	w.edit(name, func(p *v1alpha1.AccessControlPolicy) { p.Spec.Statements = list })
}
