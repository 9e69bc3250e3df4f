package membercluster

import (
	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/policy"
)

// Units counts the units that are, or were, placed in one member.
type Units struct {
	Objects v1alpha1.MemberObjects
	// States contains the number of units by state.
	States map[v1alpha1.MemberState]int
	// Heaviest is the unit that needs most of a workload's policy map, or nil.
	Heaviest *v1alpha1.MemberPolicyMap
}

// count counts the units of all members in one pass over the status cache.
func count(reports *statuscache.Cache) map[string]*Units {
	out := map[string]*Units{}
	reports.Each(func(r *statuscache.Report) {
		for i := range r.Clusters {
			c := &r.Clusters[i]
			u := out[string(c.Name)]
			if u == nil {
				u = &Units{States: map[v1alpha1.MemberState]int{}}
				out[string(c.Name)] = u
			}
			u.add(r, c)
		}
	})
	return out
}

func (u *Units) add(r *statuscache.Report, c *v1alpha1.ClusterState) {
	u.States[c.State]++
	o := &u.Objects
	o.Managed++
	switch c.State {
	case v1alpha1.MemberRealized:
		o.Realized++
	case v1alpha1.MemberDrifted:
		o.Drifted++
	case v1alpha1.MemberLeaked:
		o.Leaked++
	case v1alpha1.MemberOverridden:
		o.Overridden++
	default:
		o.Pending++
	}
	if c.DesiredRevision == "" {
		return
	}
	n := int32(min(r.Entries, 1<<30))
	// Of equal units always the same is selected, regardless of the order of iteration.
	if h := u.Heaviest; h == nil || n > h.Highest || n == h.Highest && r.Resource < h.Unit {
		u.Heaviest = &v1alpha1.MemberPolicyMap{Highest: n, Limit: policy.MapEntries, Unit: r.Resource}
	}
}
