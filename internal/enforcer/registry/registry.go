// Package registry knows every enforcer that is built in, and what each needs beside single units, so that programs
// need not. It only collects: what an enforcer does is in its own package.
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

// ErrUnknown is wrapped by Prepare's error about a name that no built-in enforcer has.
var ErrUnknown = errors.New("unknown enforcer")

// Job is everything that is to be rendered.
type Job struct {
	Snapshot *policy.Snapshot
	// Units are those that this enforcer renders, and no others: what it cannot express of one may concern another.
	Units []policy.Unit
	At    time.Time
	// Declared is what the members declare about themselves, in the form that the enforcer reads; empty: nothing.
	Declared []byte
}

// Plan is an enforcer that is ready for a job.
type Plan struct {
	Enforcer enforcer.Enforcer
	// Units in the order of the job, as this enforcer needs them.
	Units []policy.Unit
	// Shared are objects that several units refer to.
	Shared []Shared
}

// Shared is what units refer to.
type Shared struct {
	// About is the name that it is about.
	About     string
	Rendering enforcer.Rendering
	// UsedBy tells whether a unit refers to it.
	UsedBy func(*policy.Unit) bool
}

// builtIn is where a new enforcer is added.
var builtIn = map[v1alpha1.EnforcerName]func(Job) (Plan, error){
	v1alpha1.EnforcerCilium: prepareCilium,
	v1alpha1.EnforcerIstio:  prepareIstio,
}

// Names of the enforcers, sorted.
func Names() []v1alpha1.EnforcerName { return slices.Sorted(maps.Keys(builtIn)) }

// Known tells whether an enforcer is built in; if not, with an error that wraps ErrUnknown and names those that are.
func Known(name v1alpha1.EnforcerName) error {
	if builtIn[name] == nil {
		return fmt.Errorf("%w %q: this build has %v", ErrUnknown, name, Names())
	}
	return nil
}

// Prepare makes an enforcer ready for a job.
func Prepare(name v1alpha1.EnforcerName, j Job) (Plan, error) {
	if err := Known(name); err != nil {
		return Plan{}, err
	}
	return builtIn[name](j)
}

// fleetCilium is Cilium's enforcer for the fleet that a snapshot was made for.
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

// members are those of the fleet as the translation has to know them.
func members(fleet []policy.Cluster) map[string]cilium.Member {
	out := make(map[string]cilium.Member, len(fleet))
	for i := range fleet {
		out[fleet[i].Name] = cilium.Member{NoHTTP: fleet[i].WithoutRequests()}
	}
	return out
}

// prepareCilium makes Cilium's enforcer for what the members of the snapshot's fleet can do, as far as that is reported.
func prepareCilium(j Job) (Plan, error) {
	e := cilium.Enforcer{Members: members(j.Snapshot.Fleet())}
	out := Plan{Enforcer: e, Units: j.Units}
	if m := j.Snapshot.Meshes(); m.Several() {
		out.Enforcer = fleetCilium{Enforcer: e, job: &j, meshes: m}
	}
	for _, g := range j.Snapshot.ExternalGroups() {
		r, err := cilium.RenderGroup(g)
		if err != nil {
			return Plan{}, err
		}
		out.Shared = append(out.Shared, Shared{About: g.Subject, Rendering: r, UsedBy: func(u *policy.Unit) bool {
			return slices.ContainsFunc(u.Rules, func(r policy.Rule) bool {
				return slices.Contains(r.External, g.ID) || slices.Contains(r.ExternalClasses, g.ClassID)
			})
		}})
	}
	return out, nil
}

// prepareIstio makes Istio's enforcer for the declared members. Nothing declared is nothing that any member can do: then
// the resources are closed, and every statement is refused.
func prepareIstio(j Job) (Plan, error) {
	config := istio.Config{Default: istio.Capabilities{Dataplane: istio.NoDataplane}}
	if len(j.Declared) > 0 {
		var err error
		if config, err = istio.ParseConfig(j.Declared); err != nil {
			return Plan{}, err
		}
	}
	e, err := istio.New(config)
	if err != nil {
		return Plan{}, err
	}
	units := slices.Clone(j.Units)
	for i := range units {
		if units[i].Statements == nil && !units[i].Wildcard {
			units[i] = j.Snapshot.WithStatements(units[i], j.At)
		}
	}
	return Plan{Enforcer: e.Knowing(units), Units: units}, nil
}
