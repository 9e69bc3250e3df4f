// Package cilium translates units into CiliumClusterwideNetworkPolicies, and the addresses of external workloads into
// CiliumCIDRGroups, for unmodified agents of version 1.19 and later.
//
// The package is pure and must not depend on Cilium's code: the objects are plain JSON values. It follows the rules of
// Cilium's engine; comments mark those that are easy to violate.
package cilium

import (
	"errors"
	"fmt"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/policy"
)

const (
	groupVersion = "cilium.io/v2"
	kind         = "CiliumClusterwideNetworkPolicy"
	// otherPortsSuffix is the suffix of the name of the object that opens the ports of no action.
	otherPortsSuffix = "-other-ports"
	logPrefix        = "acp:"
)

// ErrUnusableUnit is wrapped by Render's errors. Such a unit would select every pod or match every peer.
var ErrUnusableUnit = errors.New("unusable unit")

// Enforcer is the Cilium enforcer. The zero value treats every member as supporting everything.
type Enforcer struct {
	// Members are the capabilities of members by name.
	Members map[string]Member

	// Specs is the number of further specs for which each object has to leave room, each of the size of its own: those of members that
	// have another version of the unit. They are added with enforcer.Combine.
	Specs int

	// denied are the ports on which members deny all addresses; see DenyingAddresses.
	denied map[string][]v1alpha1.Port
}

var _ enforcer.Enforcer = Enforcer{}

// Name returns the name that classes use.
func (Enforcer) Name() v1alpha1.EnforcerName { return v1alpha1.EnforcerCilium }

// Render translates a unit into one object, or numbered parts if one would be too large, and another object if its
// class opens other ports. Observe is rendered as Audit, so that nothing is closed while the object is being removed. A
// member that lacks a capability gets the unit without what it cannot enforce.
func (e Enforcer) Render(u policy.Unit) (enforcer.Rendering, error) {
	return e.renderWithin(&u, MaxObjectBytes/(1+e.Specs))
}

// renderWithin is like Render, for objects of at most limit bytes.
func (e Enforcer) renderWithin(u *policy.Unit, limit int) (enforcer.Rendering, error) {
	if err := usable(u); err != nil {
		return enforcer.Rendering{}, err
	}
	v := e.variants(u)
	out := enforcer.Rendering{Refused: v.refused, RefusedIn: v.refusedIn}
	divided := divide(u, &v, limit)
	for i, rules := range divided.parts {
		var specs map[string]map[string]any
		if len(v.members) > 0 {
			specs = make(map[string]map[string]any, len(v.members))
		}
		for cluster, in := range v.members {
			specs[cluster] = in.spec(u, rules, e.denied[cluster])
		}
		closing, err := labelled(object(partName(u, i), v.base.spec(u, rules, nil)), u.ID, specs)
		if err != nil {
			return enforcer.Rendering{}, err
		}
		out.Objects = append(out.Objects, closing)
	}
	refuseClosed(&out, u, &v, divided.closed)
	if u.OtherPorts == v1alpha1.OtherPortsAllow && len(u.OpenPorts) > 0 {
		opening, err := labelled(object(v1alpha1.ObjectPrefix+u.ID+otherPortsSuffix, otherPortsSpec(u)), u.ID, nil)
		if err != nil {
			return enforcer.Rendering{}, err
		}
		out.Objects = append(out.Objects, opening)
	}
	return out, nil
}

// labelled is enforcer.Render with the revision of each spec as the label of its rules, which agents report with the rules
// that they have read. It changes the specs.
func labelled(o enforcer.Object, unit string, byCluster map[string]map[string]any) (enforcer.Rendered, error) {
	r, err := enforcer.Render(o, unit, byCluster)
	if err != nil {
		return r, err
	}
	enforcer.SetRuleLabel(r.Object.Spec, r.Revision)
	for cluster, spec := range r.Overrides {
		enforcer.SetRuleLabel(spec, r.Revisions[cluster])
	}
	return r, nil
}

func object(name string, spec map[string]any) enforcer.Object {
	return enforcer.Object{GroupVersion: groupVersion, Kind: kind, Name: name, Spec: spec}
}

