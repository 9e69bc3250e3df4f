package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation/foreignpolicy"
)

// ForeignPolicies reads the policies of others in the members that Cilium enforces, and the address groups that they
// may reference. It is idle until Run.
type ForeignPolicies struct {
	// clusterwide are Cilium's clusterwide policies, as they are read for ACP's own: these are among them, and nearly all of them.
	clusterwide *Fleet
	// kinds are the policies of the other kinds.
	kinds  []*fleet[policyObject]
	groups *fleet[foreignpolicy.Group]
	// own returns ACP's object of the host with that name.
	own func(name string) (*Object, bool)
	// revision computes the revision of a spec.
	revision Revision
}

// policyObject is a policy in a member.
type policyObject struct {
	*foreignpolicy.Policy
	// own reports whether isOwn is true for the object. The rules are then not parsed.
	own bool
	ownName
}

// ownName describes a policy that has a name of ACP.
type ownName struct {
	// selection describes which pods the policy selects; "" for a policy with another name.
	selection string
	// altered reports whether the content does not match the label of its revision. It is not computed, and false,
	// if the host's object with this name belongs to no wildcard.
	altered bool
}

// NewForeignPolicies returns ForeignPolicies. The config needs no Kind. clusterwide reads Cilium's clusterwide policies of the members and calls
// its own Changed for them, not that of the config; it must not run yet. Copies of the objects in own are not stored. own should be listed
// before clusterwide and the result run, because otherwise they are.
func NewForeignPolicies(config FleetConfig, own *Objects, clusterwide *Fleet) (*ForeignPolicies, error) {
	f := &ForeignPolicies{clusterwide: clusterwide, own: func(name string) (*Object, bool) {
		found, ok := own.Get(name)
		return found, ok && found.Meta.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy
	}, revision: config.Revision}
	clusterwide.foreign, clusterwide.group = f.parseClusterwide, groupOf
	for _, k := range []Kind{ciliumNetworkPolicy, networkPolicy, clusterNetworkPolicy} {
		config.Kind = k
		one, err := newFleet(config, func(u *unstructured.Unstructured) (policyObject, error) { return f.parse(u, k), nil })
		if err != nil {
			return nil, err
		}
		f.kinds = append(f.kinds, one)
	}
	config.Kind = CiliumGroup
	var err error
	f.groups, err = newFleet(config, parseGroup)
	return f, err
}

// groupForeign is the group of the policies of others among those that are read back, which may be very few of very many.
const groupForeign = "foreign"

func groupOf(o Observed) string {
	if o.foreign == nil {
		return ""
	}
	return groupForeign
}

// parseClusterwide returns a clusterwide policy of Cilium as a policy of others, or nil for one of ACP's own.
func (f *ForeignPolicies) parseClusterwide(u *unstructured.Unstructured) *policyObject {
	p := f.parse(u, CiliumPolicy)
	if p.own {
		return nil
	}
	return &p
}

// parse parses a policy. Lists of some API servers omit the kinds of their items.
func (f *ForeignPolicies) parse(u *unstructured.Unstructured, k Kind) policyObject {
	var out policyObject
	if k.Target == CiliumPolicy.Target && strings.HasPrefix(u.GetName(), v1alpha1.ObjectPrefix) {
		out.selection = selectionOf(u.Object)
		if o, ok := f.own(u.GetName()); !ok || o.isOfWildcard() {
			read, err := f.revision.parse(u)
			out.altered = err != nil || read.Revision != read.Label
		}
		if out.own = f.isOwn(u.GetName(), out.ownName); out.own {
			return policyObject{own: true, Policy: &foreignpolicy.Policy{Kind: k.Target.Kind, Name: u.GetName()}}
		}
	}
	read := &unstructured.Unstructured{Object: map[string]any{}}
	for field, value := range u.Object {
		read.Object[field] = value
	}
	read.SetKind(k.Target.Kind)
	out.Policy = foreignpolicy.Parse(read)
	return out
}

// isOwn reports whether the host has an object of ACP with that name that selects the same pods as the member's. The other fields of the
// member's object affect only the unit's own pods, and the unit's read-back compares them. An object that selects other pods counts as a
// foreign policy, although it has a name of ACP. So does an altered object of a wildcard, because it affects pods of other units.
func (f *ForeignPolicies) isOwn(name string, found ownName) bool {
	o, ok := f.own(name)
	if !ok || found.altered && o.isOfWildcard() {
		return false
	}
	selection := found.selection
	if selectionOf(map[string]any{"spec": o.TemplateSpec}) == selection {
		return true
	}
	for _, own := range o.Overrides {
		if own.Spec != nil && selectionOf(map[string]any{"spec": own.Spec}) == selection {
			return true
		}
	}
	return false
}

// selectionOf describes the selectors of a policy of Cilium. Descriptions of equal selectors are equal.
func selectionOf(policy map[string]any) string {
	var selectors []any
	add := func(spec any) {
		fields, _ := spec.(map[string]any)
		selectors = append(selectors, fields["endpointSelector"], fields["nodeSelector"])
	}
	if spec, ok := policy["spec"]; ok {
		add(spec)
	}
	if specs, ok := policy["specs"].([]any); ok {
		for _, spec := range specs {
			add(spec)
		}
	} else if policy["specs"] != nil {
		selectors = append(selectors, "unreadable")
	}
	text, err := json.Marshal(selectors)
	if err != nil {
		return err.Error() // no description of a host's object is equal to it
	}
	return string(text)
}

