package workloads

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gaissmai/bart"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
)

// Actor is the caller who registers workloads.
type Actor struct {
	ID string
	// Machine marks a caller that may register for every application, in a source of its own: a platform with a token
	// of the scope workloads:write, or, for a full sync, a security administrator in its place.
	Machine bool
	// Security marks a security administrator, who may remove every workload. Security and Auditor may read all of
	// them.
	Security, Auditor bool
}

// Cluster writes the objects. Each method returns one error for each workload, in their order.
type Cluster interface {
	// Put creates or updates objects. It refuses objects that were not registered here or belong to another source.
	Put(context.Context, []Workload) []error
	// Delete removes objects if they still have the version that was read.
	Delete(context.Context, []Registered) []error
}

// Config configures a Registrar.
type Config struct {
	Cluster Cluster
	State   *State
	Catalog func() *catalog.Catalog
	// Covered reports whether a SubjectClass covers the name.
	Covered func(subject string) (bool, error)
	// Granted reports whether any access is granted to the name.
	Granted func(subject string) (bool, error)
	// MostAddresses is how many addresses owners may register for one application; less than 1: DefaultAddresses.
	MostAddresses int
	// Record writes to the ledger before a change is made.
	Record func(context.Context, ...ledger.Entry) error
	Now    func() time.Time
}

// Registrar registers workloads. It is safe for concurrent use.
type Registrar struct {
	Config
	bounds bounds
}

// New returns a Registrar.
func New(c Config) *Registrar {
	if c.MostAddresses < 1 {
		c.MostAddresses = DefaultAddresses
	}
	return &Registrar{Config: c, bounds: bounds{written: map[string]written{}}}
}

// Outcome is the outcome for one workload in a call.
type Outcome string

const (
	// Created means that the workload was created.
	Created Outcome = "created"
	// Changed means that the workload existed and was changed.
	Changed Outcome = "changed"
	// Unchanged means that the workload was already as requested.
	Unchanged Outcome = "unchanged"
	// Removed means that the workload was removed.
	Removed Outcome = "removed"
	// Refused means that the workload was not changed. Result.Message says why.
	Refused Outcome = "refused"
)

// Result is the result for one workload in a call.
type Result struct {
	ID      string
	Outcome Outcome
	Message message.Message // why it was refused
	// NeedsApproval reports whether the registration was refused by a bound that an approval lifts.
	NeedsApproval bool
}

// Put registers workloads, or changes them by their id; an unchanged workload is not written. Each workload is
// independent: a refusal does not affect the others. A machine names the source; people register in the source Portal,
// for applications that they own.
func (r *Registrar) Put(ctx context.Context, a Actor, source string, in []Workload) ([]Result, error) {
	source, err := r.authorize(a, source)
	if err != nil {
		return nil, err
	}
	if len(in) == 0 || len(in) > MaxPut {
		return nil, message.WorkloadCallSize(MaxPut).Wrap(ErrInvalid)
	}
	r.bounds.mu.Lock() // The counts must not change until the workloads are written.
	defer r.bounds.mu.Unlock()
	out := make([]Result, len(in))
	var todo []Workload
	var at []int // the index in out of each element of todo
	beside, sums := &bart.Table[Workload]{}, r.usages(a)
	seen := map[string]bool{}
	covered := r.covered()
	for i, w := range in {
		w.Source = source
		out[i] = Result{ID: w.ID, Outcome: Unchanged}
		w, err := r.check(a, w, covered)
		if err == nil && seen[w.ID] {
			err = message.WorkloadIDTwice().Err()
		}
		if err == nil {
			err = r.contested(a, w, seen, beside)
		}
		if err == nil {
			err = sums.add(w)
		}
		if err != nil {
			out[i].Outcome, out[i].Message, out[i].NeedsApproval = Refused, message.Of(err), NeedsApproval(err)
			continue
		}
		seen[w.ID] = true
		before, known := r.State.get(w.Name())
		if known && before.equal(w) {
			continue
		}
		if out[i].Outcome = Created; known {
			out[i].Outcome = Changed
		}
		todo, at = append(todo, w), append(at, i)
		for _, p := range w.prefixes() {
			beside.Insert(p, w)
		}
	}
	if len(todo) == 0 {
		return out, nil
	}
	if err := r.Record(ctx, lines(a.ID, source, r.Now(), todo, nil)...); err != nil {
		return nil, message.WorkloadNothingRegistered().Wrap(err)
	}
	for i, err := range r.Cluster.Put(ctx, todo) {
		if err != nil {
			out[at[i]].Outcome, out[at[i]].Message = Refused, message.Of(err)
			continue
		}
		r.bounds.written[todo[i].Name()] = written{todo[i], r.Now()}
	}
	return out, nil
}

// Remove deletes workloads by their ids. An id that does not exist is Unchanged.
func (r *Registrar) Remove(ctx context.Context, a Actor, source string, ids []string) ([]Result, error) {
	if !a.Security {
		var err error
		if source, err = r.authorize(a, source); err != nil {
			return nil, err
		}
	}
	if len(ids) == 0 || len(ids) > MaxPut {
		return nil, message.WorkloadIdsCallSize(MaxPut).Wrap(ErrInvalid)
	}
	if !r.State.isReady() {
		return nil, ErrUnknown
	}
	out := make([]Result, len(ids))
	var todo []Registered
	var at []int
	for i, id := range ids {
		out[i] = Result{ID: id, Outcome: Unchanged}
		x, known := r.State.get(Workload{ID: id, Source: source}.Name())
		switch {
		case !known:
			continue
		case !x.Managed:
			out[i].Outcome, out[i].Message = Refused, message.WorkloadNotRegisteredHere()
			continue
		case !a.Machine && !a.Security && !r.owns(a, x.Subject):
			out[i].Outcome, out[i].Message = Refused, message.WorkloadNotYoursToRemove()
			continue
		}
		out[i].Outcome = Removed
		todo, at = append(todo, x), append(at, i)
	}
	if len(todo) == 0 {
		return out, nil
	}
	if err := r.Record(ctx, lines(a.ID, source, r.Now(), nil, todo)...); err != nil {
		return nil, message.WorkloadNothingRemoved().Wrap(err)
	}
	for i, err := range r.Cluster.Delete(ctx, todo) {
		if err != nil {
			out[at[i]].Outcome, out[at[i]].Message = Refused, message.Of(err)
		}
	}
	return out, nil
}

