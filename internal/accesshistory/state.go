package accesshistory

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/policy"
)

// GapKind says why the records do not cover an instant.
type GapKind string

const (
	// GapBeforeRecords means that nothing was recorded yet.
	GapBeforeRecords GapKind = "before-records"
	// GapUnread means that there are more records than one request reads.
	GapUnread GapKind = "unread"
	// GapRestored means that the portal's database was restored later, so that records were lost.
	GapRestored GapKind = "restored"
	// GapPolicy means that a policy about the resource was changed outside of the portal later, and its earlier content is not recorded; or
	// that it is not known whether it was changed before or after the instant.
	GapPolicy GapKind = "policy-changed"
	// GapOthers means that other policies or protections were changed or deleted outside of the portal later in such a way. They may have
	// named the resource.
	GapOthers GapKind = "others-changed"
	// GapMode means that the mode is not known: the protection was changed outside of the portal later in such a way, or its creation was not
	// recorded.
	GapMode GapKind = "mode-unknown"
	// GapClass means that a class was changed outside of the portal later in such a way, so that the actions of the resource may have been
	// others.
	GapClass GapKind = "class-changed"
	// GapWaves means that Enforce was being rolled out, so that some members did not have it yet.
	GapWaves GapKind = "rollout"
	// GapFailed means that the statement of a ticket had failed, so that it is not known whether the host cluster had it.
	GapFailed GapKind = "ticket-failed"
)

// Gap is something that the records do not cover.
type Gap struct {
	Kind GapKind
	// At is when the cause happened; zero if there is no single cause.
	At     time.Time
	Object string // KIND/NAME, or the ID of a ticket; empty if there is no single object
	Count  int    // of objects, for GapOthers
}

// state is the reconstruction of the objects at an instant.
type state struct {
	at        time.Time
	snapshot  *policy.Snapshot
	gaps      []Gap
	modeKnown bool
	exists    bool // the resource was onboarded
	// protections are the resource's ProtectedResources.
	protections []*v1alpha1.ProtectedResource
	// uncertain are the statements of which it is not certain that they existed.
	uncertain map[policy.Ref]bool
	tickets   map[policy.Ref]*item
}

func (s *state) gap(g Gap) { s.gaps = append(s.gaps, g) }

// stateAt reconstructs the objects at an instant. It reuses the previous snapshot as far as possible, which may be nil.
func (r *Records) stateAt(at time.Time, previous *policy.Snapshot) *state {
	r.index()
	s := &state{at: at, modeKnown: true, uncertain: map[policy.Ref]bool{}, tickets: map[policy.Ref]*item{}}
	in := r.Present
	// Addresses do not determine what is decided about names.
	in.Workloads = nil
	incomplete := r.addGaps(s)
	in.ResourceClasses = r.classesAt(s)
	s.protections = r.protectionsAt(s)
	in.Resources = s.protections
	in.Policies = r.policiesAt(s)
	if incomplete {
		markUncertain(s, in.Policies)
	}
	if previous == nil {
		previous = &policy.Snapshot{}
	}
	s.snapshot = previous.Next(in)
	return s
}

// markUncertain marks a state of an instant after which changes may be missing in the records: the mode is not known, and a statement is
// certain only if its ticket says that it was written by then.
func markUncertain(s *state, policies []*v1alpha1.AccessControlPolicy) {
	s.modeKnown = false
	for _, p := range policies {
		for i := range p.Spec.Statements {
			ref := policy.Ref{Policy: p.Name, SID: p.Spec.Statements[i].SID}
			if it := s.tickets[ref]; it == nil || !it.writtenBy(s.at) {
				s.uncertain[ref] = true
			}
		}
	}
}

// addGaps adds the gaps that concern all objects, and reports whether there are any.
func (r *Records) addGaps(s *state) bool {
	if s.at.Before(r.Begin) || r.Begin.IsZero() && s.at.Before(r.Now) {
		s.gap(Gap{Kind: GapBeforeRecords, At: r.Begin})
	}
	if s.at.Before(r.Unread) {
		s.gap(Gap{Kind: GapUnread, At: r.Unread})
	}
	for _, at := range r.Restored {
		if s.at.Before(at) {
			s.gap(Gap{Kind: GapRestored, At: at})
			break
		}
	}
	return len(s.gaps) > 0
}

// classesAt returns the resource classes of the state's instant.
func (r *Records) classesAt(s *state) []*v1alpha1.ResourceClass {
	present := map[string]*v1alpha1.ResourceClass{}
	for _, c := range r.Present.ResourceClasses {
		present[c.Name] = c
	}
	var out []*v1alpha1.ResourceClass
	for _, name := range r.namesByKind[kindClass] {
		o := r.objects[key(kindClass, name)]
		c := o.contentAt(s.at, r.Now, present[name] != nil)
		if !c.known {
			s.gap(Gap{Kind: GapClass, At: c.cause.at, Object: key(kindClass, name)})
		}
		switch {
		case !c.exists:
		case c.spec == nil:
			if present[name] != nil {
				out = append(out, present[name])
			}
		default:
			old := &v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
			if present[name] != nil {
				old.ObjectMeta = present[name].ObjectMeta
			}
			if json.Unmarshal(c.spec, &old.Spec) == nil {
				out = append(out, old)
			}
		}
	}
	return out
}

