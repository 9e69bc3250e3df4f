package workloads

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gaissmai/bart"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/ledger"
)

// Actor is who registers.
type Actor struct {
	ID string
	// Machine speaks for every application, in a source of its own: a platform with a token of the scope workloads:write,
	// or, for a full sync, a security administrator in its place.
	Machine bool
	// Security administrators may take away what anyone registered; they and Auditor see all of it.
	Security, Auditor bool
}

// Cluster is where the objects are. Each answer is that of the workload at its place.
type Cluster interface {
	// Put creates or updates objects that are managed here and of the same source.
	Put(context.Context, []Workload) []error
	// Delete removes objects if they are still of the version that was seen.
	Delete(context.Context, []Registered) []error
}

// Config of a Registrar.
type Config struct {
	Cluster Cluster
	State   *State
	Catalog func() *catalog.Catalog
	// Covered tells whether a SubjectClass knows the name.
	Covered func(subject string) (bool, error)
	// Granted tells whether any access is granted to the name.
	Granted func(subject string) (bool, error)
	// MostAddresses that owners may register for one application; less than 1: DefaultAddresses.
	MostAddresses int
	// Record writes to the ledger, before anything is done.
	Record func(context.Context, ...ledger.Entry) error
	Now    func() time.Time
}

// Registrar registers workloads. Safe for concurrent use.
type Registrar struct {
	Config
	bounds bounds
}

// New registrar.
func New(c Config) *Registrar {
	if c.MostAddresses < 1 {
		c.MostAddresses = DefaultAddresses
	}
	return &Registrar{Config: c, bounds: bounds{written: map[string]written{}}}
}

// Outcome of one workload in a call.
type Outcome string

const (
	Created   Outcome = "created"
	Changed   Outcome = "changed"
	Unchanged Outcome = "unchanged"
	Removed   Outcome = "removed"
	Refused   Outcome = "refused"
)

// Result of one workload in a call.
type Result struct {
	ID      string
	Outcome Outcome
	Message string // why it was refused
}

// Put registers workloads, or changes them by their id; the same again changes nothing. Each stands alone: one that is
// refused does not hold up the others. A machine names the source; people register in Portal, for applications that
// they own.
func (r *Registrar) Put(ctx context.Context, a Actor, source string, in []Workload) ([]Result, error) {
	source, err := r.may(a, source)
	if err != nil {
		return nil, err
	}
	if len(in) == 0 || len(in) > MaxPut {
		return nil, fmt.Errorf("give 1 to %d workloads in a call, or a full sync: %w", MaxPut, ErrInvalid)
	}
	r.bounds.mu.Lock() // what is counted must not change until it is written
	defer r.bounds.mu.Unlock()
	out := make([]Result, len(in))
	var todo []Workload
	var at []int // of todo in out
	beside, sums := &bart.Table[Workload]{}, r.sums(a)
	seen := map[string]bool{}
	covered := r.covered()
	for i, w := range in {
		w.Source = source
		out[i] = Result{ID: w.ID, Outcome: Unchanged}
		w, err := r.check(a, w, covered)
		if err == nil && seen[w.ID] {
			err = fmt.Errorf("the id is there twice")
		}
		if err == nil {
			err = r.contested(a, w, seen, beside)
		}
		if err == nil {
			err = sums.add(w)
		}
		if err != nil {
			out[i].Outcome, out[i].Message = Refused, err.Error()
			continue
		}
		seen[w.ID] = true
		before, known := r.State.get(w.Name())
		if known && before.same(w) {
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
		return nil, fmt.Errorf("nothing was registered, the ledger cannot be written: %w", err)
	}
	for i, err := range r.Cluster.Put(ctx, todo) {
		if err != nil {
			out[at[i]].Outcome, out[at[i]].Message = Refused, err.Error()
			continue
		}
		r.bounds.written[todo[i].Name()] = written{todo[i], r.Now()}
	}
	return out, nil
}

// Remove takes workloads away by their ids. What is not there counts as removed.
func (r *Registrar) Remove(ctx context.Context, a Actor, source string, ids []string) ([]Result, error) {
	if !a.Security {
		var err error
		if source, err = r.may(a, source); err != nil {
			return nil, err
		}
	}
	if len(ids) == 0 || len(ids) > MaxPut {
		return nil, fmt.Errorf("give 1 to %d ids in a call: %w", MaxPut, ErrInvalid)
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
			out[i].Outcome, out[i].Message = Refused, "it was not registered here"
			continue
		case !a.Machine && !a.Security && !r.owns(a, x.Subject):
			out[i].Outcome, out[i].Message = Refused, "only the owners of its application and the security team remove it"
			continue
		}
		out[i].Outcome = Removed
		todo, at = append(todo, x), append(at, i)
	}
	if len(todo) == 0 {
		return out, nil
	}
	if err := r.Record(ctx, lines(a.ID, source, r.Now(), nil, todo)...); err != nil {
		return nil, fmt.Errorf("nothing was removed, the ledger cannot be written: %w", err)
	}
	for i, err := range r.Cluster.Delete(ctx, todo) {
		if err != nil {
			out[at[i]].Outcome, out[at[i]].Message = Refused, err.Error()
		}
	}
	return out, nil
}

