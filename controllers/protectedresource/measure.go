package protectedresource

import (
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// measure records metrics of what changed since the last report. The time of propagation is measured by the reports of the engines.
func (r *Reconciler) measure(f *facts, now *statuscache.Report) {
	r.Metrics.RecordRollout(f.Resource, f.rolloutState())
	if len(now.Clusters) == 0 {
		r.Metrics.Forget(f.Resource)
	}
	for _, c := range now.Clusters {
		r.Metrics.RecordMember(f.Resource, f.LastStates[string(c.Name)], c, now.Pushed[string(c.Name)], f.Now, f.RequestedAt)
	}
}

// measureExpiry records how late the write of an object removed expired statements: those that expired since its last
// write, which may have been by the previous process.
func (r *Reconciler) measureExpiry(f *facts, written *federation.Object) {
	i := slices.IndexFunc(f.Existing, func(e *federation.Object) bool { return e.Key() == written.Key() })
	if i < 0 {
		return
	}
	since := f.Existing[i].Written
	for _, name := range federation.SplitNames(f.Existing[i].Meta.Annotations[federation.AnnotationPolicies]) {
		p, _, ok := r.Cache.Policy(name)
		if !ok {
			continue
		}
		for s := range p.Spec.Statements {
			if end, ok := ended(&p.Spec.Statements[s], f.Resource, since, f.Now); ok {
				r.Metrics.RecordExpiry(r.Clock.Since(end))
			}
		}
	}
}

// endOf returns when a statement that is not in force any more ended, or its hours did. It returns false if it is in force, or has not begun.
func endOf(s *v1alpha1.Statement, now time.Time) (time.Time, bool) {
	if s.NotAfter != nil && !s.NotAfter.After(now) {
		return s.NotAfter.Time, true
	}
	if s.Hours == nil {
		return time.Time{}, false
	}
	hours, err := policy.ParseHours(s.Hours)
	if err != nil || hours.Open(now) {
		return time.Time{}, false
	}
	return hours.Last(now)
}

// ended reports whether a statement about a resource, or its hours, ended in (since, now], and when.
func ended(s *v1alpha1.Statement, resource string, since, now time.Time) (time.Time, bool) {
	end, ok := endOf(s, now)
	if !ok || !end.After(since) {
		return time.Time{}, false
	}
	return end, slices.ContainsFunc(s.Resources, func(n v1alpha1.ResourceName) bool {
		stem, wildcard := strings.CutSuffix(string(n), "*")
		return string(n) == resource || wildcard && strings.HasPrefix(resource, stem)
	})
}
