package policy

import (
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// These constants order the modes by strictness; Observe is the least strict.
const (
	observing int8 = iota
	auditing
	enforcing
)

// strictness returns the position of a mode in that order, or -1 for an invalid mode.
func strictness(m v1alpha1.Mode) int8 {
	switch m {
	case v1alpha1.ModeObserve:
		return observing
	case v1alpha1.ModeAudit:
		return auditing
	case v1alpha1.ModeEnforce:
		return enforcing
	default:
		return -1
	}
}

func stricter(a, b v1alpha1.Mode) v1alpha1.Mode {
	if strictness(b) > strictness(a) {
		return b
	}
	return a
}

// protection contains the ProtectedResources of one name. They are kept separately, because a temporary audit relaxes
// only its own object, and waves hold only its own Enforce.
type protection struct {
	objects []*v1alpha1.ProtectedResource
	inline  [1]*v1alpha1.ProtectedResource // storage of objects for the common case of one
}

// mode returns the strictest mode of the objects, and Observe for a resource that is not onboarded.
func (p *protection) mode(cluster string, at time.Time) v1alpha1.Mode {
	mode := v1alpha1.ModeObserve
	if p == nil {
		return mode
	}
	for _, o := range p.objects {
		mode = stricter(mode, objectMode(o, cluster, at))
	}
	return mode
}

// named returns the members that may have another mode than the base mode, with duplicates.
func (p *protection) named() []v1alpha1.ClusterName {
	var out []v1alpha1.ClusterName
	for _, o := range p.objects {
		for i := range o.Spec.ClusterModes {
			out = append(out, o.Spec.ClusterModes[i].Cluster)
		}
		out = append(out, o.Status.Rollout.Named()...)
	}
	return out
}

func objectMode(o *v1alpha1.ProtectedResource, cluster string, at time.Time) v1alpha1.Mode {
	spec := &o.Spec
	mode := spec.Mode
	if cluster != "" {
		for i := range spec.ClusterModes {
			if m := &spec.ClusterModes[i]; string(m.Cluster) == cluster {
				mode = m.Mode
				break
			}
		}
	}
	if mode == v1alpha1.ModeEnforce &&
		(spec.TemporaryAudit != nil && at.Before(spec.TemporaryAudit.Until.Time) || o.Status.Rollout.Holds(cluster)) {
		return v1alpha1.ModeAudit
	}
	return mode
}

// EffectiveMode returns the mode of a resource in a member at an instant: the strictest mode of the ProtectedResources
// with that name, including temporary audits and waves. Cluster "" stands for the base mode, which members have that no object
// names. A resource that is not onboarded is in Observe.
func (s *Snapshot) EffectiveMode(resource, cluster string, at time.Time) v1alpha1.Mode {
	return s.protected[resource].mode(cluster, at)
}

// newProtections returns the protections by resource, and the resources in Enforce that no class covers, sorted. The objects are sorted by name.
func newProtections(in []*v1alpha1.ProtectedResource, resources classes[*resourceClass]) (out map[string]*protection, unclassed []string, problems []Problem) {
	const kind = "ProtectedResource"
	out = make(map[string]*protection, len(in))
	for _, o := range in {
		name := string(o.Spec.Resource)
		if reason, err := protectable(&o.Spec, resources); err != nil {
			problems = append(problems, Problem{Kind: kind, Name: o.Name, Reason: reason, Message: message.Of(err), LeftOut: true})
			if reason == v1alpha1.ReasonNoClass && everEnforced(&o.Spec) {
				unclassed = append(unclassed, name)
			}
			continue
		}
		p := out[name]
		if p == nil {
			p = &protection{}
			p.objects = p.inline[:0]
			out[name] = p
		}
		p.objects = append(p.objects, o)
	}
	for name, p := range out {
		if n := len(p.objects); n > 1 {
			for _, o := range p.objects {
				problems = append(problems, Problem{Kind: kind, Name: o.Name, Reason: v1alpha1.ReasonDuplicate,
					Message: message.ProblemResourceTwice(n, name)})
			}
		}
	}
	return out, sortedUnique(unclassed), problems
}

// everEnforced reports whether an object is in Enforce in some member once its temporary audit is over.
func everEnforced(spec *v1alpha1.ProtectedResourceSpec) bool {
	return spec.Mode == v1alpha1.ModeEnforce ||
		slices.ContainsFunc(spec.ClusterModes, func(m v1alpha1.ClusterMode) bool { return m.Mode == v1alpha1.ModeEnforce })
}

func protectable(spec *v1alpha1.ProtectedResourceSpec, resources classes[*resourceClass]) (reason string, err error) {
	n, err := ParseName(string(spec.Resource))
	if err != nil {
		return v1alpha1.ReasonInvalid, err
	}
	if n.Wildcard || n.IsPrefix() {
		return v1alpha1.ReasonInvalid, message.NameProtectedResource(message.Quoted(n.String())).WithKind(ErrInvalidName)
	}
	if strictness(spec.Mode) < 0 {
		return v1alpha1.ReasonInvalid, message.ProblemMode(message.Quoted(string(spec.Mode))).Err()
	}
	for _, m := range spec.ClusterModes {
		if strictness(m.Mode) < 0 {
			return v1alpha1.ReasonInvalid, message.ProblemClusterMode(message.Quoted(string(m.Mode)), string(m.Cluster)).Err()
		}
	}
	c, ok := resources.of(string(spec.Resource))
	if !ok {
		return v1alpha1.ReasonNoClass, message.ProblemResourceNoClass(n.String()).Err()
	}
	if _, err := labelValue(c.stem, string(spec.Resource)); err != nil {
		return v1alpha1.ReasonInvalid, err
	}
	return "", nil
}
