// Package registry lists the built-in enforcers and prepares the input that each needs in addition to single units, so
// that programs do not depend on the enforcers. The behaviour of an enforcer is in its own package.
package registry

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/policy"
)

// ErrUnknown is wrapped by Prepare's error for a name that no built-in enforcer has.
var ErrUnknown = errors.New("unknown enforcer")

// Job is the input of an enforcer.
type Job struct {
	Snapshot *policy.Snapshot
	// Units are the units to render. The denies of other units, which may concern them, are read from the snapshot.
	Units []policy.Unit
	At    time.Time
}

// Plan is an enforcer that is prepared for a job, with the units to render.
type Plan struct {
	Enforcer enforcer.Enforcer
	// Units are the units of the job in the same order, in the form that this enforcer needs.
	Units []policy.Unit
	// Shared are objects that several units refer to.
	Shared []Shared
}

// Shared is an object that units refer to.
type Shared struct {
	// Subject is the name of the subject that the object is about.
	Subject   string
	Rendering enforcer.Rendering
	// UsedBy reports whether a unit refers to the object.
	UsedBy func(*policy.Unit) bool
}

// Entry registers an enforcer.
type Entry struct {
	// Prepare prepares the enforcer for a job.
	Prepare func(Job) (Plan, error)
	// Effect classifies what the replacement of the spec of one of its policies does to the clients; nil stands for a member without the
	// policy.
	Effect func(before, after map[string]any) enforcer.Effect
	// Audit returns the spec of one of its policies changed so that the policy refuses nobody. The downgrade of a member writes it where only the
	// member is available.
	Audit func(spec map[string]any) map[string]any
	// WithoutAllows returns the spec of one of its policies without what it allows, so that it only refuses; nil if the policy is not needed then.
	// An object that is no longer rendered stays with that spec in members that cannot be reached.
	WithoutAllows func(spec map[string]any) map[string]any
}

// builtIn contains all enforcers. Add new enforcers here.
var builtIn = map[v1alpha1.EnforcerName]Entry{
	v1alpha1.EnforcerCilium: {Prepare: prepareCilium, Effect: cilium.EffectOf, Audit: cilium.AuditSpec, WithoutAllows: cilium.WithoutAllows},
	v1alpha1.EnforcerIstio:  {Prepare: prepareIstio, Effect: istio.EffectOf, Audit: istio.AuditSpec, WithoutAllows: istio.WithoutAllows},
}

// Of returns the entry of an enforcer; without functions if it is not built in.
func Of(name v1alpha1.EnforcerName) Entry { return builtIn[name] }

// Register registers another enforcer until the returned function is called, and not concurrently with any use of the registry. It is for
// tests: the enforcers of the programs are in builtIn.
func Register(name v1alpha1.EnforcerName, e Entry) (remove func()) {
	before := builtIn
	builtIn = maps.Clone(before)
	builtIn[name] = e
	return func() { builtIn = before }
}

// Names returns the names of the enforcers, sorted.
func Names() []v1alpha1.EnforcerName { return slices.Sorted(maps.Keys(builtIn)) }

// Check returns nil if an enforcer is built in; otherwise an error that wraps ErrUnknown and lists the built-in ones.
func Check(name v1alpha1.EnforcerName) error {
	if builtIn[name].Prepare == nil {
		return fmt.Errorf("%w %q: this build has %v", ErrUnknown, name, Names())
	}
	return nil
}

// Prepare prepares an enforcer for a job.
func Prepare(name v1alpha1.EnforcerName, j Job) (Plan, error) {
	if err := Check(name); err != nil {
		return Plan{}, err
	}
	return builtIn[name].Prepare(j)
}

// fleetCilium is the Cilium enforcer for the fleet of a snapshot.
type fleetCilium struct {
	cilium.Enforcer
	job    *Job
	meshes policy.Meshes
}

// Render implements enforcer.Enforcer.
func (e fleetCilium) Render(u policy.Unit) (enforcer.Rendering, error) {
	s, targets := e.job.Snapshot, e.job.Snapshot.Targets(&u)
	enforces := func(member string) bool {
		mode, own := u.ClusterModes[member]
		return mode == v1alpha1.ModeEnforce || !own && u.Mode == v1alpha1.ModeEnforce
	}
	c, apart := e.ForUnit(s, &u, e.meshes, targets, enforces, e.job.At)
	out, err := c.Render(u)
	if err != nil || len(apart.RefusedIn)+len(apart.Notes) == 0 {
		return out, err
	}
	in := maps.Clone(out.RefusedIn)
	if in == nil {
		in = map[string][]policy.Refusal{}
	}
	for member, refused := range apart.RefusedIn {
		in[member] = slices.Concat(out.RefusedBy(member), refused)
	}
	out.RefusedIn, out.Unenforced = in, append(out.Unenforced, apart.Notes...)
	return out, nil
}

// members converts the fleet to the form that the translation uses.
func members(fleet []policy.Cluster) map[string]cilium.Member {
	out := make(map[string]cilium.Member, len(fleet))
	for i := range fleet {
		out[fleet[i].Name] = cilium.Member{NoHTTP: fleet[i].WithoutRequests()}
	}
	return out
}

// prepareCilium prepares the Cilium enforcer for the reported capabilities of the snapshot's fleet.
func prepareCilium(j Job) (Plan, error) {
	e := cilium.Enforcer{Members: members(j.Snapshot.Fleet())}
	out := Plan{Enforcer: e, Units: j.Units}
	if m := j.Snapshot.Meshes(); m.HasSeveral() {
		out.Enforcer = fleetCilium{Enforcer: e, job: &j, meshes: m}
	}
	for _, g := range j.Snapshot.ExternalGroups() {
		r, err := cilium.RenderGroup(g)
		if err != nil {
			return Plan{}, err
		}
		out.Shared = append(out.Shared, Shared{Subject: g.Subject, Rendering: r, UsedBy: func(u *policy.Unit) bool {
			return slices.ContainsFunc(u.Rules, func(r policy.Rule) bool {
				return slices.Contains(r.External, g.ID) || slices.Contains(r.ExternalClasses, g.ClassID)
			})
		}})
	}
	return out, nil
}

// prepareIstio prepares the Istio enforcer for what the members of the snapshot's fleet declare. If nothing is declared,
// no member can enforce anything: the resources are closed, and every statement is refused.
func prepareIstio(j Job) (Plan, error) {
	t, ok := j.Snapshot.Translator(v1alpha1.EnforcerIstio).(*istioTranslator)
	if !ok {
		t = &istioTranslator{}
	}
	e := t.enforcer(j.Snapshot.Fleet())
	units := slices.Clone(j.Units)
	for i := range units {
		if units[i].Statements == nil && !units[i].Wildcard {
			units[i] = j.Snapshot.WithStatements(units[i], j.At)
		}
	}
	denying := slices.Concat(units, j.Snapshot.DenyingUnits(v1alpha1.EnforcerIstio, j.At))
	return Plan{Enforcer: e.WithUnits(denying), Units: units}, nil
}
