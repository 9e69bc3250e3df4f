package protectedresource

import (
	"slices"

	"github.com/acp-io/acp/controllers/pace"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/federation"
)

// order tells what kind of work a plan is, from what it does to what was written before, whatever somebody meant by it.
// asked: somebody waits for this unit by itself. It is pure.
func order(f *facts, p *plan, asked bool) pace.Kind {
	worst := enforcer.Gives
	for _, next := range p.Writes {
		worst = max(worst, effect(existing(f, next.Meta.Name), next))
	}
	switch {
	case worst == enforcer.Opens:
		return pace.Downgrade
	case worst == enforcer.Takes:
		return pace.Revocation
	case asked:
		return pace.Grant
	default:
		return pace.Bulk
	}
}

// effect compares what each member has to have by an object with what it has to have by the next one. e may be nil.
func effect(e, next *federation.Object) enforcer.Effect {
	switch {
	case e == nil:
		return enforcer.Gives
	case e.Foreign || e.Kind != federation.CiliumPolicy:
		return enforcer.Takes // it may be: nobody can tell
	}
	worst := enforcer.Gives
	for _, c := range slices.Concat(e.Placement, next.Placement) {
		worst = max(worst, cilium.EffectOf(e.SpecIn(c), next.SpecIn(c)))
	}
	return worst
}
