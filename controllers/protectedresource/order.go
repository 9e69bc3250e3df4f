package protectedresource

import (
	"slices"
	"time"

	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/federation"
)

// order tells what kind of work a plan is, from what it does to what was written before, whatever somebody meant by it.
// asked: somebody waits for this unit by itself. It is pure.
func order(f *facts, p *plan, asked bool) writequeue.Priority {
	worst := enforcer.Gives
	for _, next := range p.Writes {
		worst = max(worst, effect(existing(f, next.Key()), next))
	}
	switch {
	case worst == enforcer.Opens:
		return writequeue.Downgrade
	case worst == enforcer.Takes:
		return writequeue.Revocation
	case asked:
		return writequeue.Grant
	default:
		return writequeue.Bulk
	}
}

// effects tell what a new spec does, by kind.
var effects = map[federation.Kind]func(before, after map[string]any) enforcer.Effect{
	federation.CiliumPolicy: cilium.EffectOf, federation.IstioPolicy: istio.EffectOf,
}

// effect compares what each member has to have by an object with what it has to have by the next one. e may be nil.
func effect(e, next *federation.Object) enforcer.Effect {
	switch {
	case e == nil:
		return enforcer.Gives
	case e.Foreign || effects[e.Kind] == nil:
		return enforcer.Takes // it may be: nobody can tell
	}
	worst := enforcer.Gives
	for _, c := range slices.Concat(e.Placement, next.Placement) {
		worst = max(worst, effects[e.Kind](e.SpecIn(c), next.SpecIn(c)))
	}
	return worst
}

// closingPatience is how long a resource stays open at most because a group is missing: what a hand deleted in a member
// KubeFed writes again after some ten seconds.
const closingPatience = 12 * time.Second

// closesWithout names a group that a member lacks which the plan closes: whom the group stands for would be refused. ""
// means that none is missing where it could be seen.
func closesWithout(f *facts, p *plan) string {
	for _, next := range p.Writes {
		e := existing(f, next.Meta.Name)
		for _, c := range next.Placement {
			var before map[string]any
			if e != nil && slices.Contains(e.Placement, c) {
				before = e.SpecIn(c)
			}
			if f.held(c) || !cilium.Closes(before, next.SpecIn(c)) {
				continue
			}
			for _, g := range f.Groups {
				seen := f.ObserveGroup(c, g.Name)
				if g.Revision != "" && seen.Reachable && (seen.Object == nil || seen.Object.Revision != g.Revision) {
					return g.Name
				}
			}
		}
	}
	return ""
}
