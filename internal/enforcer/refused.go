package enforcer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
			refusal.Message = fmt.Sprintf("in %s: %s", several(in), refusal.Message)
		}
		out = append(out, refusal)
	}
	slices.SortFunc(out, func(a, b policy.Refusal) int {
		return cmp.Or(strings.Compare(a.Ref.String(), b.Ref.String()), strings.Compare(a.Message, b.Message))
	})
	return out
}

// several lists the first of many names.
func several(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
