package membercluster

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/condition"
	"github.com/acp-io/acp/internal/policy"
)

// dataplane is what is known of a member's dataplane beside what the preflight found, in exact numbers.
type dataplane struct {
	// Identities is how many identities of pods there are; 0: they were not read.
	Identities int32
	Labels     []v1alpha1.MemberLabel
	// Values are those of the labels of subjects by key, if ValuesKnown.
	Values      map[string][]string
	ValuesKnown bool
	NoHTTP      string
	NoGroups    bool
}

// The limits of MemberDataplane's lists and strings in the API.
const (
	mostKeys   = 128
	mostValues = 1024 // of all keys together, which keeps the object small
	mostMesh   = 253
)

// dataplane is what the compiler takes into account. Numbers are rounded, and stay where they were while they are good enough: each
// change makes every program compile every unit again.
func (f *facts) dataplane(before *v1alpha1.MemberDataplane) *v1alpha1.MemberDataplane {
	if before == nil && f.Look.PolicyMapMax == 0 {
		return nil // it was never read
	}
	if before == nil {
		before = &v1alpha1.MemberDataplane{}
	}
	d := &v1alpha1.MemberDataplane{PolicyMapEntries: cmp.Or(int32(min(f.Look.PolicyMapMax, 1<<30)), before.PolicyMapEntries, policy.MapEntries),
		NoHTTP: condition.Truncate(f.Dataplane.NoHTTP), NoGroups: f.Dataplane.NoGroups, Mesh: f.Cluster.Mesh, Identities: before.Identities}
	if len(d.Mesh) > mostMesh {
		d.Mesh = v1alpha1.NoMesh // nobody else can declare such a name, either
	}
	for _, l := range before.Labels {
		l.Values = nil
		d.Labels = append(d.Labels, l)
	}
	if f.Dataplane.Identities > 0 {
		d.Identities, d.Labels = stay(before.Identities, f.Dataplane.Identities, roundUp(f.Dataplane.Identities), 5, 4), nil
		for _, l := range f.Dataplane.Labels[:min(len(f.Dataplane.Labels), mostKeys)] {
			was := v1alpha1.MemberLabel{}
			if i := slices.IndexFunc(before.Labels, func(b v1alpha1.MemberLabel) bool { return b.Key == l.Key }); i >= 0 {
				was = before.Labels[i]
			}
			d.Labels = append(d.Labels, v1alpha1.MemberLabel{Key: l.Key, Identities: stay(was.Identities, l.Identities, roundUp(l.Identities), 5, 4), Most: stay(was.Most, l.Most, powerOfTwo(l.Most), 2, 1)})
		}
	}
	f.values(d)
	return d
}

// values adds the values of the labels, if they are known and not too many.
func (f *facts) values(d *v1alpha1.MemberDataplane) {
	n := 0
	for _, values := range f.Dataplane.Values {
		n += len(values)
	}
	if !f.Dataplane.ValuesKnown || n > mostValues || len(f.Dataplane.Values) > mostKeys {
		return
	}
	d.ValuesKnown = true
	for _, key := range slices.Sorted(maps.Keys(f.Dataplane.Values)) {
		values := f.Dataplane.Values[key]
		i, ok := slices.BinarySearchFunc(d.Labels, key, func(l v1alpha1.MemberLabel, key string) int { return cmp.Compare(string(l.Key), key) })
		if !ok {
			d.Labels = slices.Insert(d.Labels, i, v1alpha1.MemberLabel{Key: v1alpha1.LabelKey(key), Identities: int32(len(values)), Most: 1}) //nolint:gosec // bounded above
		}
		d.Labels[i].Values = values
	}
}

// stay is the number before while it is an upper bound of n and at most most/of what it would be anew, so that what goes back and
// forth is written once.
func stay(before, n, anew int32, most, of int64) int32 {
	if before < n || int64(before)*of > int64(anew)*most {
		return anew
	}
	return before
}

// roundUp adds at most an eighth.
func roundUp(n int32) int32 {
	step := int32(1)
	for n/step >= 16 {
		step *= 2
	}
	return (n + step - 1) / step * step
}

// powerOfTwo is the first that is not smaller.
func powerOfTwo(n int32) int32 { return 1 << bits.Len32(uint32(max(n, 1))-1) } //nolint:gosec // it is positive
