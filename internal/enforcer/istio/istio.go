// Package istio translates units into Istio's AuthorizationPolicies, version 1.29 and later, for sidecars and, for
// whole connections, for ambient.
//
// The package is pure and must not depend on Istio's code: the objects are plain JSON values. Istio differs from
// label-based dataplanes: clients are service accounts, selectors are exact labels, a policy that allows closes
// everything else, and only TCP is enforced. What cannot be expressed is refused statement by statement, based on the
// capabilities that each member declares.
package istio

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

const (
	groupVersion = "security.istio.io/v1"
	kind         = "AuthorizationPolicy"
	// denySuffix is the suffix of the name of the object with the denies, because a policy has one action.
	denySuffix           = "-deny"
	defaultRootNamespace = "istio-system"
)

// Actions of a policy.
const (
	allow = "ALLOW"
	deny  = "DENY"
	audit = "AUDIT"
)

// ErrUnusableUnit is wrapped by Render's errors about units. Such a unit would select every pod, or close a resource
// that has statements.
var ErrUnusableUnit = errors.New("unusable unit")

// Enforcer is the Istio enforcer.
type Enforcer struct {
	config Config
	// fleet contains the addresses of all members' pods and nodes. It is nil while a member does not declare its own.
	fleet []fleetRange
	// foreign contains the unenforced denies that other units may have, by the profile of members.
	foreign map[profile][]foreignDeny
	// denies are the denies of all units, which a pod does not enforce for connections through a waypoint of another unit.
	denies []foreignDeny
}

var _ enforcer.Enforcer = Enforcer{}

// New returns an enforcer for the members that the configuration describes.
func New(c Config) (Enforcer, error) {
	if err := c.check(); err != nil {
		return Enforcer{}, err
	}
	if c.RootNamespace == "" {
		c.RootNamespace = defaultRootNamespace
	}
	return Enforcer{config: c, fleet: fleetOf(c)}, nil
}

// WithUnits returns an enforcer that considers the denies of these units. A pod may carry the labels of several
// classes: where a deny of one unit cannot be expressed, the allows of others that it could have overridden are left
// out, too. Render alone considers one unit, which suffices if no pod has the labels of several.
func (e Enforcer) WithUnits(units []policy.Unit) Enforcer {
	profiles := map[profile]struct{}{e.config.Default.profile(): {}}
	for _, c := range e.config.Members {
		profiles[c.profile()] = struct{}{}
	}
	e.foreign = map[profile][]foreignDeny{}
	for p := range profiles {
		e.foreign[p] = e.foreignDenies(units, p)
	}
	e.denies = allDenies(units)
	return e
}

func everEnforced(u *policy.Unit) bool {
	if u.Mode == v1alpha1.ModeEnforce {
		return true
	}
	for _, m := range u.ClusterModes {
		if m == v1alpha1.ModeEnforce {
			return true
		}
	}
	return false
}

// Name returns the name that classes use.
func (Enforcer) Name() v1alpha1.EnforcerName { return v1alpha1.EnforcerIstio }

