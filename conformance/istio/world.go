package istio

import (
	"fmt"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/istiotest"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/policy"
)

// strictMember is the member that requires mutual TLS.
const strictMember = "m1"

// world is a random world as one member has it.
type world struct {
	seed      uint64
	generator istiotest.Generator
	in        policy.Input
	s         *policy.Snapshot
	plain     bool
	// member is the name of the member, and capabilities are those of all members.
	member, capabilities string
	// objects are the AuthorizationPolicies of the member, and refused reports whether a statement is missing in them.
	objects []enforcer.Object
	refused bool
}

// ambient is the member whose dataplane is ztunnel.
const ambient = "m2"

// newWorld generates and renders the world of a seed for a member. Its names end with suffix. In three of four worlds, nothing is refused. One of a
// hundred in ambient has features that random worlds hardly ever have there. A mutant changes the specs.
func newWorld(seed uint64, suffix, member string, mutant func(map[string]any) map[string]any) (*world, error) {
	w := &world{seed: seed, generator: istiotest.NewGenerator(seed, 7), plain: seed%4 != 0, member: member, capabilities: istiotest.Capabilities}
	w.generator.Suffix = suffix
	in := w.generator.World(w.plain)
	if member == ambient && seed%100 == 51 {
		in = withOpenPorts(in, suffix, ambient)
	}
	return w, w.render(in, mutant)
}

// inMode returns the objects of a world with all resources in one mode.
func inMode(random policy.Input, mode v1alpha1.Mode) policy.Input {
	out := random
	out.Resources = nil
	for _, r := range random.Resources {
		r = r.DeepCopy()
		r.Spec.Mode, r.Spec.ClusterModes, r.Spec.TemporaryAudit = mode, nil, nil
		out.Resources = append(out.Resources, r)
	}
	return out
}

// render compiles and renders the objects of the world.
func (w *world) render(random policy.Input, mutant func(map[string]any) map[string]any) error {
	seed, member := w.seed, w.member
	fleet, err := registry.WithDeclared(random.Fleet(), map[v1alpha1.EnforcerName][]byte{v1alpha1.EnforcerIstio: []byte(w.capabilities)})
	if err != nil {
		return fmt.Errorf("read the capabilities of the members: %w", err)
	}
	w.in = policy.NewInput(random.Objects(), fleet)
	w.s = policy.NewSnapshot(w.in)
	plan, err := registry.Prepare(v1alpha1.EnforcerIstio, registry.Job{Snapshot: w.s, Units: w.s.Compile(istiotest.Noon), At: istiotest.Noon})
	if err != nil {
		return fmt.Errorf("prepare the translation of the world of seed %d: %w", seed, err)
	}
	w.refused = len(w.s.Refusals()) > 0
	for _, u := range plan.Units {
		r, err := plan.Enforcer.Render(u)
		if err != nil {
			return fmt.Errorf("render %s in the world of seed %d: %w", u.Resource, seed, err)
		}
		w.refused = w.refused || len(r.RefusedBy(member)) > 0
		if mode, own := u.ClusterModes[member]; own && mode == v1alpha1.ModeObserve || !own && u.Mode == v1alpha1.ModeObserve {
			continue // the member gets no object
		}
		for _, o := range r.Objects {
			if !o.IsIn(member) {
				continue
			}
			out := o.Object
			if spec, own := o.Overrides[member]; own {
				out.Spec = spec
			}
			if mutant != nil {
				if out.Spec = mutant(out.Spec); out.Spec == nil {
					continue
				}
			}
			w.objects = append(w.objects, out)
		}
	}
	return nil
}

// tally counts comparisons.
type tally struct {
	worlds, objects, decisions, requests int
	// unmeshed counts the connections of pods without a certificate, which may be refused more often than decided.
	unmeshed int
	// exact counts the decisions that are also those of the statements as written, and differs those in which what is left out matters.
	exact, differs int
	verdicts       map[policy.Verdict]int
	met            istiotest.Met
}

func newTally() *tally { return &tally{verdicts: map[policy.Verdict]int{}, met: istiotest.Met{}} }

// proxy is the configuration of a pod's proxy.
type proxy interface {
	// passes reports whether the proxy lets traffic through.
	passes(t istiotest.Traffic) (bool, error)
}

// compare decides connections to a pod with these labels by the statements and by the configuration of its proxy, and returns the first
// disagreement, or "".
func (w *world) compare(labels map[string]string, p proxy, connections int, out *tally) (string, error) {
	for range connections {
		x := w.generator.Connection(w.s, labels, w.member)
		if x.Unmeshed && w.member == strictMember {
			continue // It cannot connect.
		}
		got, err := p.passes(x.Traffic)
		if err != nil {
			return "", fmt.Errorf("evaluate in the world of seed %d: %w", w.seed, err)
		}
		if x.Unmeshed { // It has a name in the statements only: fewer allows may match it, and no deny may be missing.
			out.unmeshed++
			if written := w.s.Decide(x.Query); got && !written.Verdict.LetsThrough() {
				return fmt.Sprintf("seed %d in %s: Istio lets a pod without a certificate through; the statements mean %s: %+v to %v",
					w.seed, w.member, written.Verdict, x, labels), nil
			}
			continue
		}
		effective := w.s.DecideEffective(&x.Query)
		out.decisions++
		if x.Traffic.Method != "" {
			out.requests++
		}
		out.verdicts[effective.Verdict]++
		written := w.s.Decide(x.Query)
		if !w.refused && istiotest.SameMode(w.s, &x.Query) {
			out.exact++
			out.met.Add(istiotest.Features(&w.in, w.s, &x.Query, &written))
			if effective.Verdict.LetsThrough() != written.Verdict.LetsThrough() {
				return fmt.Sprintf("seed %d in %s: nothing is refused, and the members have %s in place of %s: %+v",
					w.seed, w.member, effective.Verdict, written.Verdict, x), nil
			}
		}
		if effective.Verdict.LetsThrough() != written.Verdict.LetsThrough() {
			out.differs++
		}
		if got != effective.Verdict.LetsThrough() {
			return fmt.Sprintf("seed %d in %s: Istio lets it through: %v; decided is %s (%s): %+v to %v",
				w.seed, w.member, got, effective.Verdict, effective.Explain(), x, labels), nil
		}
	}
	return "", nil
}
