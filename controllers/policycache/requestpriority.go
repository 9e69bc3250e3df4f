package policycache

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/requestqueue"
)

// policyPriority returns the priority of a policy change: a revocation, unless every previous statement is unchanged
// and no new statement denies.
func policyPriority(old, now *v1alpha1.AccessControlPolicy) int {
	before, after := statements(old), statements(now)
	for sid, s := range before {
		if next, ok := after[sid]; !ok || !equality.Semantic.DeepEqual(s, next) {
			return requestqueue.Revocation
		}
	}
	for sid, s := range after {
		if _, had := before[sid]; !had && s.Effect == v1alpha1.EffectDeny {
			return requestqueue.Revocation
		}
	}
	return requestqueue.Grant
}

func statements(p *v1alpha1.AccessControlPolicy) map[string]*v1alpha1.Statement {
	out := map[string]*v1alpha1.Statement{}
	if p == nil {
		return out
	}
	for i := range p.Spec.Statements {
		out[p.Spec.Statements[i].SID] = &p.Spec.Statements[i]
	}
	return out
}

// resourcePriority returns the priority of a resource change. Changes of status or labels have the
// priority Observed.
func resourcePriority(old, now *v1alpha1.ProtectedResource) int {
	switch {
	case old != nil && now != nil && !changed(old, now):
		return requestqueue.Observed
	case old != nil && now != nil && opens(old, now):
		return requestqueue.Opening
	default:
		return requestqueue.Grant
	}
}

// opens reports whether a member may have to enforce less than before.
func opens(old, now *v1alpha1.ProtectedResource) bool {
	if now.Spec.TemporaryAudit != nil && (old.Spec.TemporaryAudit == nil || old.Spec.TemporaryAudit.Until.Before(&now.Spec.TemporaryAudit.Until)) {
		return true
	}
	if strictness(now.Spec.Mode) < strictness(old.Spec.Mode) {
		return true
	}
	if was := old.Enforced(); !was.Intersect(now.Enforced()).Equal(was) { // such as a rollout that is rolled back
		return true
	}
	before := map[v1alpha1.ClusterName]v1alpha1.Mode{}
	for _, m := range old.Spec.ClusterModes {
		before[m.Cluster] = m.Mode
	}
	for _, m := range now.Spec.ClusterModes {
		was, own := before[m.Cluster]
		if !own {
			was = old.Spec.Mode
		}
		if strictness(m.Mode) < strictness(was) {
			return true
		}
		delete(before, m.Cluster)
	}
	for _, was := range before { // members without a mode of their own now
		if strictness(now.Spec.Mode) < strictness(was) {
			return true
		}
	}
	return false
}

func strictness(m v1alpha1.Mode) int {
	switch m {
	case v1alpha1.ModeEnforce:
		return 2
	case v1alpha1.ModeAudit:
		return 1
	default:
		return 0
	}
}
