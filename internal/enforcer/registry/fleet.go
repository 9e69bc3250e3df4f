package registry

import (
	"maps"
	"sync"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// translators contains the translators of the built-in enforcers other than Cilium, which the policy core evaluates itself.
var translators = map[v1alpha1.EnforcerName]policy.Translator{v1alpha1.EnforcerIstio: &istioTranslator{}}

// FleetOf returns the members as the adapter reports them. Every program makes its fleet with it, so that decisions about
// what the members have leave out what each enforcer leaves out.
func FleetOf(reports []*v1alpha1.MemberCluster) policy.Fleet {
	return policy.FleetOf(reports, translators)
}

// WithDeclared returns the fleet with what the members declare about themselves replaced, by enforcer and in its format.
func WithDeclared(f policy.Fleet, declared map[v1alpha1.EnforcerName][]byte) (policy.Fleet, error) {
	text, given := declared[v1alpha1.EnforcerIstio]
	if !given {
		return f, nil
	}
	config, err := istio.ParseConfig(text)
	if err != nil {
		return f, err
	}
	if f.Translators = maps.Clone(f.Translators); f.Translators == nil {
		f.Translators = map[v1alpha1.EnforcerName]policy.Translator{}
	}
	f.Translators[v1alpha1.EnforcerIstio] = &istioTranslator{declared: &config}
	return f, nil
}

// istioTranslator implements policy.Translator.
type istioTranslator struct {
	// declared replaces what the members declare; nil if it does not.
	declared *istio.Config

	mu sync.Mutex
	// made is the enforcer that was made last, and of are its members with their declarations.
	made istio.Enforcer
	of   map[string]istio.Declaration
}

// Enforces implements policy.Translator.
func (t *istioTranslator) Enforces(p v1alpha1.Protocol) bool { return istio.Enforces(p) }

// Prepare implements policy.Translator.
func (t *istioTranslator) Prepare(fleet []policy.Cluster, denying []policy.Unit) policy.Translation {
	return t.enforcer(fleet).WithUnits(denying)
}

// enforcer returns the enforcer for the members of a fleet. Declarations are parsed only when one of them changed.
func (t *istioTranslator) enforcer(fleet []policy.Cluster) istio.Enforcer {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of := declarations(fleet); t.of == nil || !maps.Equal(t.of, of) {
		config := t.declared
		if config == nil {
			read := istio.Declared(of)
			config = &read
		}
		e, err := istio.New(*config)
		if err != nil { // not possible: both constructors check what they return
			e, _ = istio.New(istio.Config{Default: istio.Capabilities{Dataplane: istio.NoDataplane, Reason: message.Of(err)}})
		}
		t.made, t.of = e, of
	}
	return t.made
}

// declarations returns what the members declare about their Istio, by name.
func declarations(fleet []policy.Cluster) map[string]istio.Declaration {
	out := make(map[string]istio.Declaration, len(fleet))
	for i := range fleet {
		out[fleet[i].Name] = istio.Declaration{Text: fleet[i].Istio, OtherRoot: fleet[i].IstioRoot}
	}
	return out
}

// Refused returns what members lack of a unit, in addition to Unit.Refused: what the enforcers of its class cannot
// express there.
func Refused(s *policy.Snapshot, u *policy.Unit, targets []string, at time.Time) []policy.Refusal {
	var out []policy.Refusal
	for _, name := range u.Enforcers {
		if name != v1alpha1.EnforcerCilium && len(targets) == 0 {
			continue // what it can express depends on the members, and none is known
		}
		plan, err := Prepare(name, Job{Snapshot: s, Units: []policy.Unit{*u}, At: at})
		if err != nil {
			out = append(out, policy.Refusal{Message: message.Of(err)})
			continue
		}
		r, err := plan.Enforcer.Render(plan.Units[0])
		if err != nil {
			out = append(out, policy.Refusal{Message: message.Of(err)})
			continue
		}
		out = append(out, r.RefusedAmong(targets)...)
	}
	return out
}
