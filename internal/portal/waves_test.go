package portal

import (
	"net/http"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/waves"
)

// halted makes bobs-cluster a resource whose rollout is halted in the first of two waves.
func (x *site) halted() {
	x.audited()
	x.host.mu.Lock()
	r := x.host.input.Resources[0].DeepCopy()
	r.Spec.Mode = v1alpha1.ModeEnforce
	halt := &v1alpha1.RolloutHalt{Reason: v1alpha1.HaltMemberUnhealthy, At: metav1.Now(), Cluster: "m1", Message: "m1 is away"}
	r.Status.Rollout = &v1alpha1.RolloutStatus{Progress: &v1alpha1.RolloutProgress{StartedAt: metav1.Now(), Wave: 1, Waves: 2, Name: "canary",
		Begun: v1alpha1.MemberSet{Clusters: []v1alpha1.ClusterName{"m1"}}, Waiting: 1, Halt: halt}}
	x.host.input.Resources = []*v1alpha1.ProtectedResource{r}
	x.host.mu.Unlock()
}

func TestRolloutWaves(t *testing.T) {
	x := newSite(t)
	x.halted()
	type card struct {
		Waves *struct {
			Wave, Waves, Waiting int
			Name                 string
			Halt                 *struct{ Reason, Cluster string }
			Actions              []string
		}
	}
	for who, want := range map[string][]string{
		"bob": {"resume", "rollback"}, "dave": {"resume", "skip", "finish", "rollback"}, "grace": {},
	} {
		var got card
		x.as(who).Get("/api/v1/rollout/bobs-cluster").Into(t, &got)
		if w := got.Waves; w == nil || w.Wave != 1 || w.Waves != 2 || w.Name != "canary" || w.Waiting != 1 || w.Halt == nil || w.Halt.Cluster != "m1" ||
			!slices.Equal(w.Actions, want) {
			t.Errorf("%s sees %+v, want the actions %v", who, w, want)
		}
	}
	for _, tc := range []struct {
		who    string
		body   map[string]any
		status int
	}{
		{"erin", map[string]any{"action": "rollback", "reason": "r"}, http.StatusForbidden},
		{"grace", map[string]any{"action": "rollback", "reason": "r"}, http.StatusForbidden},
		{"bob", map[string]any{"action": "skip", "reason": "r"}, http.StatusForbidden},
		{"bob", map[string]any{"action": "begin", "reason": "r"}, http.StatusUnprocessableEntity},
		{"bob", map[string]any{"action": "resume"}, http.StatusUnprocessableEntity},
		{"bob", map[string]any{"action": "resume", "reason": "m1 is back"}, http.StatusOK},
	} {
		if a := put(x.as(tc.who), "/rollout/bobs-cluster/waves", tc.body); a.Status != tc.status {
			t.Errorf("%s, %v: %d %s", tc.who, tc.body, a.Status, a.Body)
		}
	}
	i, err := waves.InstructionOf(x.host.Protection(portaltest.BobsCluster))
	if err != nil || i == nil || i.Action != waves.Resume || i.By != "bob" {
		t.Errorf("the instruction is %+v, %v", i, err)
	}
}

func TestClassWaves(t *testing.T) {
	x := newSite(t)
	x.host.organizations = []*v1alpha1.Organization{paymentsOrganization()}
	x.host.mu.Lock()
	class := x.host.input.ResourceClasses[0].DeepCopy()
	class.Spec.Organization = "payments"
	halt := &v1alpha1.RolloutHalt{Reason: v1alpha1.HaltClientsRefused, At: metav1.Now(), Cluster: "m1", Message: "clients are refused"}
	class.Status.Rollout = &v1alpha1.ClassRolloutStatus{Settled: v1alpha1.ClassRules{OtherPorts: v1alpha1.OtherPortsAllow}, Progress: &v1alpha1.RolloutProgress{
		StartedAt: metav1.Now(), Wave: 1, Waves: 2, Name: "canary", Begun: v1alpha1.MemberSet{Clusters: []v1alpha1.ClusterName{"m1"}}, Waiting: 1, Halt: halt}}
	x.host.input.ResourceClasses = append([]*v1alpha1.ResourceClass{class}, x.host.input.ResourceClasses[1:]...)
	x.host.mu.Unlock()
	for who, want := range map[string][]string{
		"bob": {"resume", "rollback"}, "dave": {"resume", "skip", "finish", "rollback"}, "grace": {}, "erin": {},
	} {
		var got struct {
			Items []struct {
				Name  string
				Waves *struct {
					Wave, Waves, Waiting int
					Halt                 *struct{ Reason, Cluster string }
					Actions              []string
				}
			}
		}
		x.as(who).Get("/api/v1/classes").Into(t, &got)
		seen := false
		for _, c := range got.Items {
			if c.Name != class.Name || c.Waves == nil {
				continue
			}
			seen = true
			if w := c.Waves; w.Wave != 1 || w.Waves != 2 || w.Waiting != 1 || w.Halt == nil || w.Halt.Cluster != "m1" || !slices.Equal(w.Actions, want) {
				t.Errorf("%s sees %+v, want the actions %v", who, w, want)
			}
		}
		if !seen {
			t.Errorf("%s does not see the waves", who)
		}
	}
	for _, tc := range []struct {
		who    string
		class  string
		body   map[string]any
		status int
	}{
		{"erin", class.Name, map[string]any{"action": "rollback", "reason": "r"}, http.StatusForbidden},
		{"grace", class.Name, map[string]any{"action": "rollback", "reason": "r"}, http.StatusForbidden},
		{"bob", class.Name, map[string]any{"action": "skip", "reason": "r"}, http.StatusForbidden},
		{"bob", class.Name, map[string]any{"action": "begin", "reason": "r"}, http.StatusUnprocessableEntity},
		{"bob", class.Name, map[string]any{"action": "resume"}, http.StatusUnprocessableEntity},
		{"dave", "none", map[string]any{"action": "resume", "reason": "r"}, http.StatusNotFound},
		{"bob", class.Name, map[string]any{"action": "resume", "reason": "the clients have what they need"}, http.StatusOK},
	} {
		if a := put(x.as(tc.who), "/classes/"+tc.class+"/waves", tc.body); a.Status != tc.status {
			t.Errorf("%s, %s, %v: %d %s", tc.who, tc.class, tc.body, a.Status, a.Body)
		}
	}
	all, _ := x.host.ResourceClasses()
	i, err := waves.InstructionOf(all[0])
	if err != nil || i == nil || i.Action != waves.Resume || i.By != "bob" {
		t.Errorf("the instruction is %+v, %v", i, err)
	}
}