// may tells for which source the actor speaks.
func (r *Registrar) may(a Actor, source string) (string, error) {
	switch {
	case a.ID == "":
		return "", ErrForbidden
	case !a.Machine:
		if source != "" && source != Portal {
			return "", fmt.Errorf("people register in the source %q; %q belongs to a platform with a token: %w", Portal, source, ErrForbidden)
		}
		return Portal, r.known()
	case source == Portal:
		return "", fmt.Errorf("the source %q is for people: %w", Portal, ErrForbidden)
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

// check one workload: its form, its subject, and whether the actor speaks for that.
func (r *Registrar) check(a Actor, w Workload, isCovered func(string) (bool, error)) (Workload, error) {
	w, err := w.normal()
	if err != nil {
		return w, err
	}
	if !a.Machine && !r.owns(a, w.Subject) {
		return w, fmt.Errorf("you do not own the application %s", w.Subject)
	}
	covered, err := isCovered(w.Subject)
	if err != nil {
		return w, err
	}
	if !covered {
		return w, fmt.Errorf("no class of subjects covers %s", w.Subject)
	}
	if x, known := r.State.get(w.Name()); known {
		if !x.Managed || x.Source != w.Source {
			return w, fmt.Errorf("the object %s exists and was not registered here", w.Name())
		}
		if !a.Machine && !r.owns(a, x.Subject) { // taking it away from another application
			return w, fmt.Errorf("the workload acts as %s, which you do not own", x.Subject)
		}
	}
	return w, nil
}

// covered asks once for each subject of a call: many machines are of one application.
func (r *Registrar) covered() func(string) (bool, error) {
	known := map[string]bool{}
	return func(subject string) (bool, error) {
		yes, asked := known[subject]
		if asked {
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

// contested refuses addresses that another application has: then none of the two could connect. People may not even
// register within or around what others have, because the longer prefix wins.
func (r *Registrar) contested(a Actor, w Workload, seen map[string]bool, beside *bart.Table[Workload]) error {
	for _, p := range w.prefixes() {
		held := r.State.holding(p)
		if !a.Machine {
			held = r.State.overlapping(p)
		}
		for _, x := range held {
			if x.Subject != w.Subject && x.Object != w.Name() && (!x.Managed || x.Source != w.Source || !seen[x.ID]) {
				if !a.Machine { // who may not see it is not told whose it is
					return fmt.Errorf("%s is registered for another application", p)
				}
				return fmt.Errorf("%s is registered for %s (%s)", p, x.Subject, x.Object)
			}
		}
		if b, found := besides(beside, p, w.Subject, !a.Machine); found {
			return fmt.Errorf("%s is in the same call for %s (%s)", p, b.Subject, b.ID)
		}
	}
	return nil
}

// besides finds a workload of another subject in the same call that has a prefix, or one that overlaps with it.
func besides(beside *bart.Table[Workload], p netip.Prefix, subject string, overlaps bool) (Workload, bool) {
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

// linesOf is how many workloads a line of the ledger tells of.
const linesOf = 100

func lines(actor, source string, at time.Time, put []Workload, gone []Registered) (out []ledger.Entry) {
	add := func(action string, details map[string]string) {
		out = append(out, ledger.Entry{At: at, Actor: actor, Action: action, Object: source, Details: details})
	}
	for chunk := range slices.Chunk(put, linesOf) {
		details := map[string]string{}
		for _, w := range chunk {
			details[w.ID] = w.Subject + " " + strings.Join(w.Addresses, " ")
		}
		add("workloads.registered", details)
	}
	for chunk := range slices.Chunk(gone, linesOf) {
		details := map[string]string{}
		for _, w := range chunk {
			details[w.ID] = w.Subject + " " + strings.Join(w.Addresses, " ")
		}
		add("workloads.removed", details)
	}
	return out
}
