package membercluster

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// maxReportedLabels is the number of label keys that are reported.
const maxReportedLabels = 10

// Identities counts the identities in the members. A member is counted again only when its identities changed, because
// there may be tens of thousands.
type Identities struct {
	// Each calls do with the labels of every identity of a member.
	Each func(cluster string, do func(labels []federation.Handle))
	// Keys returns the label keys of subjects.
	Keys func() map[string]bool

	mu sync.Mutex
	// changes counts the changes in each member, and those that concern all members.
	changes map[string]uint64
	counted map[string]counted
}

// counted is the result of a count, with the number of changes before it.
type counted struct {
	Changes    uint64
	Identities v1alpha1.MemberIdentities
	// Labels contains exact numbers for every label key, because classes may be added.
	Labels map[string]v1alpha1.MemberLabel
}

// Changed records a change of the identities of a member, or of all members for "".
func (i *Identities) Changed(cluster string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.changes == nil {
		i.changes = map[string]uint64{}
	}
	i.changes[cluster]++
}

// Count counts the identities of a member. It returns nil if there are none, because agents store them elsewhere or
// they were not read.
func (i *Identities) Count(cluster string, limit int32) *v1alpha1.MemberIdentities {
	last := i.last(cluster)
	if last.Identities.Used == 0 {
		return nil
	}
	out := last.Identities
	out.Limit = max(1, limit)
	return &out
}

// Labels returns the number of identities of a member, and of those with the labels of subjects, by key. Without
// identities it returns 0.
func (i *Identities) Labels(cluster string) (int32, []v1alpha1.MemberLabel) {
	last, keys := i.last(cluster), i.Keys()
	var out []v1alpha1.MemberLabel
	for key := range keys {
		if l, ok := last.Labels[key]; ok {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.MemberLabel) int { return cmp.Compare(a.Key, b.Key) })
	return last.Identities.Used, out
}

// last returns the count of a member, and counts again if something changed.
func (i *Identities) last(cluster string) counted {
	i.mu.Lock()
	changes := i.changes[cluster] + i.changes[""]
	last, ok := i.counted[cluster]
	i.mu.Unlock()
	if ok && last.Changes == changes {
		return last
	}
	last = i.count(cluster)
	last.Changes = changes
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.counted == nil {
		i.counted = map[string]counted{}
	}
	i.counted[cluster] = last
	return last
}

func (i *Identities) count(cluster string) counted {
	used, seen := int32(0), map[federation.Handle]int32{}
	i.Each(cluster, func(labels []federation.Handle) {
		used++
		for _, l := range labels {
			seen[l]++
		}
	})
	values, having := map[string]int32{}, map[string]v1alpha1.MemberLabel{}
	for h, n := range seen {
		if l := h.Value(); l.Value != "" && !strings.Contains(l.Key, ":") { // a non-empty label of a pod
			values[l.Key]++
			m := having[l.Key]
			having[l.Key] = v1alpha1.MemberLabel{Key: v1alpha1.LabelKey(l.Key), Identities: m.Identities + n, Most: max(m.Most, n)}
		}
	}
	out := make([]v1alpha1.IdentityLabel, 0, len(values))
	for key, n := range values {
		out = append(out, v1alpha1.IdentityLabel{Key: key, Values: n})
	}
	slices.SortFunc(out, func(a, b v1alpha1.IdentityLabel) int {
		return cmp.Or(cmp.Compare(b.Values, a.Values), cmp.Compare(a.Key, b.Key))
	})
	return counted{Identities: v1alpha1.MemberIdentities{Used: used, Labels: out[:min(len(out), maxReportedLabels)]}, Labels: having}
}
