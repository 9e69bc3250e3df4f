package admission

import (
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// waitingRequests reports the allows of requests on resources in Audit that have no effect on workloads that another
// resource closes (docs/semantics.md, "HTTP"). The workloads are unknown here, so it reports every case in which
// a workload could carry both labels.
func waitingRequests(s *policy.Snapshot, in policy.Input, at time.Time) []Note {
	closing := map[string]bool{} // classes of resources in Enforce somewhere
	for _, r := range in.Resources {
		if c, ok := s.ResourceClassOf(string(r.Spec.Resource)); ok && strictest(r) == v1alpha1.ModeEnforce {
			closing[c.Name] = true
		}
	}
	var out []Note
	seen := map[policy.Ref]bool{}
	for _, r := range in.Resources {
		c, ok := s.ResourceClassOf(string(r.Spec.Resource))
		if !ok || len(closing) == 0 || len(closing) == 1 && closing[c.Name] ||
			!slices.ContainsFunc(c.Spec.Actions, func(a v1alpha1.ClassAction) bool { return len(a.HTTP) > 0 }) {
			continue
		}
		u, ok := s.CompileResource(string(r.Spec.Resource), at)
		if !ok || !auditsSomewhere(&u) {
			continue
		}
		for i := range u.Rules {
			if rule := &u.Rules[i]; rule.Effect == policy.Allow && len(rule.HTTP) > 0 {
				for _, ref := range rule.From {
					if !seen[ref] {
						seen[ref] = true
						out = append(out, Note{Kind: "AccessControlPolicy", Name: ref.Policy, Ref: ref, Message: message.LintRequestsWait(u.Resource)})
					}
				}
			}
		}
	}
	return out
}

func auditsSomewhere(u *policy.Unit) bool {
	if u.Mode == v1alpha1.ModeAudit {
		return true
	}
	for _, m := range u.ClusterModes {
		if m == v1alpha1.ModeAudit {
			return true
		}
	}
	return false
}

// sharedKeys reports the classes of a kind that have the same label key: a workload with that label has a name of each.
func sharedKeys(in policy.Input) []Note {
	var out []Note
	note := func(kind string, byKey map[string][]string) {
		for key, names := range byKey {
			slices.Sort(names)
			for _, name := range names {
				if len(names) > 1 {
					others := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
					out = append(out, Note{Kind: kind, Name: name, Message: message.LintLabelKeyShared(key, others)})
				}
			}
		}
	}
	resources, subjects := map[string][]string{}, map[string][]string{}
	for _, c := range in.ResourceClasses {
		resources[string(c.Spec.LabelKey)] = append(resources[string(c.Spec.LabelKey)], c.Name)
	}
	for _, c := range in.SubjectClasses {
		subjects[string(c.Spec.LabelKey)] = append(subjects[string(c.Spec.LabelKey)], c.Name)
	}
	note("ResourceClass", resources)
	note("SubjectClass", subjects)
	return out
}