// protectionsAt returns the resource's protections of the state's instant.
func (r *Records) protectionsAt(s *state) []*v1alpha1.ProtectedResource {
	var out []*v1alpha1.ProtectedResource
	for _, name := range r.protections {
		o, present := r.objects[key(kindProtection, name)], r.protected[name]
		c := o.contentAt(s.at, r.Now, present != nil)
		if !c.known {
			s.modeKnown = false
			s.gap(Gap{Kind: GapMode, At: c.cause.at, Object: key(kindProtection, name)})
		}
		if !c.exists {
			continue
		}
		p := &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: name}}
		switch {
		case c.spec == nil && present == nil:
			continue
		case c.spec == nil:
			p = present
		case json.Unmarshal(c.spec, &p.Spec) != nil:
			s.modeKnown = false
			continue
		case string(p.Spec.Resource) != r.Resource:
			continue
		}
		s.exists = true
		out = append(out, r.withAudit(p, o, c.at, s.at))
		if before, _ := o.around(s.at); before != nil && before.ticket != nil && s.at.Before(r.Now) &&
			approval.Closes(before.ticket.Items[before.item].Change) &&
			(before.effective.IsZero() || before.effective.After(s.at)) {
			s.gap(Gap{Kind: GapWaves, At: before.at, Object: before.ticket.ID()})
		}
	}
	return out
}

// withAudit returns a protection with the temporary audit that it had at an instant. Its spec has the one of another instant, which is zero if
// it has none. That is kept, if no line says that a temporary audit began or ended in between.
func (r *Records) withAudit(p *v1alpha1.ProtectedResource, o *timeline, of, at time.Time) *v1alpha1.ProtectedResource {
	from, to := at, of
	if of.Before(at) {
		from, to = of, at
	}
	if !of.IsZero() && !slices.ContainsFunc(r.audits, func(l auditLine) bool { return l.entry.At.After(from) && !l.entry.At.After(to) }) {
		return p
	}
	out := *p
	out.Spec.TemporaryAudit = r.auditAt(o, at)
	return &out
}

// begin returns when the object that existed at an instant was created, as far as it is recorded.
func (o *timeline) begin(at time.Time) (begin time.Time) {
	for i := range o.changes {
		if c := &o.changes[i]; !c.at.After(at) && (c.created || c.deleted) {
			begin = c.at
		}
	}
	return begin
}

// auditAt returns the temporary audit of an object at an instant, as it is recorded; nil if there was none. An earlier object with its name
// took its temporary audit with it.
func (r *Records) auditAt(o *timeline, at time.Time) (audit *v1alpha1.TemporaryAudit) {
	begin := o.begin(at)
	var before *v1alpha1.TemporaryAudit // in place of the one that failed
	set := func(next *v1alpha1.TemporaryAudit) { before, audit = audit, next }
	changes := o.changes
	outside := func(until time.Time) { // the specs that changes outside of the portal wrote
		for ; len(changes) > 0 && !changes[0].at.After(until); changes = changes[1:] {
			var spec v1alpha1.ProtectedResourceSpec
			if c := &changes[0]; c.covered && c.after != nil && !c.at.Before(begin) && json.Unmarshal(c.after, &spec) == nil {
				set(spec.TemporaryAudit)
			}
		}
	}
	for _, l := range r.audits {
		if l.entry.At.After(at) {
			break
		}
		outside(l.entry.At)
		if l.entry.At.Before(begin) {
			continue
		}
		switch l.entry.Action {
		case "resource.temporary-audit":
			set(&v1alpha1.TemporaryAudit{Until: metav1.NewTime(l.until), Reason: l.entry.Details["reason"],
				By: cmp.Or(l.entry.Actor, l.entry.Details["by"]), Scope: l.entry.Details["downgrade"]})
		case "resource.temporary-audit-ended":
			set(nil)
		case "resource.temporary-audit-failed":
			audit = before
		}
	}
	outside(at)
	return audit
}

