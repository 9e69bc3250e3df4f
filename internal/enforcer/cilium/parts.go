package cilium

import (
	"fmt"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// maxObjectBytes bounds a unit in its Federated wrapper, which holds a spec for each member that differs. An API server
// takes 1.5 MB; the rest is for metadata and status.
const maxObjectBytes = 1_300_000

// partName numbers the parts from the second on, so that a unit that grows keeps its first object.
func partName(u *policy.Unit, i int) string {
	if i == 0 {
		return v1alpha1.ObjectPrefix + u.ID
	}
	return fmt.Sprintf("%s%s-part-%d", v1alpha1.ObjectPrefix, u.ID, i+1)
}

// parts splits the rules so that each fits an object, in order. There is always one: a unit without rules closes.
func parts(u *policy.Unit) [][]policy.Rule {
	budget := maxObjectBytes / (1 + len(u.ClusterModes))
	var out [][]policy.Rule
	var part []policy.Rule
	size := 0
	for _, rule := range u.Rules {
		for _, r := range splitRule(rule, budget) {
			n := ruleBytes(&r)
			if len(part) > 0 && size+n > budget {
				out, part, size = append(out, part), nil, 0
			}
			part, size = append(part, r), size+n
		}
	}
	return append(out, part)
}

// splitRule halves a rule's peers until each piece fits. Rules add up, so the pieces mean the same.
func splitRule(r policy.Rule, budget int) []policy.Rule {
	if ruleBytes(&r) <= budget {
		return []policy.Rule{r}
	}
	low, high := r, r
	low.Prefixes, high.Prefixes = halve(r.Prefixes)
	low.External, high.External = halve(r.External)
	low.ExternalClasses, high.ExternalClasses = halve(r.ExternalClasses)
	if len(r.Subjects) == 1 && len(r.Subjects[0].Values) > 1 {
		s := r.Subjects[0]
		a, b := halve(s.Values)
		low.Subjects = []policy.SubjectSelector{{LabelKey: s.LabelKey, Values: a}}
		high.Subjects = []policy.SubjectSelector{{LabelKey: s.LabelKey, Values: b}}
	} else {
		low.Subjects, high.Subjects = halve(r.Subjects)
	}
	if !low.HasPeers() || !high.HasPeers() {
		return []policy.Rule{r} // one peer
	}
	return slices.Concat(splitRule(low, budget), splitRule(high, budget))
}

// halve gives the larger half to the second, so that a list of one does not end in both.
func halve[T any](s []T) (low, high []T) { return s[:len(s)/2], s[len(s)/2:] }

// ruleBytes is at least the size of the rule as JSON, in any mode.
func ruleBytes(r *policy.Rule) int {
	const (
		selectorBytes = 400 // the clauses around a label's key and values
		peerBytes     = 200 // a prefix, a reference to a group or a selector of groups
		portBytes     = 100
	)
	ports := portBytes * (1 + len(r.Ports))
	for _, h := range r.HTTP {
		ports += (1 + len(r.Ports)/maxPorts) * (portBytes + 2*len(h.Method) + 2*len(h.Path))
	}
	peers := peerBytes * (len(r.Prefixes) + len(r.External) + len(r.ExternalClasses))
	for _, s := range r.Subjects {
		n := 0
		for _, v := range s.Values {
			n += len(v) + len(`"",`)
		}
		// A deny selects twice, with a namespace and without.
		peers += 2 * (n + (1+len(s.Values)/chunk)*(selectorBytes+2*len(s.LabelKey)))
	}
	return peers + 3*ports // once for each kind of peers
}
