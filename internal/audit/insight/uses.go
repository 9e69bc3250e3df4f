package insight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// Use describes the observed connections that a statement allows.
type Use struct {
	LastUsed time.Time // zero if no use was seen
	Count    int64
	// Refused reports whether a connection was refused that the statement allows as it is written.
	Refused bool
	// Uncertain reports whether connections were seen that the statement may have allowed: it names a range of addresses, and the address that they
	// came from is not known.
	Uncertain bool
}

// UsesInput is the input of Uses.
type UsesInput struct {
	Snapshot *policy.Snapshot
	// Resources restricts the search to these; at least one, unless Every is set.
	Resources []string
	// Every searches the flows of every resource, and not only of Resources.
	Every      bool
	Since, Now time.Time
	// From returns since when a statement gives its access; zero, or a nil function, if uses count from Since on. Earlier
	// connections were not uses of the statement, even if the statement would have allowed them.
	From func(policy.Ref) time.Time
}

// usesOf returns the number of the connections of a total that were seen since an instant. If some were seen before it, the
// number is in proportion to the days with traffic.
func usesOf(t *audit.Total, from time.Time) int64 {
	switch {
	case t.LastSeen.Before(from):
		return 0
	case !t.FirstSeen.Before(from) || len(t.Days) == 0:
		return t.Count
	}
	days := 0
	for _, d := range t.Days {
		if !d.Add(24 * time.Hour).Before(from) {
			days++
		}
	}
	return max(t.Count*int64(days)/int64(len(t.Days)), 1)
}

