package federation

import (
	"maps"
	"slices"
)

// IstioExposure records which pods of some classes are opened in a member by Istio policies of others, by the labels of the
// classes.
//
// If the member's identities are known, it is computed for the existing pods. Otherwise (agents may store identities
// elsewhere), it is computed for any pod with the class's label.
type IstioExposure struct {
	// labels are the labels of existing pods, with a policy that opens them.
	labels map[Label]string
	// unsure are all policies, for label keys without identities that show which pods exist.
	unsure []IstioAllow
	// keys are the label keys of the classes, and whether unsure applies to them.
	keys map[string]bool
	// waypoints are the policies that may let in connections to waypoints.
	waypoints []IstioAllow
	// harmless are the policies of unsure that let in nothing beyond ACP's policies, by label.
	harmless map[harmless]bool
}

type harmless struct {
	// policy is an index into unsure.
	policy int
	to     Label
}

// FindIstioExposure determines what policies open in a member beyond ACP's own. each calls its argument with the labels of
// every identity there. keys are the label keys of the classes, and whether every pod with the key has an identity with
// it, if identities exist at all.
func FindIstioExposure(policies []IstioAllow, own []*OwnAllowed, keys map[string]bool, each func(do func(labels []Handle))) IstioExposure {
	out, known := IstioExposure{labels: map[Label]string{}, keys: map[string]bool{}, harmless: map[harmless]bool{}}, map[string]bool{}
	compared := newComparison(own)
	each(func(labels []Handle) {
		for _, h := range labels {
			known[h.Value().Key] = true
		}
	})
	for key, sure := range keys {
		if out.keys[key] = len(known) == 0 || !sure && !known[key]; out.keys[key] {
			out.unsure = policies
		}
	}
	for i := range out.unsure {
		for l := range compared.byLabel {
			if p := &out.unsure[i]; out.keys[l.Key] && p.MaySelect(l.Key, l.Value) && !compared.adds(p, map[string]string{l.Key: l.Value}) {
				out.harmless[harmless{i, l}] = true
			}
		}
	}
	byNamespace := map[string][]IstioAllow{}
	for _, p := range policies {
		if len(p.gateways) > 0 {
			out.waypoints = append(out.waypoints, p)
		}
		byNamespace[p.namespace()] = append(byNamespace[p.namespace()], p)
	}
	each(func(labels []Handle) {
		var ofClasses []Label
		for _, h := range labels {
			l := h.Value()
			if _, ours := keys[l.Key]; ours && out.labels[l] == "" {
				ofClasses = append(ofClasses, l)
			}
		}
		if len(ofClasses) == 0 {
			return
		}
		pod := make(map[string]string, len(labels))
		for _, h := range labels {
			pod[h.Value().Key] = h.Value().Value
		}
		candidates := policies // the namespace of an identity without one is not known
		if ns, ok := pod[namespaceKey]; ok {
			candidates = slices.Concat(byNamespace[""], byNamespace[ns])
		}
		i := slices.IndexFunc(candidates, func(p IstioAllow) bool {
			return p.Selects(pod, func(key string) bool { return known[key] }) && compared.adds(&p, pod)
		})
		if i < 0 {
			return
		}
		for _, l := range ofClasses {
			out.labels[l] = candidates[i].String()
		}
	})
	return out
}

// OpenedBy returns the name of a policy that opens, or may open, the pods with a label, or for WaypointKey the waypoint of a Gateway; "" if there
// is none.
func (o IstioExposure) OpenedBy(key, value string) string {
	if key == WaypointKey {
		i := slices.IndexFunc(o.waypoints, func(p IstioAllow) bool { return p.opensWaypoint(value) })
		if i < 0 {
			return ""
		}
		return o.waypoints[i].String()
	}
	if name := o.labels[Label{Key: key, Value: value}]; name != "" || !o.keys[key] {
		return name
	}
	for i, p := range o.unsure {
		if p.MaySelect(key, value) && !o.harmless[harmless{i, Label{Key: key, Value: value}}] {
			return p.String()
		}
	}
	return ""
}

// Equal reports whether two values are equal.
func (o IstioExposure) Equal(p IstioExposure) bool {
	return maps.Equal(o.labels, p.labels) && maps.Equal(o.keys, p.keys) && maps.Equal(o.harmless, p.harmless) &&
		slices.EqualFunc(o.unsure, p.unsure, IstioAllow.Equal) && slices.EqualFunc(o.waypoints, p.waypoints, IstioAllow.Equal)
}
