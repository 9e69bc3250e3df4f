package federation

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Openings are the policies in the members that let connections in, whoever wrote them: those of Kubernetes, and both of
// Cilium's kinds.
type Openings struct{ kinds []*fleet[Opening] }

// NewOpenings makes Openings that do nothing until Run. Kind and Revision of the config are not needed.
func NewOpenings(config FleetConfig) (*Openings, error) {
	o := &Openings{}
	for _, k := range []Kind{CiliumPolicy, ciliumNetworkPolicy, networkPolicy} {
		config.Kind = k
		f, err := newFleet(config, parseOpening)
		if err != nil {
			return nil, err
		}
		o.kinds = append(o.kinds, f)
	}
	return o, nil
}

// Run follows the members until the context ends.
func (o *Openings) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, f := range o.kinds {
		running.Go(func() { _ = f.Run(ctx) }) // it ends with the context, and has no other error
	}
	running.Wait()
	return nil
}

// In are the policies of a member that let somebody in, by what people call them, without those that ours tells. Of a
// member that cannot be read now they are the last that were seen; of a kind that was never read, none are known.
func (o *Openings) In(cluster string, ours func(name string) bool) []Opening {
	var out []Opening
	for _, f := range o.kinds {
		f.mu.RLock()
		m := f.members[cluster]
		f.mu.RUnlock()
		if m == nil {
			continue
		}
		m.watch.each(func(p Opening) {
			if p.Opens() && (p.Namespace != "" || !ours(p.Name)) {
				out = append(out, p)
			}
		})
	}
	slices.SortFunc(out, func(a, b Opening) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

// Ours tells whether an object of that name is on the host, so that what it lets in is what policies say.
func (o *Objects) Ours(name string) bool {
	found, ok := o.Get(name)
	return ok && found.Meta.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy
}
