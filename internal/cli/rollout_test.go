package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/testenv"
	"github.com/acp-io/acp/internal/waves"
)

// TestRollout checks the list of rollouts, and that an instruction reaches the object.
func TestRollout(t *testing.T) {
	ctx := context.Background()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	host := testenv.Start(t, testenv.Options{CRDs: []string{"deploy/crds"}})
	c, err := client.New(host.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	at := []string{"--kubeconfig", writeKubeconfig(t, host.Config)}
	rollout := func(args ...string) (int, string, string) {
		return run(t, "", append(append([]string{"rollout"}, args...), at...)...)
	}

	if code, out, errs := rollout("status"); code != ExitFine || !strings.Contains(out, "no rollout is in progress") {
		t.Errorf("without objects: %d %s %s", code, out, errs)
	}
	started := metav1.NewTime(goldenTime.Add(-3 * time.Hour))
	for name, progress := range map[string]*v1alpha1.RolloutProgress{
		"quiet": nil,
		"soaks": {StartedAt: started, Wave: 1, Waves: 3, Name: "canary", Waiting: 40, BegunAt: &started, EnforcedSince: &started},
	} {
		o := &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ProtectedResourceSpec{
			Resource: v1alpha1.ResourceName("trnv1:rsc:trip-com:redis:clusters:" + name), Mode: v1alpha1.ModeEnforce}}
		if err := c.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
		o.Status.Rollout = &v1alpha1.RolloutStatus{Progress: progress}
		if err := c.Status().Update(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	code, out, errs := rollout("status")
	for _, want := range []string{"1/3 canary", "soaking", "3h0m0s"} {
		if !strings.Contains(out, want) {
			t.Errorf("the list lacks %q", want)
		}
	}
	if code != ExitFine || strings.Contains(out, "quiet") {
		t.Errorf("%d\n%s%s", code, out, errs)
	}
	if code, out, errs := rollout("pause", "trnv1:rsc:trip-com:redis:clusters:soaks", "--reason", "errors in the canary"); code != ExitFine {
		t.Errorf("%d %s %s", code, out, errs)
	}
	var o v1alpha1.ProtectedResource
	if err := c.Get(ctx, client.ObjectKey{Name: "soaks"}, &o); err != nil {
		t.Fatal(err)
	}
	if i, err := waves.InstructionOf(&o); err != nil || i == nil || i.Action != waves.Pause || i.Reason != "errors in the canary" || i.By == "" {
		t.Errorf("%+v, %v", i, err)
	}
	o.Status.Rollout.Progress.Halt = &v1alpha1.RolloutHalt{Reason: v1alpha1.HaltPaused, At: started, By: "sam", Message: "errors in the canary"}
	if err := c.Status().Update(ctx, &o); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := rollout("status", "soaks"); code != ExitFindings || !strings.Contains(out, "halted: Paused") || !strings.Contains(out, "(by sam)") {
		t.Errorf("a halted one: %d\n%s%s", code, out, errs)
	}
	class := &v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{
		Pattern: "trnv1:rsc:trip-com:redis:clusters:*", LabelKey: "com.trip/redis", Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}},
		Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6380}}}}}}
	if err := c.Create(ctx, class); err != nil {
		t.Fatal(err)
	}
	class.Status.Rollout = &v1alpha1.ClassRolloutStatus{Settled: v1alpha1.ClassRules{OtherPorts: v1alpha1.OtherPortsDeny,
		Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379}}}}}}
	if err := c.Status().Update(ctx, class); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := rollout("status", "resourceclass/redis"); code != ExitFine || !strings.Contains(out, "the adapter has not begun") {
		t.Errorf("a class whose change was not seen: %d\n%s%s", code, out, errs)
	}
	class.Status.Rollout.Progress = &v1alpha1.RolloutProgress{StartedAt: started, Wave: 1, Waves: 2, Name: "canary", Waiting: 7, BegunAt: &started}
	ahead := metav1.NewMicroTime(goldenTime.Add(time.Hour)) // by somebody whose clock is ahead
	class.Status.Rollout.InstructionAt = &ahead
	if err := c.Status().Update(ctx, class); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := rollout("status", "resourceclass/redis"); code != ExitFine || !strings.Contains(out, "1/2 canary") {
		t.Errorf("a class: %d\n%s%s", code, out, errs)
	}
	if code, out, errs := rollout("rollback", "resourceclass/redis", "--reason", "clients are refused"); code != ExitFine {
		t.Errorf("%d %s %s", code, out, errs)
	}
	if err := c.Get(ctx, client.ObjectKey{Name: "redis"}, class); err != nil {
		t.Fatal(err)
	}
	if i, err := waves.InstructionOf(class); err != nil || i == nil || i.Action != waves.RollBack || !i.At.After(ahead.Time) {
		t.Errorf("the instruction of the class: %+v, %v", i, err)
	}
	for _, tc := range []struct {
		reason string
		args   []string
		code   int
	}{
		{"no reason", []string{"pause", "soaks"}, ExitUsage},
		{"no name", []string{"pause", "--reason", "r"}, ExitUsage},
		{"no such object", []string{"pause", "none", "--reason", "r"}, ExitInvalid},
		{"no rollout in progress", []string{"skip", "quiet", "--reason", "r"}, ExitFindings},
		{"a reason that is too long", []string{"pause", "soaks", "--reason", strings.Repeat("r", 1025)}, ExitUsage},
		{"no such object to show", []string{"status", "none"}, ExitInvalid},
	} {
		if code, out, errs := rollout(tc.args...); code != tc.code {
			t.Errorf("%s: code %d, want %d\n%s%s", tc.reason, code, tc.code, out, errs)
		}
	}
}
