package enforcer

import (
	"cmp"
	"slices"
	"strings"

	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// RefusedAmong returns the refusals in the given members. The message of a refusal that concerns only some of them
// lists these. Without members it returns the refusals of members that RefusedIn does not list.
func (r *Rendering) RefusedAmong(members []string) []policy.Refusal {
	if len(r.RefusedIn) == 0 || len(members) == 0 {
		return r.Refused
	}
	by := map[policy.Refusal][]string{}
	for _, c := range members {
		for _, refusal := range r.RefusedBy(c) {
			by[refusal] = append(by[refusal], c)
		}
	}
	var out []policy.Refusal
	for refusal, in := range by {
		if len(in) < len(members) {
			refusal.Message = message.RefusalInMembers(message.NamesOf(in, mostMembers), refusal.Message)
		}
		out = append(out, refusal)
	}
	slices.SortFunc(out, func(a, b policy.Refusal) int {
		return cmp.Or(strings.Compare(a.Ref.String(), b.Ref.String()), strings.Compare(a.Message.Text, b.Message.Text))
	})
	return out
}

// mostMembers bounds the members that a refusal lists.
const mostMembers = 5