func parseGroup(u *unstructured.Unstructured) (foreignpolicy.Group, error) {
	g := foreignpolicy.Group{Name: u.GetName(), Labels: map[string]string{}}
	for k, v := range u.GetLabels() {
		if !strings.HasPrefix(k, "io.cilium") { // agents ignore these labels
			g.Labels[k] = v
		}
	}
	list, _, err := unstructured.NestedStringSlice(u.Object, "spec", "externalCIDRs")
	if err != nil {
		return g, fmt.Errorf("read group %s: %w", g.Name, err)
	}
	for _, text := range list {
		p, err := netip.ParsePrefix(text)
		if a, ofOne := netip.ParseAddr(text); ofOne == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		switch {
		case err == nil:
			g.Prefixes = append(g.Prefixes, p)
		case !strings.HasPrefix(g.Name, v1alpha1.ObjectPrefix): // in doubt, a group of others contains every address
			g.Prefixes = append(g.Prefixes, netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0))
		}
	}
	return g, nil
}

// Run follows the members until the context ends, except for the clusterwide policies.
func (f *ForeignPolicies) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, k := range f.kinds {
		running.Go(func() { _ = k.Run(ctx) }) // it ends with the context and returns no other error
	}
	running.Go(func() { _ = f.groups.Run(ctx) })
	running.Wait()
	return nil
}

// Registry reports whether every watch has listed the members' registrations.
func (f *ForeignPolicies) Registry() (bool, error) {
	if listed, err := f.clusterwide.Registry(); !listed {
		return listed, err
	}
	for _, k := range f.kinds {
		if listed, err := k.Registry(); !listed {
			return listed, err
		}
	}
	return f.groups.Registry()
}

// Clusters returns the registered members by name.
func (f *ForeignPolicies) Clusters() []Cluster { return f.groups.Clusters() }

// Observe reports whether all kinds can be read in a member. A kind that the member does not serve has no objects
// there.
func (f *ForeignPolicies) Observe(cluster string) Observation {
	out := Observation{Registered: true, Reachable: true}
	if o, _ := f.clusterwide.present(cluster); !o.Reachable {
		return o
	}
	for _, k := range f.kinds {
		if o, _ := k.present(cluster); !o.Reachable {
			return o
		}
	}
	if o, _ := f.groups.present(cluster); !o.Reachable {
		return o
	}
	return out
}

// In returns the policies of others in a member, and its groups, as last seen.
func (f *ForeignPolicies) In(cluster string) (policies []*foreignpolicy.Policy, groups []foreignpolicy.Group) {
	add := func(p *policyObject) {
		if !p.own && (p.selection == "" || !f.isOwn(p.Name, p.ownName)) {
			policies = append(policies, p.Policy)
		}
	}
	if _, m := f.clusterwide.present(cluster); m != nil {
		for _, o := range m.watch.Group(groupForeign) {
			add(o.foreign)
		}
	}
	for _, k := range f.kinds {
		if _, m := k.present(cluster); m != nil {
			m.watch.each(func(p policyObject) { add(&p) })
		}
	}
	if _, m := f.groups.present(cluster); m != nil {
		groups = m.watch.List()
	}
	return policies, groups
}

// present reports whether a member's objects are known. If the member does not serve the kind, it has no objects, and
// the returned member is nil.
func (f *fleet[T]) present(cluster string) (Observation, *member[T]) {
	o, m := f.observe(cluster)
	if m != nil && !o.Reachable && m.lacksKind() {
		return Observation{Registered: true, Reachable: true}, nil
	}
	return o, m
}

// lacksKind reports whether the member answered that it does not serve the kind.
func (m *member[T]) lacksKind() bool {
	m.mu.RLock()
	alive, why := m.alive, m.why
	m.mu.RUnlock()
	if !alive {
		return apierrors.IsNotFound(why)
	}
	_, err := m.watch.State()
	return apierrors.IsNotFound(err)
}

// OwnPolicies parses ACP's own policies for a member from the host's objects, so that they are stored once for all
// members.
type OwnPolicies struct {
	mu   sync.Mutex
	read map[ownKey]ownPolicy
}

type ownKey struct{ name, cluster string }

type ownPolicy struct {
	of     *Object
	policy *foreignpolicy.Policy
}

// In returns the policies that are placed in a member.
func (o *OwnPolicies) In(cluster string, objects *Objects) []*foreignpolicy.Policy {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.read == nil {
		o.read = map[ownKey]ownPolicy{}
	}
	var out []*foreignpolicy.Policy
	all := objects.List()
	for _, object := range all {
		spec, key := object.SpecIn(cluster), ownKey{name: object.Meta.Name}
		if spec == nil {
			continue
		}
		if object.Overrides[cluster].Spec != nil {
			key.cluster = cluster
		}
		have, ok := o.read[key]
		if !ok || have.of != object {
			u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
			u.SetKind(CiliumPolicy.Target.Kind)
			u.SetName(object.Meta.Name)
			have = ownPolicy{object, foreignpolicy.Parse(u)}
			o.read[key] = have
		}
		out = append(out, have.policy)
	}
	if len(o.read) > 2*len(all)+1024 {
		clear(o.read)
	}
	return out
}
