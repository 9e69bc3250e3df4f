package membercluster

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// heaviest is how many label keys are told.
const heaviest = 10

// Identities counts the identities in the members. A member is counted again only when its identities changed: there may be
// tens of thousands.
type Identities struct {
	// Each calls do with the labels of every identity of a member.
	Each func(cluster string, do func(labels []federation.Handle))

	mu sync.Mutex
	// changes counts what happened in each member, and everywhere.
	changes map[string]uint64
	counted map[string]counted
}

// counted is what there was after so many changes.
type counted struct {
	Changes    uint64
	Identities v1alpha1.MemberIdentities
}

// Changed tells that identities of a member did; "": of any.
func (i *Identities) Changed(cluster string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.changes == nil {
		i.changes = map[string]uint64{}
	}
	i.changes[cluster]++
}

// Count counts those of a member. It is nil when there are none: then agents keep them elsewhere, or they were not read.
func (i *Identities) Count(cluster string, limit int32) *v1alpha1.MemberIdentities {
	i.mu.Lock()
	changes := i.changes[cluster] + i.changes[""]
	last, ok := i.counted[cluster]
	i.mu.Unlock()
	if !ok || last.Changes != changes {
		last = counted{Changes: changes}
		last.Identities.Used, last.Identities.Labels = i.count(cluster)
		i.mu.Lock()
		if i.counted == nil {
			i.counted = map[string]counted{}
		}
		i.counted[cluster] = last
		i.mu.Unlock()
	}
	if last.Identities.Used == 0 {
		return nil
	}
	out := last.Identities
	out.Limit = max(1, limit)
	return &out
}

func (i *Identities) count(cluster string) (int32, []v1alpha1.IdentityLabel) {
	used, seen := int32(0), map[federation.Handle]struct{}{}
	i.Each(cluster, func(labels []federation.Handle) {
		used++
		for _, l := range labels {
			seen[l] = struct{}{}
		}
	})
	values := map[string]int32{}
	for h := range seen {
		if l := h.Value(); l.Value != "" && !strings.Contains(l.Key, ":") { // what pods have, and says something
			values[l.Key]++
		}
	}
	out := make([]v1alpha1.IdentityLabel, 0, len(values))
	for key, n := range values {
		out = append(out, v1alpha1.IdentityLabel{Key: key, Values: n})
	}
	slices.SortFunc(out, func(a, b v1alpha1.IdentityLabel) int {
		return cmp.Or(cmp.Compare(b.Values, a.Values), cmp.Compare(a.Key, b.Key))
	})
	return used, out[:min(len(out), heaviest)]
}