// Render translates a unit, which must have its Statements, into an object with its allows and, if it has denies, one
// with these. Both are in Istio's root namespace. Observe is rendered as Audit, so that nothing is closed while the
// objects are being removed. A unit of a wildcard has no objects, because its allows are in the units of the resources.
func (e Enforcer) Render(u policy.Unit) (enforcer.Rendering, error) {
	if strings.HasSuffix(u.Resource, "*") {
		return enforcer.Rendering{}, nil
	}
	if err := usable(&u); err != nil {
		return enforcer.Rendering{}, err
	}
	ordinary := e.config.Default.profile()
	base := e.translate(&u, ordinary)
	byProfile := map[profile]translation{ordinary: base}
	byMember := map[string]translation{}
	for cluster := range u.ClusterModes {
		byMember[cluster] = base
	}
	out := enforcer.Rendering{Refused: base.refused, Unenforced: []message.Message{message.IstioTCPOnly()}}
	for cluster := range e.config.Members {
		p := e.config.profileFor(cluster, u.Resource)
		t, ok := byProfile[p]
		if !ok {
			t = e.translate(&u, p)
			byProfile[p] = t
		}
		byMember[cluster] = t
		if !slices.Equal(t.refused, base.refused) {
			if out.RefusedIn == nil {
				out.RefusedIn = map[string][]policy.Refusal{}
			}
			out.RefusedIn[cluster] = t.refused
		}
	}

	allowed := family{name: v1alpha1.ObjectPrefix + u.ID, action: allow, least: 1, base: parts(base.allow), members: map[string][][]any{}}
	denied := family{name: allowed.name + denySuffix, action: deny, base: parts(base.deny), members: map[string][][]any{}}
	if hasDenies(&u) {
		denied.least = 1
	}
	throughGateways := map[string]*throughGateway{}
	for cluster, t := range byMember {
		allowed.members[cluster], denied.members[cluster] = parts(t.allow), parts(t.deny)
		if t.through == nil {
			continue
		}
		g := newThroughGateway(allowed.name, t.through.waypoint)
		if same, ok := throughGateways[g.name()]; ok {
			g = same
		}
		throughGateways[g.name()] = g
		g.add(cluster, t.through)
	}
	for cluster, t := range byMember {
		if t.through == nil {
			continue
		}
		g := newThroughGateway(allowed.name, t.through.waypoint)
		held := enforcer.InterimSpec{Objects: throughGateways[g.name()].objects(), Rule: t.through.fromWaypoint()}
		// The rules about the waypoint are the last ones, so that they move no other rule to another object when they come or go.
		elsewhere := t.through.fromWaypointElsewhere()
		allowed.replaceLater(cluster, parts(slices.Concat(t.allow, []any{held.Rule})), held)
		denied.members[cluster] = parts(slices.Concat(t.deny, []any{elsewhere, held.Rule}))
		denied.replaceLater(cluster, parts(slices.Concat(t.deny, []any{elsewhere})), held)
	}
	families := []family{allowed, denied}
	for _, name := range slices.Sorted(maps.Keys(throughGateways)) {
		families = append(families, throughGateways[name].allowed, throughGateways[name].denied)
	}
	for _, f := range families {
		objects, err := e.objects(&u, f)
		if err != nil {
			return enforcer.Rendering{}, err
		}
		out.Objects = append(out.Objects, objects...)
	}
	return out, nil
}

// family is the list of objects of one action: at least `least`, and as many as the member with the most parts has. A
// member with fewer parts gets objects that match nobody.
type family struct {
	name, action string
	least        int
	base         [][]any
	members      map[string][][]any
	// gateway is the Gateway that the objects are about, or "" if they are about pods. Only the members have them.
	gateway string
	// interim contains, by member, for which objects of other families it waits until it gets the rules in members, and interimRules the rules that
	// it has until then.
	interim      map[string]enforcer.InterimSpec
	interimRules map[string][][]any
}

// replaceLater gives a member other rules once other objects are in force there. Until then it has its present ones.
func (f *family) replaceLater(cluster string, rules [][]any, until enforcer.InterimSpec) {
	if f.interim == nil {
		f.interim, f.interimRules = map[string]enforcer.InterimSpec{}, map[string][][]any{}
	}
	f.interim[cluster], f.interimRules[cluster], f.members[cluster] = until, f.members[cluster], rules
}

// partName returns the name of an object of the family. That of a Gateway is part of it, so that another Gateway has other objects.
func (f *family) partName(i int) string {
	name := f.name
	if i > 0 {
		name = fmt.Sprintf("%s-%d", name, i+1)
	}
	if f.gateway != "" {
		name += "." + f.gateway
	}
	return name
}

