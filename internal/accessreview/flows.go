package accessreview

import (
	"context"
	"math"
	"slices"
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
	var resources []string
	for _, g := range grants {
		resources = append(resources, g.ResourceName)
	}
	slices.Sort(resources)
	resources = slices.Compact(resources)
	began := map[string]time.Time{} // by the sid
	for _, g := range grants {
		for _, sid := range g.SIDs {
			began[sid] = g.Since
		}
	}
	uses, err := f.uses(ctx, insight.UsesInput{Snapshot: snap, Resources: resources, Since: since, Now: now,
		From: func(r policy.Ref) time.Time { return began[r.SID] }})
	if err != nil {
		return nil, err
	}
	written := map[string]map[string]bool{} // the sids of the statements about a resource
	for _, r := range resources {
		written[r] = map[string]bool{}
		for _, st := range snap.StatementsAbout(r) {
			written[r][st.Ref.SID] = true
		}
	}
	out := make(map[approval.Target]Evidence, len(grants))
	fleet := f.Fleet()
	for _, g := range grants {
		if !slices.ContainsFunc(g.SIDs, func(sid string) bool { return written[g.ResourceName][sid] }) {
			continue // no policy has a statement of it yet, or any more, so no connection can be attributed to it
		}
		from := since
		if g.Since.After(from) {
			from = g.Since
		}
		e := Evidence{At: now.UTC(), Days: int(math.Ceil(now.Sub(from).Hours() / 24))}
		r := f.watch.ReliabilityOf(fleet, snap, g.ResourceName, from)
		e.Watched, e.Member = r.Enough, r.Member
		e.WatchedPercent, e.LostPercent = math.Floor(r.Watched*1000)/10, math.Ceil(r.Lost*1000)/10
		for ref, u := range uses[g.ResourceName] {
			if !isOf(g, ref) {
				continue
			}
			if u.LastUsed.After(e.LastUsed) {
				e.LastUsed = u.LastUsed.UTC()
			}
			e.Count, e.Refused = max(e.Count, u.Count), e.Refused || u.Refused
		}
		out[g.Target] = e
	}
	return out, nil
}

// resourcesAtOnce bounds the resources of one query to the store.
const resourcesAtOnce = 500

// uses returns the uses of the portal's statements about resources, by resource.
func (f *Flows) uses(ctx context.Context, in insight.UsesInput) (map[string]map[policy.Ref]insight.Use, error) {
	resources := in.Resources
	of := map[string]string{} // resource by the name of its first policy
	for _, r := range resources {
		of[policy.PolicyNameFor(r)] = r
	}
	out := map[string]map[policy.Ref]insight.Use{}
	for part := range slices.Chunk(resources, resourcesAtOnce) {
		in.Resources = part
		found, err := insight.Uses(ctx, f.Reader, in)
		if err != nil {
			return nil, err
		}
		for ref, u := range found {
			base, _ := policy.SplitPolicyShard(ref.Policy)
			r, ok := of[base]
			if !ok {
				continue // not a policy of the portal
			}
			if out[r] == nil {
				out[r] = map[policy.Ref]insight.Use{}
			}
			out[r][ref] = u
		}
	}
	return out, nil
}

// isOf reports whether a statement is one of an access.
func isOf(g approval.StandingGrant, ref policy.Ref) bool { return slices.Contains(g.SIDs, ref.SID) }
