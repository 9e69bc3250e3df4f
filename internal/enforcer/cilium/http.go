package cilium

import (
	"slices"

	"github.com/acp-io/acp/internal/policy"
)

// Member is what the translation has to know of a member. The zero value is a member that can do everything.
type Member struct {
	// NoHTTP says why the member cannot enforce rules about requests; "": it can. Its agents would refuse the whole policy, or
	// hold up every other change while no proxy answers them, so it gets policies without such rules.
	NoHTTP string
}

// hasHTTP reports whether some rule of the unit is about requests, which only a mode of Enforce renders.
func hasHTTP(u *policy.Unit) bool {
	return slices.ContainsFunc(u.Rules, func(r policy.Rule) bool { return len(r.HTTP) > 0 })
}

// withoutHTTP are the rules about whole connections. A rule about requests only lets in, so what is left closes the workload as
// much or more.
func withoutHTTP(rules []policy.Rule) []policy.Rule {
	return slices.DeleteFunc(slices.Clone(rules), func(r policy.Rule) bool { return len(r.HTTP) > 0 })
}

// refusedHTTP are the refusals of the statements that a member without a proxy does not get.
func refusedHTTP(u *policy.Unit, why string) []policy.Refusal {
	seen := map[policy.Ref]bool{}
	var out []policy.Refusal
	for i := range u.Rules {
		if len(u.Rules[i].HTTP) == 0 {
			continue
		}
		for _, ref := range u.Rules[i].From {
			if seen[ref] {
				continue
			}
			seen[ref] = true
			out = append(out, policy.RefusedHTTP(ref, u.Resource, why))
		}
	}
	return out
}