// policiesAt returns the policies about the resource of the state's instant.
func (r *Records) policiesAt(s *state) []*v1alpha1.AccessControlPolicy {
	about := map[string]bool{}
	for _, g := range r.Snapshot.WhoCanReach(r.Resource, s.at) {
		about[g.Ref.Policy] = true
	}
	for _, i := range r.items {
		about[i.policy()] = true
	}
	for object := range r.named {
		about[strings.TrimPrefix(object, kindPolicy+"/")] = true
	}
	others := Gap{Kind: GapOthers}
	count := func(kind string, counts func(name string, o *timeline) bool) {
		for _, name := range r.namesByKind[kind] {
			if o := r.objects[key(kind, name)]; counts(name, o) {
				others.Count++
				if last := o.changes[len(o.changes)-1].at; last.After(others.At) {
					others.At = last
				}
			}
		}
	}
	count(kindPolicy, func(name string, o *timeline) bool { return !about[name] && o.uncovered(s.at, false) != nil })
	count(kindProtection, func(name string, o *timeline) bool {
		c := o.uncovered(s.at, false)
		return c != nil && c.deleted && !slices.Contains(r.protections, name)
	})
	if others.Count > 0 {
		s.gap(others)
	}
	var out []*v1alpha1.AccessControlPolicy
	for _, name := range sortedNames(about) {
		if p := r.policyAt(s, name, r.policies[name]); p != nil {
			out = append(out, p)
		}
	}
	return out
}

func sortedNames(m map[string]bool) []string {
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func (i *item) policy() string {
	return cmp.Or(i.get().Policy, policy.PolicyNameFor(i.get().ResourceName))
}

// policyAt returns a policy with the statements that it had at the state's instant; nil if it did not exist.
func (r *Records) policyAt(s *state, name string, present *v1alpha1.AccessControlPolicy) *v1alpha1.AccessControlPolicy {
	o := r.objects[key(kindPolicy, name)]
	uncovered := o.uncovered(s.at, true)
	if uncovered != nil {
		s.gap(Gap{Kind: GapPolicy, At: uncovered.at, Object: key(kindPolicy, name)})
	}
	out := &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if present != nil {
		out.ObjectMeta = present.ObjectMeta
	}
	add := func(st *v1alpha1.Statement, certain bool) {
		out.Spec.Statements = append(out.Spec.Statements, *st)
		if !certain {
			s.uncertain[policy.Ref{Policy: name, SID: st.SID}] = true
		}
	}
	ours := map[string]bool{}
	for _, i := range r.items {
		if i.policy() != name {
			continue
		}
		it := i.get()
		ref := policy.Ref{Policy: name, SID: it.SID}
		s.tickets[ref], ours[it.SID] = i, true
		st, certain := r.ticketStatement(s.at, i, o, present)
		if !certain {
			s.uncertain[ref] = true
			if uncovered == nil || !uncovered.mayPrecede(s.at) {
				s.gap(Gap{Kind: GapFailed, Object: i.ticket.ID()})
			}
		}
		if st != nil {
			add(st, certain)
		}
	}
	statements, certain := otherStatements(s.at, o, present)
	for _, sid := range slices.Sorted(maps.Keys(statements)) {
		if !ours[sid] {
			add(statements[sid], certain[sid])
		}
	}
	if len(out.Spec.Statements) == 0 {
		return nil
	}
	if present != nil && equalStatements(present, out, o.hasCovered()) {
		return present // its parsed statements can be reused
	}
	return out
}

// equalStatements reports whether two policies have statements with the same sids and, if these may have been changed, the same content.
func equalStatements(a, b *v1alpha1.AccessControlPolicy, changed bool) bool {
	if len(a.Spec.Statements) != len(b.Spec.Statements) {
		return false
	}
	bySID := map[string]*v1alpha1.Statement{}
	for i := range a.Spec.Statements {
		bySID[a.Spec.Statements[i].SID] = &a.Spec.Statements[i]
	}
	return !slices.ContainsFunc(b.Spec.Statements, func(s v1alpha1.Statement) bool {
		other := bySID[s.SID]
		return other == nil || changed && !equality.Semantic.DeepEqual(other, &s)
	})
}

// statementOf returns the statement of an item in a policy; nil if it has none.
func statementOf(p *v1alpha1.AccessControlPolicy, it *approval.Item) *v1alpha1.Statement {
	if p == nil || it.SID == "" {
		return nil
	}
	i := slices.IndexFunc(p.Spec.Statements, func(s v1alpha1.Statement) bool { return s.SID == it.SID })
	if i < 0 {
		return nil
	}
	return &p.Spec.Statements[i]
}

// hadStatement reports whether the host cluster had the statement of an item at an instant, and whether that is certain. The present policy
// decides if nothing happened to the statement since.
func (i *item) hadStatement(at time.Time, present, changedOutside bool) (has, certain bool) {
	last, later := i.lastEvent(at)
	switch {
	case !later && !changedOutside:
		return present, true
	case last == nil:
		return false, true
	case last.Kind == approval.EventFailed:
		written := i.writtenBy(at) // one that the host cluster refused was never there
		return written, !written
	}
	return last.Kind != approval.EventRevokeWritten, true
}

// writtenBy reports whether the statement of an item was written up to an instant.
func (i *item) writtenBy(at time.Time) bool {
	return slices.ContainsFunc(i.events, func(e approval.Event) bool { return e.Kind == approval.EventWritten && !e.At.After(at) })
}
