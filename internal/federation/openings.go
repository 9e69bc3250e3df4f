package federation

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Openings are the policies in the members that let connections in through one dataplane, whoever wrote them.
type Openings struct{ kinds []*fleet[Opening] }

// NewCiliumOpenings are what Cilium adds up: both of its own kinds, and Kubernetes' policies. They do nothing until Run. Kind
// and Revision of the config are not needed.
func NewCiliumOpenings(config FleetConfig) (*Openings, error) {
	return newOpenings(config, CiliumPolicy, ciliumNetworkPolicy, networkPolicy)
}

// NewIstioOpenings are Istio's, of every namespace.
func NewIstioOpenings(config FleetConfig) (*Openings, error) {
	return newOpenings(config, istioPolicies)
}

func newOpenings(config FleetConfig, kinds ...Kind) (*Openings, error) {
	o := &Openings{}
	for _, k := range kinds {
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
func (o *Openings) In(cluster string, ours func(Opening) bool) []Opening {
	var out []Opening
	for _, f := range o.kinds {
		f.mu.RLock()
		m := f.members[cluster]
		f.mu.RUnlock()
		if m == nil {
			continue
		}
		m.watch.each(func(p Opening) {
			if p.Opens() && !ours(p) {
				out = append(out, p)
			}
		})
	}
	slices.SortFunc(out, func(a, b Opening) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

// Ours tells whether a policy's Federated object is on the host, so that what it lets in is what policies say.
func (o *Objects) Ours(p Opening) bool {
	found, ok := o.Get(p.Name)
	return ok && p.Kind == o.kind.Target.Kind && p.Namespace == o.kind.Namespace && found.Meta.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy
}
