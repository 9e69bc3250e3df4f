package policycache

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/requestqueue"
)

func TestPolicyPriority(t *testing.T) {
	statement := func(sid, subject string, effect v1alpha1.Effect) v1alpha1.Statement {
		return v1alpha1.Statement{SID: sid, Effect: effect, Subjects: []v1alpha1.Subject{v1alpha1.Subject(subject)}}
	}
	of := func(s ...v1alpha1.Statement) *v1alpha1.AccessControlPolicy {
		return &v1alpha1.AccessControlPolicy{Spec: v1alpha1.AccessControlPolicySpec{Statements: s}}
	}
	a, b, no := statement("a", "app/1", v1alpha1.EffectAllow), statement("b", "app/2", v1alpha1.EffectAllow), statement("no", "app/3", v1alpha1.EffectDeny)
	other := statement("a", "app/9", v1alpha1.EffectAllow)
	for _, c := range []struct {
		reason   string
		old, now *v1alpha1.AccessControlPolicy
		want     int
	}{
		{"a new policy", nil, of(a), requestqueue.Grant},
		{"a new policy that denies", nil, of(a, no), requestqueue.Revocation},
		{"a statement more, and another order", of(a), of(b, a), requestqueue.Grant},
		{"a statement less", of(a, b), of(b), requestqueue.Revocation},
		{"the policy goes", of(a), nil, requestqueue.Revocation},
		{"a statement is about somebody else", of(a), of(other), requestqueue.Revocation},
		{"a deny comes", of(a), of(a, no), requestqueue.Revocation},
		{"a deny stays", of(a, no), of(a, b, no), requestqueue.Grant},
	} {
		if got := policyPriority(c.old, c.now); got != c.want {
			t.Errorf("%s: got %d, want %d", c.reason, got, c.want)
		}
	}
}

func TestResourcePriority(t *testing.T) {
	at := func(hours int) *v1alpha1.TemporaryAudit {
		return &v1alpha1.TemporaryAudit{Until: metav1.NewTime(time.Date(2026, 1, 1, hours, 0, 0, 0, time.UTC))}
	}
	in := func(mode v1alpha1.Mode, audit *v1alpha1.TemporaryAudit, own ...v1alpha1.ClusterMode) *v1alpha1.ProtectedResource {
		return &v1alpha1.ProtectedResource{Spec: v1alpha1.ProtectedResourceSpec{Mode: mode, TemporaryAudit: audit, ClusterModes: own}}
	}
	own := func(mode v1alpha1.Mode) v1alpha1.ClusterMode { return v1alpha1.ClusterMode{Cluster: "m1", Mode: mode} }
	enforce, audit := v1alpha1.ModeEnforce, v1alpha1.ModeAudit
	for _, c := range []struct {
		reason   string
		old, now *v1alpha1.ProtectedResource
		want     int
	}{
		{"it appears", nil, in(enforce, nil), requestqueue.Grant},
		{"a temporary audit begins", in(enforce, nil), in(enforce, at(1)), requestqueue.Opening},
		{"it is to last longer", in(enforce, at(1)), in(enforce, at(2)), requestqueue.Opening},
		{"it ends", in(enforce, at(1)), in(enforce, nil), requestqueue.Grant},
		{"down to Audit", in(enforce, nil), in(audit, nil), requestqueue.Opening},
		{"up to Enforce", in(audit, nil), in(enforce, nil), requestqueue.Grant},
		{"one member down", in(enforce, nil), in(enforce, nil, own(audit)), requestqueue.Opening},
		{"one member up", in(audit, nil), in(audit, nil, own(enforce)), requestqueue.Grant},
		{"a member that was stricter follows the others", in(audit, nil, own(enforce)), in(audit, nil), requestqueue.Opening},
		{"a member that was laxer follows the others", in(enforce, nil, own(audit)), in(enforce, nil), requestqueue.Grant},
	} {
		if c.old != nil {
			c.now.Generation = c.old.Generation + 1
		}
		if got := resourcePriority(c.old, c.now); got != c.want {
			t.Errorf("%s: got %d, want %d", c.reason, got, c.want)
		}
	}
	told := in(enforce, nil)
	told.Status.Revision = "x"
	if got := resourcePriority(in(enforce, nil), told); got != requestqueue.Observed {
		t.Errorf("a status is nobody's wish: got %d", got)
	}
}
