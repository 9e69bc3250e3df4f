package policy

import (
	"cmp"
	"slices"
	"sync"

	"github.com/acp-io/acp/api/v1alpha1"
)

// rollingClass is a class whose present rules do not count in every member, because they reach the members in waves.
type rollingClass struct {
	object *v1alpha1.ResourceClass
	// settled is the class with the rules that count where the rollout has not begun, and begun the one with the rules of the spec. Both
	// are in no rollout.
	settled, begun *v1alpha1.ResourceClass
}

// views are the snapshots for members in which earlier rules of some classes count.
type views struct {
	// rolling are the classes of which that is so, by name; mostly none.
	rolling []rollingClass
	// in is the input without what the views replace.
	in Input
	// byClasses contains the snapshots by the classes whose earlier rules count, as classesIn encodes them. The snapshots of the
	// members of the fleet are made with this one, others on first use.
	byClasses map[string]*Snapshot
	// byMember contains the snapshots of the members of the fleet, and of the member "".
	byMember map[string]*Snapshot
	mu       sync.Mutex
}

// In returns the snapshot that counts in a member: s itself, unless the change of a class reaches the members in waves and has not begun
// there. The member "" stands for members that no object names. Decisions about a query use the snapshot of the query's cluster.
func (s *Snapshot) In(cluster string) *Snapshot {
	if s.views == nil {
		return s
	}
	if v, ok := s.views.byMember[cluster]; ok {
		return v
	}
	return s.views.of(s, s.views.classesIn(cluster))
}

// newViews makes the snapshots of the members in which earlier rules of a class count. They reuse the work of those of before.
func newViews(s *Snapshot, in Input, before *views) *views {
	v := &views{in: in, byClasses: map[string]*Snapshot{}, byMember: map[string]*Snapshot{}}
	for _, c := range in.ResourceClasses {
		if c == nil || !c.RollsOut() {
			continue
		}
		if i := before.indexOf(c); i >= 0 {
			v.rolling = append(v.rolling, before.rolling[i])
			continue
		}
		begun := *c
		begun.Status.Rollout = nil
		v.rolling = append(v.rolling, rollingClass{object: c, settled: c.WithSettledRules(), begun: &begun})
	}
	if len(v.rolling) == 0 {
		return nil
	}
	slices.SortFunc(v.rolling, func(a, b rollingClass) int { return cmp.Compare(a.object.Name, b.object.Name) })
	for _, name := range append(namesOf(in.Clusters), "") {
		classes := v.classesIn(name)
		if was := before.made(classes); was != nil && v.byClasses[classes] == nil {
			v.byClasses[classes] = was.Next(v.input(classes))
		}
		v.byMember[name] = v.of(s, classes)
	}
	return v
}

func namesOf(clusters []Cluster) []string {
	out := make([]string, 0, len(clusters)+1)
	for i := range clusters {
		out = append(out, clusters[i].Name)
	}
	return out
}

// indexOf returns the index of a class in v, which may be nil; -1 if it is not the same object.
func (v *views) indexOf(c *v1alpha1.ResourceClass) int {
	if v == nil {
		return -1
	}
	return slices.IndexFunc(v.rolling, func(r rollingClass) bool { return r.object == c })
}

// classesIn encodes which classes have their earlier rules in a member: one byte for each class in a rollout. The result is "" if none has.
func (v *views) classesIn(cluster string) string {
	out, any := make([]byte, len(v.rolling)), false
	for i := range v.rolling {
		out[i] = '1'
		if !v.rolling[i].object.HasBegunIn(cluster) {
			out[i], any = '0', true
		}
	}
	if !any {
		return ""
	}
	return string(out)
}

// of returns the snapshot for members in which some classes have their earlier rules; present is the one without any.
func (v *views) of(present *Snapshot, classes string) *Snapshot {
	if classes == "" {
		return present
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	out := v.byClasses[classes]
	if out == nil {
		out = NewSnapshot(v.input(classes))
		v.byClasses[classes] = out
	}
	return out
}

// made returns the snapshot for some classes, if it was made. v may be nil.
func (v *views) made(classes string) *Snapshot {
	if v == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.byClasses[classes]
}

// pairsOfViews returns the snapshots of members that two snapshots of the fleet have, without those of which both are the given ones.
func pairsOfViews(old, new *Snapshot) [][2]*Snapshot {
	var out [][2]*Snapshot
	for _, v := range []*views{old.views, new.views} {
		if v == nil {
			continue
		}
		for name := range v.byMember {
			pair := [2]*Snapshot{old.In(name), new.In(name)}
			if pair != [2]*Snapshot{old, new} && !slices.Contains(out, pair) {
				out = append(out, pair)
			}
		}
	}
	return out
}

// input returns the input with the earlier rules of some classes. No class of it is in a rollout.
func (v *views) input(classes string) Input {
	in := v.in
	in.ResourceClasses = slices.Clone(in.ResourceClasses)
	for i, c := range in.ResourceClasses {
		k := v.indexOf(c)
		switch {
		case k < 0:
		case classes[k] == '0':
			in.ResourceClasses[i] = v.rolling[k].settled
		default:
			in.ResourceClasses[i] = v.rolling[k].begun
		}
	}
	return in
}
