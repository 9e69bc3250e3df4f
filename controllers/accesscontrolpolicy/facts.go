package accesscontrolpolicy

import (
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/policy"
)

// facts is the input of a policy's status.
type facts struct {
	Policy *v1alpha1.AccessControlPolicy
	// Since is the version of the policy cache in which the present spec appeared.
	Since    uint64
	Now      time.Time
	Refusals []policy.Refusal
	// Reports are the reports about the units that the policy concerns or concerned, by resource.
	Reports []statuscache.Report
	// Protecting returns the name of a ProtectedResource of a resource, or "".
	Protecting func(resource string) string
	// Missing are resources that have, or may have, a unit without report.
	Missing []string
}

func (r *Reconciler) gather(name string) (*facts, bool) {
	p, since, ok := r.Cache.Policy(name)
	if !ok {
		return nil, false
	}
	f := &facts{Policy: p, Since: since, Now: r.Clock.Now(), Refusals: r.Cache.View().RefusalsOf(name), Protecting: func(resource string) string {
		if objects := r.Cache.Protecting(resource); len(objects) > 0 {
			return objects[0].Name
		}
		return ""
	}}
	seen := map[string]bool{}
	for _, report := range r.Reports.Concerning(name) {
		f.Reports, seen[report.Resource] = append(f.Reports, report), true
	}
	for _, resource := range named(p, r.Cache.View()) {
		if seen[resource] {
			continue
		}
		seen[resource] = true
		if report, ok := r.Reports.Get(resource); ok {
			f.Reports = append(f.Reports, report)
		} else if r.expected(resource) {
			f.Missing = append(f.Missing, resource)
		}
	}
	slices.SortFunc(f.Reports, func(a, b statuscache.Report) int { return strings.Compare(a.Resource, b.Resource) })
	return f, true
}

// expected reports whether a report about a resource will follow.
func (r *Reconciler) expected(resource string) bool {
	listed, err := r.Federated.State()
	return (!listed && err == nil) || len(r.Cache.Protecting(resource)) > 0 || r.Cache.View().HasWildcardUnit(resource) || len(r.Federated.Of(resource)) > 0
}

// named returns the resources that the policy names, wildcards as far as they have units, and the resources in its
// status.
func named(p *v1alpha1.AccessControlPolicy, view *policycache.View) []string {
	var out []string
	for i := range p.Spec.Statements {
		for _, r := range p.Spec.Statements[i].Resources {
			if strings.HasSuffix(string(r), "*") {
				out = append(out, view.WildcardUnits(string(r))...)
			} else {
				out = append(out, string(r))
			}
		}
	}
	for i := range p.Status.Units {
		out = append(out, string(p.Status.Units[i].Resource))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// stale returns the resources whose units were not yet decided with the present spec of the policy.
func (f *facts) stale() []string {
	out := slices.Clone(f.Missing)
	for i := range f.Reports {
		if f.Reports[i].Version < f.Since {
			out = append(out, f.Reports[i].Resource)
		}
	}
	return out
}
