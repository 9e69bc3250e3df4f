package workloads

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/acp-io/acp/internal/message"
)

// Sync describes what a full sync of a source changes.
type Sync struct {
	// Token identifies exactly these workloads and the removals.
	Token                              string
	Added, Changed, Removed, Unchanged int
	// Refused workloads stay unchanged.
	Refused []Result
	// Sample contains some of the workloads that would be removed.
	Sample []Registered
	// Unconfirmed reports whether the removals exceed UnconfirmedLimit, so that a person has to confirm them.
	Unconfirmed bool
	Applied     bool
}

const maxSample = 100

// UnconfirmedLimit returns how many of a source's workloads a full sync removes without confirmation.
func UnconfirmedLimit(registered int) int { return max(registered/10, 10) }

// plan is a sync with the writes that it needs.
type plan struct {
	Sync
	put  []Workload
	gone []Registered
}

// PreviewSync returns what a full sync would change.
func (r *Registrar) PreviewSync(_ context.Context, a Actor, source string, in []Workload) (Sync, error) {
	p, err := r.plan(a, source, in)
	return p.Sync, err
}

// ApplySync replaces the source's workloads by these, as the preview with the token showed. It writes new and changed
// workloads first; after an interrupted call, a new preview shows the rest. With confirm, removals may exceed
// UnconfirmedLimit.
func (r *Registrar) ApplySync(ctx context.Context, a Actor, source string, in []Workload, token string, confirm bool) (Sync, error) {
	p, err := r.plan(a, source, in)
	switch {
	case err != nil:
		return Sync{}, err
	case token != p.Token:
		return Sync{}, message.WorkloadPreviewUnknown().Wrap(ErrChanged)
	case p.Unconfirmed && !confirm:
		return p.Sync, message.WorkloadSyncUnconfirmed(p.Removed).Wrap(ErrUnconfirmed)
	}
	if len(p.put)+len(p.gone) > 0 {
		if err := r.Record(ctx, lines(a.ID, source, r.Now(), p.put, p.gone)...); err != nil {
			return Sync{}, message.WorkloadNothingChanged().Wrap(err)
		}
	}
	known := r.State.ofSource(source)
	for i, err := range r.Cluster.Put(ctx, p.put) {
		if err == nil {
			continue
		}
		p.Refused = append(p.Refused, Result{ID: p.put[i].ID, Outcome: Refused, Message: message.Of(err)})
		if _, was := known[p.put[i].Name()]; was {
			p.Changed--
		} else {
			p.Added--
		}
	}
	if ctx.Err() == nil {
		for i, err := range r.Cluster.Delete(ctx, p.gone) {
			if err != nil {
				p.Removed--
				p.Refused = append(p.Refused, Result{ID: p.gone[i].ID, Outcome: Refused, Message: message.Of(err)})
			}
		}
	}
	p.Applied = true
	return p.Sync, ctx.Err()
}

func (r *Registrar) plan(a Actor, source string, in []Workload) (plan, error) {
	var p plan
	if !a.Machine {
		return p, message.WorkloadSyncNotAllowed().Wrap(ErrForbidden)
	}
	source, err := r.authorize(a, source)
	if err != nil {
		return p, err
	}
	if len(in) > MaxSync {
		return p, message.WorkloadSyncSize(MaxSync).Wrap(ErrInvalid)
	}
	known := r.State.ofSource(source)
	desired := map[string]Workload{}
	kept := map[string]bool{} // refused, but they exist
	refuse := func(w Workload, err error) {
		p.Refused = append(p.Refused, Result{ID: w.ID, Outcome: Refused, Message: message.Of(err)})
		kept[w.Name()] = true
	}
	covered := r.covered()
	for _, w := range in {
		w.Source = source
		w, err := r.check(a, w, covered)
		if _, twice := desired[w.Name()]; err == nil && twice {
			err = message.WorkloadIDTwice().Err()
		}
		if err != nil {
			refuse(w, err)
			continue
		}
		desired[w.Name()] = w
	}
	r.refuseContested(known, desired, kept, refuse)
	r.enforceBounds(a, known, desired, kept, refuse)
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		w := desired[name]
		switch before, was := known[name]; {
		case was && before.equal(w):
			p.Unchanged++
		case was:
			p.Changed++
			p.put = append(p.put, w)
		default:
			p.Added++
			p.put = append(p.put, w)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if _, stays := desired[name]; !stays && !kept[name] {
			p.gone = append(p.gone, known[name])
		}
	}
	p.Removed = len(p.gone)
	p.Sample = p.gone[:min(len(p.gone), maxSample)]
	p.Unconfirmed = p.Removed > UnconfirmedLimit(len(known))
	slices.SortFunc(p.Refused, func(a, b Result) int { return strings.Compare(a.ID, b.ID) })
	p.Token, err = tokenOf(source, p.put, p.gone)
	return p, err
}

