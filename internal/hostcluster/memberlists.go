package hostcluster

import (
	"hash/maphash"
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/acp-io/acp/api/v1alpha1"
)

// keptMemberLists is how many different lists of members are shared. A fleet has few: those of the classes' placements, and the parts of
// them that are in some state.
const keptMemberLists = 1024

// ShareMemberLists returns a transformation for caches of the host's objects, by which statuses that list the same members share the list
// in memory. With 500 members and 10,000 resources there are ten million names otherwise. The lists must not be changed.
func ShareMemberLists() toolscache.TransformFunc {
	lists, err := lru.New[uint64, []v1alpha1.ClusterName](keptMemberLists)
	if err != nil {
		panic(err) // the size is positive
	}
	seed := maphash.MakeSeed()
	share := func(names []v1alpha1.ClusterName) []v1alpha1.ClusterName {
		if len(names) < 2 {
			return names
		}
		var h maphash.Hash
		h.SetSeed(seed)
		for _, name := range names {
			_, _ = h.WriteString(string(name)) // never returns an error
			_ = h.WriteByte(0)
		}
		key := h.Sum64()
		if known, ok := lists.Get(key); ok && slices.Equal(known, names) {
			return known
		}
		lists.Add(key, names)
		return names
	}
	shareAll := func(groups []v1alpha1.MemberGroup) {
		for i := range groups {
			for j := range groups[i].Revisions {
				r := &groups[i].Revisions[j]
				r.Members = share(r.Members)
			}
		}
	}
	return func(in any) (any, error) {
		switch o := in.(type) {
		case *v1alpha1.ProtectedResource:
			shareAll(o.Status.Groups)
		case *v1alpha1.AccessControlPolicy:
			for i := range o.Status.Units {
				shareAll(o.Status.Units[i].Groups)
			}
		}
		return in, nil
	}
}
