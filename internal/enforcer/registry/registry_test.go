package registry

import (
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation/objectkind"
	"github.com/acp-io/acp/internal/policy"
)

func TestEveryEnforcerAnswersToItsName(t *testing.T) {
	s := policy.NewSnapshot(policy.Input{})
	for _, name := range Names() {
		plan, err := Prepare(name, Job{Snapshot: s})
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.Enforcer.Name(); got != name {
			t.Errorf("%s is made for %s", got, name)
		}
	}
	if !slices.Contains(Names(), v1alpha1.EnforcerCilium) {
		t.Errorf("%v are built in, want cilium among them", Names())
	}
}

// TestEveryKindOfPolicyHasAnEnforcer checks that the enforcer of each kind of policies is built in, with everything that is needed of it.
func TestEveryKindOfPolicyHasAnEnforcer(t *testing.T) {
	for _, k := range objectkind.Policies() {
		e := Of(k.Enforcer)
		if e.Prepare == nil || e.Effect == nil || e.Audit == nil || e.WithoutAllows == nil {
			t.Errorf("%s of the enforcer %q: the entry lacks a function: %+v", k.Target.Kind, k.Enforcer, e)
			continue
		}
		if spec := e.WithoutAllows(map[string]any{}); spec == nil {
			t.Errorf("%s: a policy that may close is removed from members that cannot be reached", k.Target.Kind)
		}
		if effect := e.Effect(map[string]any{}, e.Audit(map[string]any{})); effect != enforcer.Grants {
			t.Errorf("%s: a policy that refuses nobody has the effect %d in place of none, want %d", k.Target.Kind, effect, enforcer.Grants)
		}
	}
}

func TestUnknown(t *testing.T) {
	if _, err := Prepare("iptables", Job{}); !errors.Is(err, ErrUnknown) {
		t.Errorf("Prepare(iptables): %v, want %v", err, ErrUnknown)
	}
}

// The groups of external workloads go with the units that refer to them, and with no other.
func TestSharedGroupsFollowTheirUnits(t *testing.T) {
	const app, cache = "trnv1:rsc:trip-com:iam:sa:app/", "trnv1:rsc:trip-com:redis:clusters:"
	protect := func(name string) *v1alpha1.ProtectedResource {
		return &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ProtectedResourceSpec{
			Resource: v1alpha1.ResourceName(cache + name), Mode: v1alpha1.ModeEnforce}}
	}
	s := policy.NewSnapshot(policy.Input{
		ResourceClasses: []*v1alpha1.ResourceClass{
			{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{Pattern: cache + "*", LabelKey: "r",
				Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379}}}}}},
		},
		SubjectClasses: []*v1alpha1.SubjectClass{
			{ObjectMeta: metav1.ObjectMeta{Name: "application"}, Spec: v1alpha1.SubjectClassSpec{Pattern: app + "*", LabelKey: "s"}},
		},
		Resources: []*v1alpha1.ProtectedResource{protect("used"), protect("unused")},
		Workloads: []*v1alpha1.ExternalWorkload{{ObjectMeta: metav1.ObjectMeta{Name: "vm"}, Spec: v1alpha1.ExternalWorkloadSpec{
			Subject: app + "vm", Addresses: []string{"10.9.0.1"}}}},
		Policies: []*v1alpha1.AccessControlPolicy{
			{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{
				{
					SID:       "s",
					Effect:    v1alpha1.EffectAllow,
					Subjects:  []v1alpha1.Subject{app + "vm"},
					Actions:   []v1alpha1.Action{"redis:connect"},
					Resources: []v1alpha1.ResourceName{cache + "used"},
				},
			}}},
		},
	})
	var at metav1.Time
	plan, err := Prepare(v1alpha1.EnforcerCilium, Job{Snapshot: s, Units: s.Compile(at.Time), At: at.Time})
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Shared) != 1 || plan.Shared[0].Subject != app+"vm" || len(plan.Shared[0].Rendering.Objects) != 1 {
		t.Fatalf("shared objects %+v, want one group", plan.Shared)
	}
	var users []string
	for i := range plan.Units {
		if plan.Shared[0].UsedBy(&plan.Units[i]) {
			users = append(users, plan.Units[i].Resource)
		}
	}
	if !slices.Equal(users, []string{cache + "used"}) {
		t.Errorf("the group is used by %v", users)
	}
}

// Istio's enforcer refuses what no member declares, and reads what they do.
func TestIstioReadsWhatMembersDeclare(t *testing.T) {
	const cache = "trnv1:rsc:trip-com:redis:clusters:"
	in := policy.Input{
		ResourceClasses: []*v1alpha1.ResourceClass{
			{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{Pattern: cache + "*", LabelKey: "r",
				Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379}}}}}},
		},
		Resources: []*v1alpha1.ProtectedResource{{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: v1alpha1.ProtectedResourceSpec{
			Resource: cache + "one", Mode: v1alpha1.ModeEnforce}}},
		Policies: []*v1alpha1.AccessControlPolicy{
			{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{
				{
					SID:       "s",
					Effect:    v1alpha1.EffectAllow,
					Subjects:  []v1alpha1.Subject{"*"},
					Actions:   []v1alpha1.Action{"redis:connect"},
					Resources: []v1alpha1.ResourceName{cache + "one"},
				},
			}}},
		},
	}
	var at metav1.Time
	for name, c := range map[string]struct {
		declared string
		refused  int
		err      bool
		reason   string
	}{
		"Nothing":    {"", 1, false, "what nobody declares, nobody can do"},
		"Sidecar":    {"default: {dataplane: sidecar, version: 1.31.1}", 0, false, "the declared members can do it"},
		"Misspelled": {"defaults: {dataplane: sidecar, version: 1.31.1}", 0, true, "a misspelled capability was declared by nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			declared := map[v1alpha1.EnforcerName][]byte{}
			if c.declared != "" {
				declared[v1alpha1.EnforcerIstio] = []byte(c.declared)
			}
			fleet, err := WithDeclared(FleetOf(nil), declared)
			if (err != nil) != c.err {
				t.Fatalf("WithDeclared: %v, %s", err, c.reason)
			}
			if err != nil {
				return
			}
			s := policy.NewSnapshot(policy.NewInput(in.Objects(), fleet))
			plan, err := Prepare(v1alpha1.EnforcerIstio, Job{Snapshot: s, Units: s.Compile(at.Time), At: at.Time})
			if err != nil {
				t.Fatal(err)
			}
			r, err := plan.Enforcer.Render(plan.Units[0])
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Refused) != c.refused {
				t.Errorf("refused %v, want %d: %s", r.Refused, c.refused, c.reason)
			}
		})
	}
}
