package conformance

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/cilium/pkg/labels"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/policy"
)

// baseEntries is the number of entries in the policy map of a workload without ACP's policies: every source in both directions, and
// the node.
const baseEntries = 11

// The estimate of policy-map entries is compared with the policy map that Cilium computes for a pod of each unit, in a member
// whose identities are those of the world. It must not be lower, and not needlessly higher.
func TestEntriesAreEnough(t *testing.T) {
	units, most, estimated, real := 0, 0.0, 0, 0
	for seed := range uint64(300) {
		d := newGenerator(seed)
		in := d.Input()
		sources := d.Sources()
		countIdentities(&in, sources)
		s := policy.NewSnapshot(in)
		for _, u := range s.Compile(noon) {
			if u.Wildcard {
				continue
			}
			n, err := policyMapEntries(s, &u, sources)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if n > u.Entries+baseEntries {
				t.Fatalf(
					"seed %d: the policy map of a pod of %s has %d entries, more than the %d that were estimated and %d that every pod has",
					seed,
					u.Resource,
					n,
					u.Entries,
					baseEntries,
				)
			}
			units, estimated, real = units+1, estimated+u.Entries+baseEntries, real+n
			if s.EffectiveMode(u.Resource, Here, noon) == v1alpha1.ModeEnforce { // in Audit there are no denies, and none of requests
				most = max(most, float64(u.Entries+baseEntries)/float64(n))
			}
		}
	}
	t.Logf("%d units, %d entries, estimated %d; at most %.1f times as many", units, real, estimated, most)
	if units < 300 || float64(estimated) > 1.5*float64(real) || most > 10 {
		t.Errorf(
			"%d units have %d entries, and %d were estimated: want at most one and a half times as many in all, and ten times for one unit in Enforce",
			units,
			real,
			estimated,
		)
	}
}

// countIdentities sets the identity counts of the members in the input, as the adapter reports them.
func countIdentities(in *policy.Input, sources []Source) {
	in.Clusters = nil
	for _, cluster := range []string{Here, "m2"} {
		d := &v1alpha1.MemberDataplane{PolicyMapEntries: policy.MapEntries}
		if cluster == Here {
			d.Identities++ // the pod itself
		}
		have := map[string]map[string]int32{}
		for _, source := range sources {
			if source.Cluster != cluster {
				continue
			}
			d.Identities++
			for _, key := range []string{appKey, svcKey} {
				if value := source.Labels[key]; value != "" {
					if have[key] == nil {
						have[key] = map[string]int32{}
					}
					have[key][value]++
				}
			}
		}
		for key, values := range have {
			l := v1alpha1.MemberLabel{Key: v1alpha1.LabelKey(key)}
			for _, n := range values {
				l.Identities, l.Most = l.Identities+n, max(l.Most, n)
			}
			d.Labels = append(d.Labels, l)
		}
		in.Clusters = append(in.Clusters, policy.Cluster{Name: cluster, Labels: map[string]string{}, Dataplane: d})
	}
}

// policyMapEntries returns the size of the policy map of a pod with the label of the unit, and of no other class, among the
// sources.
func policyMapEntries(s *policy.Snapshot, u *policy.Unit, sources []Source) (int, error) {
	objects, err := Translate(s, noon)
	if err != nil {
		return 0, err
	}
	var rendered []policy.Unit
	rendered = append(rendered, *u)
	for _, w := range s.Compile(noon) {
		if w.Wildcard && w.LabelKey == u.LabelKey && (len(w.LabelValues) == 0 || slices.Contains(w.LabelValues, u.LabelValue)) {
			rendered = append(rendered, w)
		}
	}
	own := Objects{Policies: map[string]map[string]any{}, Groups: map[string]Group{}}
	for i := range rendered {
		out, err := (cilium.Enforcer{}).Render(rendered[i])
		if err != nil {
			return 0, fmt.Errorf("render %s: %w", rendered[i].Resource, err)
		}
		for _, o := range out.Objects {
			if spec, ok := objects.Policies[o.Object.Name]; ok {
				own.Policies[o.Object.Name] = spec
			}
		}
		for _, r := range rendered[i].Rules {
			for _, g := range s.ExternalGroups() {
				if !slices.Contains(r.External, g.ID) && !slices.Contains(r.ExternalClasses, g.ClassID) {
					continue
				}
				for _, name := range []string{v1alpha1.ObjectPrefix + g.ID, v1alpha1.ObjectPrefix + g.ID + "-contested"} {
					if group, ok := objects.Groups[name]; ok {
						own.Groups[name] = group
					}
				}
			}
		}
	}
	r := newRegistry(own)
	for _, source := range sources {
		if !source.Addr().IsValid() {
			if _, err := r.source(source); err != nil {
				return 0, err
			}
		}
	}
	addressIdentities(r)
	pod := r.pod(map[string]string{u.LabelKey: u.LabelValue}, Here, false)
	e := newEngine(r.all)
	for name, spec := range own.Policies {
		if err := e.set(name, spec); err != nil {
			return 0, err
		}
	}
	compiled, err := e.compile(pod)
	if err != nil {
		return 0, err
	}
	return compiled.policy.Len(), nil
}

// addressIdentities assigns identities to the ranges and the groups' addresses as an agent does: one for each set of labels, which
// are those of the ranges and groups that contain the address.
func addressIdentities(r *registry) {
	all := slices.Clone(r.ranges)
	for _, g := range r.groups {
		all = append(all, g.Prefixes...)
	}
	holds := func(p, q netip.Prefix) bool { return p.Bits() <= q.Bits() && p.Contains(q.Addr()) }
	seen := map[string]bool{}
	for _, p := range all {
		lbls := labels.Labels{}
		for _, q := range r.ranges {
			if holds(q, p) {
				lbls.MergeLabels(labels.GetCIDRLabels(q))
			}
		}
		for name, g := range r.groups {
			if slices.ContainsFunc(g.Prefixes, func(q netip.Prefix) bool { return holds(q, p) }) {
				for _, l := range groupLabels(name, g.Labels) {
					lbls[l.Key] = l
				}
			}
		}
		lbls.AddWorldLabel(p.Addr())
		if key := string(lbls.SortedList()); !seen[key] {
			seen[key] = true
			r.local++
			r.add(r.local, lbls.LabelArray())
		}
	}
}