// Uses returns the use of every statement that allows, or would allow in Enforce, a connection that was seen. If several
// statements allow a connection, it is a use of each.
func Uses(ctx context.Context, r Reader, in UsesInput) (map[policy.Ref]Use, error) {
	if in.Snapshot == nil || len(in.Resources) == 0 && !in.Every {
		return nil, errors.New("look for uses: policies and resources are needed")
	}
	if in.Every {
		in.Resources = nil
	}
	out := map[policy.Ref]Use{}
	j, ranges := newDecider(newPolicyState(in.Snapshot, in.Now)), rangeAllows{in.Snapshot, map[string][]policy.Ref{}}
	err := r.Totals(ctx, audit.Filter{Since: in.Since, Until: in.Now, Resources: in.Resources}, func(t audit.Total) error {
		allowing, meaning, unknown := j.allowing(&t.Edge)
		count := func(ref policy.Ref) int64 {
			if in.From == nil {
				return t.Count
			}
			return usesOf(&t, in.From(ref))
		}
		for _, ref := range allowing {
			if n := count(ref); n > 0 {
				u := out[ref]
				u.LastUsed, u.Count = audit.Later(u.LastUsed, t.LastSeen), u.Count+n
				out[ref] = u
			}
		}
		for _, ref := range meaning {
			if count(ref) > 0 {
				u := out[ref]
				u.Refused = true
				out[ref] = u
			}
		}
		if unknown {
			for _, ref := range ranges.about(&t.Edge) {
				if count(ref) > 0 {
					u := out[ref]
					u.Uncertain = true
					out[ref] = u
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for uses: %w", err)
	}
	return out, nil
}

// rangeAllows finds the allows about ranges of addresses, by the resource.
type rangeAllows struct {
	snapshot *policy.Snapshot
	found    map[string][]policy.Ref
}

// about returns the allows about ranges of addresses for the resources of an edge.
func (r rangeAllows) about(e *audit.Edge) (out []policy.Ref) {
	for _, name := range append([]string{e.Resource}, strings.Fields(e.OtherResources)...) {
		refs, ok := r.found[name]
		if !ok && name != "" {
			for _, st := range r.snapshot.StatementsAbout(name) {
				isRange := func(s v1alpha1.Subject) bool {
					n, err := policy.ParseName(string(s))
					return err == nil && n.IsPrefix()
				}
				if st.Statement.Effect == v1alpha1.EffectAllow && slices.ContainsFunc(st.Statement.Subjects, isRange) {
					refs = append(refs, st.Ref)
				}
			}
			r.found[name] = refs
		}
		out = append(out, refs...)
	}
	return out
}

// Attribution finds the statements of which a connection is a use. It is not safe for concurrent use.
type Attribution struct {
	snapshot *policy.Snapshot
	now      time.Time
	decider  *decider // nil until it is needed, because it indexes the whole fleet
}

// NewAttribution returns an Attribution by the statements of a snapshot.
func NewAttribution(s *policy.Snapshot, now time.Time) *Attribution {
	return &Attribution{snapshot: s, now: now}
}

// Statements returns the statement that decided a connection. No statement decides about a resource in Observe: then it returns the
// allows that would let the connection in in Enforce, and implied is true.
func (a *Attribution) Statements(t *audit.Total) (refs []policy.Ref, implied bool) {
	switch {
	case t.Statement != policy.Ref{}:
		return []policy.Ref{t.Statement}, false
	case t.Decision != policy.Unmanaged:
		return nil, false
	case a.decider == nil:
		a.decider = newDecider(newPolicyState(a.snapshot, a.now))
	}
	refs, _, _ = a.decider.allowing(&t.Edge)
	return refs, true
}

// fewLost is the highest share of lost flows at which an absence of traffic proves that there was none.
const fewLost = 0.01

// Reliability is how far an absence of traffic to a resource proves that there was none. The figures are taken from the worst
// member in which the resource is placed.
type Reliability struct {
	// Enough reports whether every member was watched for nearly all of the time, is watched now, and lost few flows.
	Enough  bool
	Watched float64 // share of the time
	Lost    float64 // share of the flows
	Member  string
}

// ReliabilityOf returns how well a resource was watched from an instant on, by the members in which it is placed. It is not
// enough if the placement is not known.
func (w *Watch) ReliabilityOf(f Fleet, s *policy.Snapshot, resource string, since time.Time) Reliability {
	names, known := f.watchedFor(s, resource)
	if !known || len(names) == 0 {
		return Reliability{}
	}
	return w.Of(names).from(since).reliability()
}

// WorstOf returns how well the one of some resources was watched from an instant on that was watched worst; nothing is known of no resources.
func (w *Watch) WorstOf(f Fleet, s *policy.Snapshot, resources []string, since time.Time) (worst Reliability) {
	for i, name := range resources {
		r := w.ReliabilityOf(f, s, name, since)
		if i == 0 || worst.Enough && !r.Enough || worst.Enough == r.Enough && (r.Watched < worst.Watched || r.Watched == worst.Watched && r.Lost > worst.Lost) {
			worst = r
		}
	}
	return worst
}

// from returns the part of the watch from an instant on, in whole days except for the first day of the watch. The number of
// seen connections is divided evenly among the days.
func (w *Watch) from(since time.Time) *Watch {
	if !since.After(w.Since) {
		return w
	}
	out := &Watch{Since: w.Until, Until: w.Until}
	for _, m := range w.Members {
		cut := MemberWatch{Cluster: m.Cluster, Recent: m.Recent}
		for _, d := range m.Days {
			if d.From.Before(since) {
				continue
			}
			cut.Days = append(cut.Days, d)
			cut.Lost += d.Lost
			out.Since = audit.Earlier(out.Since, d.From)
		}
		if len(m.Days) > 0 {
			cut.Seen = m.Seen * int64(len(cut.Days)) / int64(len(m.Days))
		}
		out.Members = append(out.Members, cut)
	}
	return out
}

func (w *Watch) reliability() Reliability {
	member, watched, ok := w.worst()
	length := w.Until.Sub(w.Since)
	if !ok || length <= 0 {
		return Reliability{}
	}
	out := Reliability{Watched: min(float64(watched)/float64(length), 1), Member: member}
	if m, share := w.lossiest(); share > 0 {
		out.Lost = share
		if share > fewLost {
			out.Member = m.Cluster
		}
	}
	out.Enough = w.WellCovered() && out.Lost <= fewLost
	return out
}
