package enforcer_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/enforcertest"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// toy is an enforcer for a dataplane that does not exist. It is the example of docs/enforcers.md: everything that a
// third enforcer needs, in one type. Its dataplane identifies clients by their names, whole connections, and single ports.
type toy struct{}

var _ enforcer.Enforcer = toy{}

func (toy) Name() v1alpha1.EnforcerName { return "toy" }

func (toy) Render(u policy.Unit) (enforcer.Rendering, error) {
	if u.ID == "" || u.LabelKey == "" || u.Statements == nil {
		return enforcer.Rendering{}, errors.New("the unit has no id, no label or no statements")
	}
	var lines []any
	var out enforcer.Rendering
	deniesRefused := false
	for _, st := range u.Statements {
		written, why := toyLines(&st)
		if why != "" {
			deniesRefused = deniesRefused || st.Effect == policy.Deny
			out.Refused = append(
				out.Refused,
				policy.Refusal{Ref: st.Ref, Resource: u.Resource, Reason: v1alpha1.RefusedUnsupported, Message: message.Verbatim(why)},
			)
			continue
		}
		lines = append(lines, written...)
	}
	if deniesRefused {
		// A refused deny must not open anything. This toy does not look which allows it could have overridden.
		lines = nil
		for _, st := range u.Statements {
			if st.Effect == policy.Allow {
				out.Refused = append(
					out.Refused,
					policy.Refusal{Ref: st.Ref, Resource: u.Resource, Reason: v1alpha1.RefusedShadowingDeny, Message: message.Verbatim("a deny is refused")},
				)
			}
		}
	}
	spec := func(mode v1alpha1.Mode) map[string]any {
		return map[string]any{"pods": u.LabelKey + "=" + u.LabelValue, "closed": mode == v1alpha1.ModeEnforce, "lines": lines}
	}
	specs := map[string]map[string]any{}
	for cluster, mode := range u.ClusterModes {
		specs[cluster] = spec(mode)
	}
	object, err := enforcer.Render(
		enforcer.Object{GroupVersion: "toy.example/v1", Kind: "ToyPolicy", Name: v1alpha1.ObjectPrefix + u.ID, Spec: spec(u.Mode)},
		u.ID,
		specs,
	)
	if err != nil {
		return enforcer.Rendering{}, err
	}
	out.Objects = []enforcer.Rendered{object}
	return out, nil
}

// toyLines are "<effect> <subject> <port>/<protocol>", or why there are none.
func toyLines(st *policy.UnitStatement) (lines []any, why string) {
	switch {
	case st.OverriddenBy != policy.Ref{}:
		return nil, "the deny " + st.OverriddenBy.String() + " is refused"
	case st.Anyone || len(st.Patterns)+len(st.Ranges) > 0:
		return nil, "only exact subjects are known to the dataplane"
	}
	for _, a := range st.Actions {
		for _, p := range a.Ports {
			if len(a.HTTP) > 0 || p.EndPort != nil {
				return nil, a.Name + ": only whole connections to single ports are known to the dataplane"
			}
			for _, s := range st.Subjects {
				lines = append(lines, fmt.Sprintf("%s %s %d/%s", st.Effect, s.Name, p.Port, p.Protocol))
			}
		}
	}
	return lines, ""
}

func TestToyEnforcer(t *testing.T) {
	const app, redis = "trnv1:rsc:trip-com:iam:sa:app/", "trnv1:rsc:trip-com:redis:clusters:"
	grant := func(sid, subject string) v1alpha1.Statement {
		return v1alpha1.Statement{SID: sid, Effect: policy.Allow, Subjects: []v1alpha1.Subject{v1alpha1.Subject(subject)},
			Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{redis + "bobs-cluster"}}
	}
	s := policy.NewSnapshot(policy.Input{
		SubjectClasses: []*v1alpha1.SubjectClass{
			{ObjectMeta: metav1.ObjectMeta{Name: "application"}, Spec: v1alpha1.SubjectClassSpec{Pattern: app + "*", LabelKey: "com.trip/appid"}},
		},
		ResourceClasses: []*v1alpha1.ResourceClass{
			{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{Pattern: redis + "*", LabelKey: "com.trip/redis-cluster",
				Enforcers: []v1alpha1.EnforcerName{toy{}.Name()},
				Actions:   []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379}}}}}},
		},
		Resources: []*v1alpha1.ProtectedResource{
			{ObjectMeta: metav1.ObjectMeta{Name: "bobs"}, Spec: v1alpha1.ProtectedResourceSpec{Resource: redis + "bobs-cluster", Mode: v1alpha1.ModeEnforce,
				ClusterModes: []v1alpha1.ClusterMode{{Cluster: "m2", Mode: v1alpha1.ModeAudit}}}},
		},
		Policies: []*v1alpha1.AccessControlPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "grants"}, Spec: v1alpha1.AccessControlPolicySpec{
			Statements: []v1alpha1.Statement{grant("a", app+"888"), grant("b", "*")}}}},
	})
	units := s.Compile(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	enforcertest.Check(t, toy{}, units)

	r, err := toy{}.Render(units[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := fmt.Sprint(r.Objects[0].Object.Spec["lines"])
	if want := "[Allow " + app + "888 6379/TCP]"; lines != want {
		t.Errorf("lines %s, want %s", lines, want)
	}
	if len(r.Refused) != 1 || r.Refused[0].Ref.SID != "b" {
		t.Errorf("refused %+v, want the grant to anyone", r.Refused)
	}
	if closed := r.Objects[0].Overrides["m2"]["closed"]; closed != false {
		t.Errorf("in m2, which is in Audit, closed is %v", closed)
	}
}