func usable(u *policy.Unit) error {
	switch {
	case u.ID == "":
		return fmt.Errorf("%w for %q: it has no id", ErrUnusableUnit, u.Resource)
	case u.LabelKey == "" || !u.Wildcard && !policy.ValidLabelValue(u.LabelValue):
		return fmt.Errorf("%w %s: no label selects its pods", ErrUnusableUnit, u.ID)
	case u.Wildcard && (u.Mode != v1alpha1.ModeAudit || len(u.ClusterModes) > 0):
		return fmt.Errorf("%w %s: a wildcard must not close workloads, and its mode is not Audit everywhere", ErrUnusableUnit, u.ID)
	}
	for i := range u.Rules {
		r := &u.Rules[i]
		switch {
		case !r.HasPeers() || len(r.Ports) == 0:
			return fmt.Errorf("%w %s: a rule without peers or ports", ErrUnusableUnit, u.ID)
		case u.Wildcard && r.Effect == policy.Deny:
			return fmt.Errorf("%w %s: a deny in a wildcard", ErrUnusableUnit, u.ID)
		}
		for _, s := range r.Subjects {
			if s.LabelKey == "" || len(s.Values) == 0 && !s.Any {
				return fmt.Errorf("%w %s: a subject without label", ErrUnusableUnit, u.ID)
			}
		}
	}
	return nil
}

// unitSpec returns the spec of some of the rules in one mode. Only Enforce enables default deny and renders denies and
// HTTP rules: in Audit a deny would deny, an HTTP rule would drop what it does not match, and without its HTTP part the
// rule would let every request in to a pod that another unit closes.
func unitSpec(u *policy.Unit, rules []policy.Rule, mode v1alpha1.Mode) map[string]any {
	enforce := mode == v1alpha1.ModeEnforce
	var ingress, deny []any
	for i := range rules {
		r := &rules[i]
		switch {
		case !enforce && (r.Effect == policy.Deny || len(r.HTTP) > 0):
		case r.Effect == policy.Allow:
			ingress = appendRules(ingress, allowPeers(r), toPorts(r))
		default:
			deny = appendRules(deny, denyPeers(r), portLists(r.Ports, nil))
		}
	}
	if len(ingress) == 0 {
		// Agents reject an empty list, and the previous policy, or none, would stay in force.
		ingress = []any{map[string]any{}}
	}
	spec := baseSpec(u, enforce)
	spec["endpointSelector"] = workloads(u)
	spec["ingress"] = ingress
	if len(deny) > 0 {
		spec["ingressDeny"] = deny
	}
	return spec
}

// appendRules appends a rule for each kind of peers, because agents reject a rule with several kinds.
func appendRules(out []any, peers []peerList, ports []any) []any {
	for _, p := range peers {
		out = append(out, map[string]any{p.kind: p.list, "toPorts": ports})
	}
	return out
}

// workloads returns the selector of the unit's pods.
func workloads(u *policy.Unit) map[string]any {
	switch {
	case !u.Wildcard:
		return map[string]any{"matchLabels": map[string]any{labelKey(u.LabelKey): u.LabelValue}}
	case len(u.LabelValues) > 0:
		return map[string]any{"matchExpressions": []any{valuesIn(u.LabelKey, u.LabelValues)}}
	default:
		return map[string]any{"matchExpressions": hasLabel(u.LabelKey)}
	}
}

// otherPortsSpec opens the ports of no action for every source, in every mode, on workloads without another class's
// label. It never enables default deny, so alone it has no effect.
func otherPortsSpec(u *policy.Unit) map[string]any {
	selector := workloads(u)
	if len(u.ForeignKeys) > 0 {
		var absent []any
		for _, key := range u.ForeignKeys {
			absent = append(absent, expression(labelKey(key), "DoesNotExist"))
		}
		selector["matchExpressions"] = absent
	}
	everyone := []any{"all"}
	spec := baseSpec(u, false)
	spec["endpointSelector"] = selector
	// Ports and ICMP types are in two rules, because agents reject one rule with both.
	spec["ingress"] = []any{
		map[string]any{"fromEntities": everyone, "toPorts": portLists(u.OpenPorts, nil)},
		map[string]any{"fromEntities": everyone, "icmps": icmps()},
	}
	return spec
}

// baseSpec returns the fields that every spec has. enableDefaultDeny is written in full: the agent would derive a
// missing field from the sections that exist, and ingressDeny alone would close the workload.
func baseSpec(u *policy.Unit, closed bool) map[string]any {
	return map[string]any{
		"enableDefaultDeny": map[string]any{"ingress": closed, "egress": false},
		"log":               map[string]any{"value": logPrefix + u.ID},
	}
}