// authorize returns the source in which the actor may register.
func (r *Registrar) authorize(a Actor, source string) (string, error) {
	switch {
	case a.ID == "":
		return "", message.CallLoginFirst().WithKind(ErrForbidden)
	case !a.Machine:
		if source != "" && source != Portal {
			return "", message.WorkloadPeopleSource(Portal, source).Wrap(ErrForbidden)
		}
		return Portal, r.known()
	case source == Portal:
		return "", message.WorkloadSourceForPeople(Portal).Wrap(ErrForbidden)
	}
	if err := checkSource(source); err != nil {
		return "", err
	}
	return source, r.known()
}

func (r *Registrar) known() error {
	if !r.State.isReady() {
		return ErrUnknown
	}
	return nil
}

// check validates one workload, its subject, and that the actor may register for the subject.
func (r *Registrar) check(a Actor, w Workload, isCovered func(string) (bool, error)) (Workload, error) {
	w, err := w.normalize()
	if err != nil {
		return w, err
	}
	if !a.Machine && !r.owns(a, w.Subject) {
		return w, message.WorkloadNotYourApplication(w.Subject).Err()
	}
	covered, err := isCovered(w.Subject)
	if err != nil {
		return w, err
	}
	if !covered {
		return w, message.WorkloadNoClass(w.Subject).Err()
	}
	if x, known := r.State.get(w.Name()); known {
		if !x.Managed || x.Source != w.Source {
			return w, message.WorkloadObjectNotRegisteredHere(w.Name()).Err()
		}
		if !a.Machine && !r.owns(a, x.Subject) { // The change would take it away from another application.
			return w, message.WorkloadNotYourSubject(x.Subject).Err()
		}
	}
	return w, nil
}

// covered returns a function that calls Covered once for each subject of a call, because many machines belong to one
// application.
func (r *Registrar) covered() func(string) (bool, error) {
	known := map[string]bool{}
	return func(subject string) (bool, error) {
		yes, cached := known[subject]
		if cached {
			return yes, nil
		}
		yes, err := r.Covered(subject)
		if err == nil {
			known[subject] = yes
		}
		return yes, err
	}
}

func (r *Registrar) owns(a Actor, subject string) bool {
	c := r.Catalog()
	e, ok := c.ByName(subject)
	if !ok {
		return false
	}
	app, ok := c.Application(e.ID)
	return ok && app.Name == subject && c.Owns(a.ID, app)
}

// contested refuses addresses that are registered for another application, because then neither could connect. People
// may not register within or around other applications' addresses either, because the longer prefix wins.
func (r *Registrar) contested(a Actor, w Workload, seen map[string]bool, beside *bart.Table[Workload]) error {
	for _, p := range w.prefixes() {
		held := r.State.withPrefix(p)
		if !a.Machine {
			held = r.State.overlapping(p)
		}
		for _, x := range held {
			if x.Subject != w.Subject && x.Object != w.Name() && (!x.Managed || x.Source != w.Source || !seen[x.ID]) {
				if !a.Machine { // The message does not name an application that the caller may not see.
					return message.WorkloadOfAnotherApplication(p.String()).Err()
				}
				return message.WorkloadRegisteredFor(p.String(), x.Subject, x.Object).Err()
			}
		}
		if b, found := conflictInCall(beside, p, w.Subject, !a.Machine); found {
			return message.WorkloadInSameCall(p.String(), b.Subject, b.ID).Err()
		}
	}
	return nil
}

// conflictInCall finds a workload of another subject in the same call that has the prefix or, with overlaps, a prefix
// that overlaps it.
func conflictInCall(beside *bart.Table[Workload], p netip.Prefix, subject string, overlaps bool) (Workload, bool) {
	if b, held := beside.Get(p); held && b.Subject != subject {
		return b, true
	}
	if !overlaps {
		return Workload{}, false
	}
	for _, b := range beside.Supernets(p) {
		if b.Subject != subject {
			return b, true
		}
	}
	for _, b := range beside.Subnets(p) {
		if b.Subject != subject {
			return b, true
		}
	}
	return Workload{}, false
}

// workloadsPerLine is the largest number of workloads in one ledger line.
const workloadsPerLine = 100

func lines(actor, source string, at time.Time, put []Workload, gone []Registered) (out []ledger.Entry) {
	add := func(action string, details map[string]string) {
		out = append(out, ledger.Entry{At: at, Actor: actor, Action: action, Object: source, Details: details})
	}
	for chunk := range slices.Chunk(put, workloadsPerLine) {
		details := map[string]string{}
		for _, w := range chunk {
			details[w.ID] = w.Subject + " " + strings.Join(w.Addresses, " ")
		}
		add("workloads.registered", details)
	}
	for chunk := range slices.Chunk(gone, workloadsPerLine) {
		details := map[string]string{}
		for _, w := range chunk {
			details[w.ID] = w.Subject + " " + strings.Join(w.Addresses, " ")
		}
		add("workloads.removed", details)
	}
	return out
}
