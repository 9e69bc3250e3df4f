package accessreview

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/policy"
)

// Flows reads evidence from a flow store. All fields are required.
type Flows struct {
	Reader   insight.Reader
	Snapshot func() (*policy.Snapshot, bool)
	// Fleet returns the members in which resources are placed.
	Fleet func() insight.Fleet

	watch *insight.Watch // of the last window
}

var _ EvidenceReader = (*Flows)(nil)

// watchKept is how long the watch of a window is used again, because it is the same for all parts of a campaign.
const watchKept = 10 * time.Minute

// Evidence implements EvidenceReader. It is not safe for concurrent use; the worker has only one.
func (f *Flows) Evidence(ctx context.Context, grants []approval.StandingGrant, days int, now time.Time) (map[approval.Target]Evidence, error) {
	snap, ok := f.Snapshot()
	if !ok {
		return nil, approval.HostUnknown()
	}
	since := now.AddDate(0, 0, -days)
	if w := f.watch; w == nil || now.Sub(w.Until) > watchKept || w.Until.Sub(w.Since) != now.Sub(since) {
		watch, err := insight.Watched(ctx, f.Reader, since, now, nil)
		if err != nil {
			return nil, err
		}
		f.watch = watch
	}
	in := insight.UsesInput{Snapshot: snap, Since: since, Now: now}
	began := map[string]time.Time{} // by the sid
	for _, g := range grants {
		in.Resources = append(in.Resources, resourcesOf(g)...)
		in.Every = in.Every || g.Scope != nil && slices.ContainsFunc(g.Scope.Resources, isPrefix)
		for _, sid := range g.SIDs {
			began[sid] = g.Since
		}
	}
	slices.Sort(in.Resources)
	in.Resources = slices.Compact(in.Resources)
	in.From = func(r policy.Ref) time.Time { return began[r.SID] }
	uses, err := f.uses(ctx, in)
	if err != nil {
		return nil, err
	}
	written := map[policy.Ref]bool{}
	for _, r := range in.Resources {
		for _, st := range snap.StatementsAbout(r) {
			written[unsharded(st.Ref)] = true
		}
	}
	out := make(map[approval.Target]Evidence, len(grants))
	fleet := f.Fleet()
	for _, g := range grants {
		refs := refsOf(g)
		if !slices.ContainsFunc(refs, func(ref policy.Ref) bool { return written[ref] }) {
			continue // no policy has a statement of it yet, or any more, so no connection can be attributed to it
		}
		from := since
		if g.Since.After(from) {
			from = g.Since
		}
		e := Evidence{At: now.UTC(), Days: int(math.Ceil(now.Sub(from).Hours() / 24))}
		r := f.watch.WorstOf(fleet, snap, resourcesOf(g), from)
		e.Watched, e.Member = r.Enough, r.Member
		e.WatchedPercent, e.LostPercent = math.Floor(r.Watched*1000)/10, math.Ceil(r.Lost*1000)/10
		for _, ref := range refs {
			u := uses[ref]
			if u.LastUsed.After(e.LastUsed) {
				e.LastUsed = u.LastUsed.UTC()
			}
			e.Count, e.Refused, e.Uncertain = max(e.Count, u.Count), e.Refused || u.Refused, e.Uncertain || u.Uncertain
		}
		out[g.Target] = e
	}
	return out, nil
}

// resourcesOf returns the names of the resources of an access, which may be prefixes.
func resourcesOf(g approval.StandingGrant) []string {
	if g.Scope != nil {
		return g.Scope.Resources
	}
	return []string{g.ResourceName}
}

func isPrefix(name string) bool { return strings.HasSuffix(name, "*") }

// refsOf returns the statements of an access, with the name of the first policy that may have them.
func refsOf(g approval.StandingGrant) []policy.Ref {
	base := policy.StatementsPolicy
	if g.Scope == nil {
		base = policy.PolicyNameFor(g.ResourceName)
	}
	out := make([]policy.Ref, len(g.SIDs))
	for i, sid := range g.SIDs {
		out[i] = policy.Ref{Policy: base, SID: sid}
	}
	return out
}

// unsharded returns a reference with the name of the first policy of its shard.
func unsharded(ref policy.Ref) policy.Ref {
	ref.Policy, _ = policy.SplitPolicyShard(ref.Policy)
	return ref
}

// resourcesAtOnce bounds the resources of one query to the store.
const resourcesAtOnce = 500

// uses returns the uses of statements, by their references without shards. A prefix of names covers resources that are not known, so that the
// flows of every resource are searched for it, in one query.
func (f *Flows) uses(ctx context.Context, in insight.UsesInput) (map[policy.Ref]insight.Use, error) {
	parts := slices.Collect(slices.Chunk(in.Resources, resourcesAtOnce))
	if in.Every {
		parts = [][]string{nil}
	}
	out := map[policy.Ref]insight.Use{}
	for _, part := range parts {
		in.Resources = part
		found, err := insight.Uses(ctx, f.Reader, in)
		if err != nil {
			return nil, err
		}
		for ref, u := range found {
			ref = unsharded(ref)
			sum := out[ref] // a statement about several resources is in several parts
			if u.LastUsed.After(sum.LastUsed) {
				sum.LastUsed = u.LastUsed
			}
			sum.Count, sum.Refused, sum.Uncertain = sum.Count+u.Count, sum.Refused || u.Refused, sum.Uncertain || u.Uncertain
			out[ref] = sum
		}
	}
	return out, nil
}