// size returns the number of objects of the family.
func (f *family) size() int {
	n := max(f.least, len(f.base))
	for _, parts := range f.members {
		n = max(n, len(parts))
	}
	return n
}

func (e Enforcer) objects(u *policy.Unit, f family) ([]enforcer.Rendered, error) {
	n := f.size()
	to := map[string]any{"selector": map[string]any{"matchLabels": map[string]any{u.LabelKey: u.LabelValue}}}
	if f.gateway != "" {
		to = targetOf(f.gateway)
	}
	var out []enforcer.Rendered
	for i := range n {
		o := enforcer.Object{GroupVersion: groupVersion, Kind: kind, Namespace: e.config.RootNamespace, Name: f.partName(i)}
		o.Spec = spec(to, u.Mode, f.action, part(f.base, i))
		specs, before := map[string]map[string]any{}, map[string]map[string]any{}
		for cluster, parts := range f.members {
			mode, ok := u.ClusterModes[cluster]
			if !ok {
				mode = u.Mode
			}
			specs[cluster] = spec(to, mode, f.action, part(parts, i))
			if _, held := f.interim[cluster]; held && mode == v1alpha1.ModeEnforce {
				before[cluster] = spec(to, mode, f.action, part(f.interimRules[cluster], i))
			}
		}
		r, err := enforcer.Render(o, u.ID, specs)
		if err != nil {
			return nil, err
		}
		switch {
		case f.gateway != "":
			r.Only = slices.Sorted(maps.Keys(f.members))
		case f.least == 0 && len(f.base) == 0: // only the rules about waypoints deny something
			r.Only = slices.DeleteFunc(slices.Sorted(maps.Keys(f.members)), func(c string) bool { return len(f.members[c]) == 0 })
		}
		for cluster, spec := range before {
			h := f.interim[cluster]
			h.Spec, h.Revision = spec, enforcer.Revision(spec)
			if h.Revision == r.RevisionIn(cluster) {
				continue
			}
			if r.Interim == nil {
				r.Interim = map[string]enforcer.InterimSpec{}
			}
			r.Interim[cluster] = h
		}
		out = append(out, r)
	}
	return out, nil
}

func part(parts [][]any, i int) []any {
	if i < len(parts) {
		return parts[i]
	}
	return nil
}

// spec returns an object's spec in one mode, with the field that says what it applies to. AUDIT decides nothing; Istio's dry-run annotation would not
// survive federation, and a policy without it enforces. An ALLOW policy whose only rule matches nobody closes the workload. A
// DENY policy without rules matches nothing, but Istio rejects it, so that the previous one would stay in force; AUDIT has
// the same effect.
func spec(to map[string]any, mode v1alpha1.Mode, action string, rules []any) map[string]any {
	if mode != v1alpha1.ModeEnforce || action == deny && len(rules) == 0 {
		action = audit
	}
	if action == allow && len(rules) == 0 {
		rules = []any{nobody()}
	}
	s := maps.Clone(to)
	s["action"] = action
	if len(rules) > 0 {
		s["rules"] = rules
	}
	return s
}

// hasDenies reports whether the object of the denies has to exist. It also has to while a statement of the unit is
// refused, which may be a deny: the removal of this object and the removal of an allow must not race.
func hasDenies(u *policy.Unit) bool {
	return len(u.Refused) > 0 || slices.ContainsFunc(u.Statements, func(st policy.UnitStatement) bool { return st.Effect == policy.Deny })
}

func usable(u *policy.Unit) error {
	switch {
	case u.ID == "":
		return fmt.Errorf("%w for %q: it has no id", ErrUnusableUnit, u.Resource)
	case u.LabelKey == "" || !policy.ValidLabelValue(u.LabelValue):
		return fmt.Errorf("%w %s: no label selects its pods", ErrUnusableUnit, u.ID)
	case u.Statements == nil:
		return fmt.Errorf("%w %s: it was compiled without its statements", ErrUnusableUnit, u.ID)
	}
	return nil
}
