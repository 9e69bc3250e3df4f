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
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// observedWell is the share of the quiet time in which the worst member must have been watched.
const observedWell = 0.95

// Unused proposes the removal of allows that have let no connection in, and would have let none in, for some time. It
// returns only statements that can be assessed: not those about resources of which a member was not watched well enough
// (see Watch.Covers), not those younger than the quiet time (by their notBefore, else by their policy), and no denies,
// whose purpose is that no connection occurs. A wildcard that was used through any resource is used; so is an allow if
// other statements allow the same connection.
func Unused(ctx context.Context, r Reader, in UnusedInput) ([]UnusedStatement, error) {
	if in.Snapshot == nil {
		return nil, errors.New("look for unused grants: the policies are needed")
	}
	if in.QuietFor <= 0 {
		in.QuietFor = DefaultQuietFor
	}
	quiet := in.Now.Add(-in.QuietFor)
	candidates := in.candidates(quiet)
	if len(candidates) == 0 {
		return []UnusedStatement{}, nil
	}
	watch, err := Watched(ctx, r, quiet, in.Now, nil)
	if err != nil {
		return nil, fmt.Errorf("look for unused grants: %w", err)
	}
	candidates = slices.DeleteFunc(candidates, func(w policy.PolicyStatement) bool {
		return slices.ContainsFunc(w.Statement.Resources, func(name v1alpha1.ResourceName) bool { return !watch.Covers(in.Fleet, in.Snapshot, string(name)) })
	})
	if len(candidates) == 0 {
		return []UnusedStatement{}, nil
	}
	used, refused := make(map[policy.Ref]time.Time, len(candidates)), map[policy.Ref]bool{}
	uncertain := map[policy.Ref]bool{}
	j, ranges := newDecider(newPolicyState(in.Snapshot, in.Now)), rangeAllows{in.Snapshot, map[string][]policy.Ref{}}
	err = r.Totals(ctx, audit.Filter{Since: in.Since, Until: in.Now, Resources: exactResources(candidates)}, func(t audit.Total) error {
		allowing, meaning, unknown := j.allowing(&t.Edge)
		if unknown && !t.LastSeen.Before(quiet) {
			for _, ref := range ranges.about(&t.Edge) {
				uncertain[ref] = true
			}
		}
		for _, ref := range allowing {
			used[ref] = audit.Later(used[ref], t.LastSeen)
		}
		for _, ref := range meaning {
			refused[ref] = refused[ref] || !t.LastSeen.Before(quiet)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for unused grants: %w", err)
	}
	out := []UnusedStatement{}
	for _, w := range candidates {
		last, known := used[w.Ref]
		if known && !last.Before(quiet) || uncertain[w.Ref] {
			continue // it is used, or that is not known
		}
		u := UnusedStatement{Ref: w.Ref, Statement: *w.Statement, DaysObserved: watch.DaysObserved()}
		switch {
		case refused[w.Ref]:
			u.Reason = message.UnusedRefused()
		case known:
			u.LastUsed = &last
			u.Reason = message.UnusedLastUsed(span(in.Now.Sub(last)), span(in.QuietFor))
		default:
			u.Reason = message.UnusedNeverUsed(span(in.QuietFor))
		}
		out = append(out, u)
	}
	return out, nil
}

// Covers reports whether every member in which a resource is placed was watched for nearly all of the window, is watched at
// its end, and lost few flows. A name with a wildcard may be placed in any member. An unknown placement is not covered.
func (w *Watch) Covers(f Fleet, s *policy.Snapshot, resource string) bool {
	names, known := f.watchedFor(s, resource)
	return known && w.Of(names).reliability().Enough
}

// watchedFor returns the members that must have been watched to judge the use of a resource: those in which it is placed, or
// every member for a name with a wildcard.
func (f Fleet) watchedFor(s *policy.Snapshot, resource string) ([]string, bool) {
	if strings.HasSuffix(resource, "*") {
		return f.all()
	}
	return f.PlacedIn(s, resource)
}

// CoversAll is Covers for every resource of every statement.
func (w *Watch) CoversAll(f Fleet, s *policy.Snapshot) bool {
	covered := map[v1alpha1.ResourceName]bool{}
	for _, x := range s.Statements() {
		for _, name := range x.Statement.Resources {
			if _, known := covered[name]; !known {
				covered[name] = w.Covers(f, s, string(name))
			}
			if !covered[name] {
				return false
			}
		}
	}
	return len(covered) > 0 || w.WellCovered()
}

// WellCovered reports whether every member was watched for nearly all of the window, and is watched at its end.
func (w *Watch) WellCovered() bool {
	if never, ended := w.Unwatched(); len(never)+len(ended) > 0 {
		return false
	}
	_, watched, ok := w.worst()
	return ok && float64(watched) >= observedWell*float64(w.Until.Sub(w.Since))
}

// candidates returns the allows that were in force for all of the quiet time.
func (in *UnusedInput) candidates(quiet time.Time) []policy.PolicyStatement {
	var all []policy.PolicyStatement
	if len(in.Resources) == 0 {
		all = in.Snapshot.Statements()
	}
	for _, name := range in.Resources {
		all = append(all, in.Snapshot.StatementsAbout(name)...)
	}
	slices.SortFunc(all, func(a, b policy.PolicyStatement) int { return a.Ref.Compare(b.Ref) })
	all = slices.CompactFunc(all, func(a, b policy.PolicyStatement) bool { return a.Ref == b.Ref })
	return slices.DeleteFunc(all, func(w policy.PolicyStatement) bool {
		st := w.Statement
		return st.Effect != v1alpha1.EffectAllow || in.Policy != "" && w.Ref.Policy != in.Policy ||
			st.NotAfter != nil && !in.Now.Before(st.NotAfter.Time) || in.young(w, quiet)
	})
}

func (in *UnusedInput) young(w policy.PolicyStatement, quiet time.Time) bool {
	// A policy may be younger than its statements, if it was restored from a backup or moved to another host cluster.
	since := w.Policy.CreationTimestamp.Time
	if w.Statement.NotBefore != nil {
		since = w.Statement.NotBefore.Time
	}
	if since.After(quiet) {
		return true
	}
	if in.Granted == nil {
		return false
	}
	at, ok := in.Granted(w.Ref)
	return ok && at.After(quiet)
}

// exactResources returns all resources that the statements name; none if one names a wildcard, which any resource may
// use.
func exactResources(statements []policy.PolicyStatement) []string {
	var out []string
	for _, w := range statements {
		for _, r := range w.Statement.Resources {
			if strings.HasSuffix(string(r), "*") {
				return nil
			}
			out = append(out, string(r))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// allowing returns the allows that let an edge in, or would in Enforce. If the source is ambiguous, the allows of all
// candidates count as used. The second result contains those that would let in what is not let in, if the members had
// them. unknown reports whether the source has no candidates because its addresses are not known, so that allows about ranges of addresses may be
// missing.
func (j *decider) allowing(e *audit.Edge) (allowing, meaning []policy.Ref, unknown bool) {
	a := j.prepare(e)
	unknown = len(a.addresses) == 0 && a.why != nil
	refs := func(by basis) (out []policy.Ref, all bool) {
		all = true
		for _, d := range j.decideAll(&a, by) {
			if d.Verdict == policy.Allowed {
				out = append(out, d.Statements...)
			} else {
				all = false
			}
		}
		return out, all
	}
	allowing, all := refs(asEnforced)
	if !all {
		meaning, _ = refs(asWritten)
	}
	return allowing, meaning, unknown
}
