package cilium

import (
	"slices"

	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// Member contains the capabilities of a member that affect the translation. The zero value supports everything.
type Member struct {
	// NoHTTP is the reason why the member cannot enforce HTTP rules, or zero if it can. Its agents would reject the whole
	// policy, or block all other changes while no proxy responds, so the member gets policies without HTTP rules.
	NoHTTP message.Message
}

// hasHTTP reports whether a rule of the unit has HTTP matches, which are rendered only in Enforce.
func hasHTTP(u *policy.Unit) bool {
	return slices.ContainsFunc(u.Rules, func(r policy.Rule) bool { return len(r.HTTP) > 0 })
}

// withoutHTTP returns the rules about whole connections. An HTTP rule only allows, so without it the workload is at
// least as closed.
func withoutHTTP(rules []policy.Rule) []policy.Rule {
	return slices.DeleteFunc(slices.Clone(rules), func(r policy.Rule) bool { return len(r.HTTP) > 0 })
}

// refusedHTTP returns the refusals of the statements that a member without a proxy does not get.
func refusedHTTP(u *policy.Unit, why message.Message) []policy.Refusal {
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