// enforceBounds refuses workloads by which an application would have too many addresses. Addresses that the same sync
// removes do not count.
func (r *Registrar) enforceBounds(a Actor, known map[string]Registered, desired map[string]Workload, kept map[string]bool, refuse func(Workload, error)) {
	r.bounds.mu.Lock()
	defer r.bounds.mu.Unlock()
	s := r.usages(a)
	for name, x := range known {
		if _, stays := desired[name]; !stays && !kept[name] {
			s.replace(Workload{ID: x.ID, Source: x.Source})
		}
	}
	var changes []string
	for name, w := range desired {
		if x, was := known[name]; !was || !x.equal(w) {
			changes = append(changes, name)
		}
	}
	slices.Sort(changes) // Which ones are refused must not depend on the order of a map.
	for _, name := range changes {
		w := desired[name]
		if err := s.add(w); err != nil {
			delete(desired, name)
			refuse(w, err)
		}
	}
}

// refuseContested refuses addresses that two applications would have after the sync: the addresses of other sources,
// and those of this source that stay, take precedence over new ones.
func (r *Registrar) refuseContested(known map[string]Registered, desired map[string]Workload, kept map[string]bool, refuse func(Workload, error)) {
	holders := map[string]Workload{} // by address
	for name := range kept {
		if x, was := known[name]; was {
			for _, a := range x.Addresses {
				holders[a] = x.Workload
			}
		}
	}
	var stays, changes []string
	for name, w := range desired {
		if x, was := known[name]; was && x.equal(w) {
			stays = append(stays, name)
		} else {
			changes = append(changes, name)
		}
	}
	slices.Sort(stays)
	slices.Sort(changes)
	for _, name := range append(stays, changes...) {
		w := desired[name]
		if err := r.conflict(w, known, holders); err != nil {
			delete(desired, name)
			refuse(w, err)
			for _, a := range known[name].Addresses { // The workload stays unchanged.
				holders[a] = known[name].Workload
			}
			continue
		}
		for _, a := range w.Addresses {
			holders[a] = w
		}
	}
}

func (r *Registrar) conflict(w Workload, known map[string]Registered, holders map[string]Workload) error {
	for _, a := range w.Addresses {
		if h, held := holders[a]; held && h.Subject != w.Subject {
			return message.WorkloadRegisteredFor(a, h.Subject, h.ID).Err()
		}
	}
	for _, p := range w.prefixes() {
		for _, x := range r.State.withPrefix(p) {
			if _, ours := known[x.Object]; !ours && x.Subject != w.Subject {
				return message.WorkloadRegisteredFor(p.String(), x.Subject, x.Object).Err()
			}
		}
	}
	return nil
}

func tokenOf(source string, put []Workload, gone []Registered) (string, error) {
	h := sha256.New()
	enc := json.NewEncoder(h)
	names := make([]string, len(gone))
	for i, x := range gone {
		names[i] = x.Object
	}
	if err := enc.Encode([]any{source, put, names}); err != nil {
		return "", fmt.Errorf("make the token: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
