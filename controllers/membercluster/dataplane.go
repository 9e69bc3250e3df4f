package membercluster

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statusfields"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// dataplane contains exact numbers about a member's dataplane, in addition to the preflight's results.
type dataplane struct {
	// Identities is the number of pod identities; 0 if they were not read.
	Identities int32
	Labels     []v1alpha1.MemberLabel
	// Values are the values of the subjects' labels by key, if ValuesKnown.
	Values      map[string][]string
	ValuesKnown bool
	NoHTTP      message.Message
	NoGroups    bool
}

// Limits of MemberDataplane's lists and strings in the API.
const (
	mostKeys  = 128
	maxValues = 1024 // of all keys together, which keeps the object small
	mostMesh  = 253
)

// dataplane returns the properties that the compiler uses. Numbers are rounded and kept while they are precise enough,
// because each change makes every program compile all units again.
func (f *facts) dataplane(before *v1alpha1.MemberDataplane) *v1alpha1.MemberDataplane {
	if before == nil && f.Check.PolicyMapMax == 0 {
		return nil // the member was never read
	}
	if before == nil {
		before = &v1alpha1.MemberDataplane{}
	}
	d := &v1alpha1.MemberDataplane{PolicyMapEntries: cmp.Or(int32(min(f.Check.PolicyMapMax, 1<<30)), before.PolicyMapEntries, policy.MapEntries),
		NoGroups: f.Dataplane.NoGroups, Mesh: f.Cluster.Mesh, Identities: before.Identities}
	d.NoHTTP, d.NoHTTPCode, d.NoHTTPParams = statusfields.BoundedMessage(f.Dataplane.NoHTTP)
	if len(d.Mesh) > mostMesh {
		d.Mesh = v1alpha1.NoMesh // no other cluster can declare such a name, either
	}
	for _, l := range before.Labels {
		l.Values = nil
		d.Labels = append(d.Labels, l)
	}
	if f.Dataplane.Identities > 0 {
		d.Identities, d.Labels = hysteresis(before.Identities, f.Dataplane.Identities, roundUp(f.Dataplane.Identities), 5, 4), nil
		for _, l := range f.Dataplane.Labels[:min(len(f.Dataplane.Labels), mostKeys)] {
			was := v1alpha1.MemberLabel{}
			if i := slices.IndexFunc(before.Labels, func(b v1alpha1.MemberLabel) bool { return b.Key == l.Key }); i >= 0 {
				was = before.Labels[i]
			}
			d.Labels = append(
				d.Labels,
				v1alpha1.MemberLabel{
					Key:        l.Key,
					Identities: hysteresis(was.Identities, l.Identities, roundUp(l.Identities), 5, 4),
					Most:       hysteresis(was.Most, l.Most, powerOfTwo(l.Most), 2, 1),
				},
			)
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
	if !f.Dataplane.ValuesKnown || n > maxValues || len(f.Dataplane.Values) > mostKeys {
		return
	}
	d.ValuesKnown = true
	for _, key := range slices.Sorted(maps.Keys(f.Dataplane.Values)) {
		values := f.Dataplane.Values[key]
		i, ok := slices.BinarySearchFunc(d.Labels, key, func(l v1alpha1.MemberLabel, key string) int { return cmp.Compare(string(l.Key), key) })
		if !ok {
			//nolint:gosec // bounded above
			d.Labels = slices.Insert(d.Labels, i, v1alpha1.MemberLabel{Key: v1alpha1.LabelKey(key), Identities: int32(len(values)), Most: 1})
		}
		d.Labels[i].Values = values
	}
}

// hysteresis returns the previously reported bound if it is at least n and at most (most/of) times the new bound;
// otherwise it returns the new bound. Small changes then cause no status write.
func hysteresis(before, n, anew int32, most, of int64) int32 {
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

// powerOfTwo returns the smallest power of two that is not less than n.
func powerOfTwo(n int32) int32 { return 1 << bits.Len32(uint32(max(n, 1))-1) } //nolint:gosec // it is positive
