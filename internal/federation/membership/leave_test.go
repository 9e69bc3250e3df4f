package membership

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
)

// policyIn creates a policy of ACP in the member, and returns a function that removes it.
func policyIn(t *testing.T, name string) (remove func()) {
	t.Helper()
	glass := rest.CopyConfig(memberServer.Config) // bypasses the guard
	glass.Impersonate = rest.ImpersonationConfig{UserName: "alice", Groups: []string{guard.BreakGlass, "system:masters"}}
	r := dynamic.NewForConfigOrDie(glass).Resource(federation.CiliumPolicy.TargetResource)
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cilium.io/v2", "kind": "CiliumClusterwideNetworkPolicy",
		"metadata": map[string]any{"name": name, "labels": map[string]any{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}}, "spec": map[string]any{}}}
	if _, err := r.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := r.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
}

// federatedOn creates a Federated object on the host that names a member.
func federatedOn(t *testing.T, name, member string) (release func()) {
	t.Helper()
	r := dynamic.NewForConfigOrDie(hostServer.Config).Resource(federation.CiliumPolicy.FederatedResource)
	o := &federation.Object{
		Kind: federation.CiliumPolicy,
		Meta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
			Annotations: map[string]string{federation.AnnotationResource: "trnv1:rsc:a:b:c:d", federation.AnnotationEverPlaced: member}},
	}
	u, err := o.Unstructured()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return func() {
		patch := []byte(`{"metadata":{"annotations":{"` + federation.AnnotationEverPlaced + `":""}}}`)
		if _, err := r.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}
}

func TestLeaveWaitsUntilNothingIsLeft(t *testing.T) {
	ctx := t.Context()
	var steps []Step
	j := joining(t, "leaves", &steps)
	if _, err := j.Run(ctx); err != nil {
		t.Fatal(err)
	}
	remove := policyIn(t, "acp-leaves")
	defer remove()
	release := federatedOn(t, "acp-leaves", "leaves")
	l := &Leave{Host: j.Host, Name: "leaves", Timeout: time.Nanosecond, Every: 10 * time.Millisecond}
	left, err := l.Run(ctx)
	if !errors.Is(err, ErrNotEmpty) || len(left.Objects) != 1 || len(left.Federated) != 1 {
		t.Fatalf("Run: got error %v, left %+v", err, left)
	}
	_, c, err := j.Host.registration(ctx, "leaves")
	if err != nil || !c.Leaving {
		t.Fatalf("the member is not marked as leaving: %+v, %v", c, err)
	}
	if _, err := j.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if _, c, _ := j.Host.registration(ctx, "leaves"); c.Leaving {
		t.Error("a member that joined again is still marked as leaving")
	}

	l.Timeout = time.Minute
	l.Waiting = func(left Remaining) { // One obstacle after the other is removed, as the adapter and KubeFed would.
		if len(left.Federated) > 0 {
			release()
			return
		}
		remove()
	}
	l.Member = memberServer.Config
	l.OnStep = func(s Step) { steps = append(steps, s) }
	steps = nil
	if left, err = l.Run(ctx); err != nil || !left.IsEmpty() {
		t.Fatalf("Run: got error %v, left %+v", err, left)
	}
	if u, _, err := j.Host.registration(ctx, "leaves"); err != nil || u != nil {
		t.Errorf("the member is still registered: %v", err)
	}
	for _, name := range []string{"acp-pusher-leaves"} {
		if token, err := j.Host.token(ctx, kubeFedNamespace, name); err != nil || token != "" {
			t.Errorf("the Secret %s still exists: %v", name, err)
		}
	}
	if c := counts(steps); c[Absent] != 2 || c[Removed] != len(steps)-2 { // The policy about class labels was not requested.
		t.Errorf("got steps %v", steps)
	}
	steps = nil
	if _, err := l.Run(ctx); err != nil || counts(steps)[Absent] != len(steps) {
		t.Errorf("second Run: got error %v, steps %v", err, steps)
	}
}

func TestForcedLeaveReportsWhatIsLeft(t *testing.T) {
	ctx := t.Context()
	var steps []Step
	j := joining(t, "forced", &steps)
	if _, err := j.Run(ctx); err != nil {
		t.Fatal(err)
	}
	remove := policyIn(t, "acp-forced")
	defer remove()
	release := federatedOn(t, "acp-forced", "forced")
	defer release()
	l := &Leave{Host: j.Host, Name: "forced", Force: true, DryRun: true, OnStep: func(s Step) { steps = append(steps, s) }}
	if _, err := l.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if u, _, err := j.Host.registration(ctx, "forced"); err != nil || u == nil {
		t.Fatalf("the dry run unregistered the member: %v", err)
	}
	l.DryRun = false
	left, err := l.Run(ctx)
	if err != nil || len(left.Objects) != 1 || len(left.Federated) != 1 || !strings.Contains(left.Federated[0], "trnv1:rsc:a:b:c:d") {
		t.Fatalf("forced Run: got error %v, left %+v", err, left)
	}
	if u, _, err := j.Host.registration(ctx, "forced"); err != nil || u != nil {
		t.Errorf("the member is still registered: %v", err)
	}
}

// TestUnreachableMemberLeavesWithForce checks that a member that was registered with an address at which ACP never reached it is reported as
// unread, also if objects were placed there, that an interrupted call says nothing about it, and that it leaves with Force.
func TestUnreachableMemberLeavesWithForce(t *testing.T) {
	ctx := t.Context()
	var steps []Step
	j := joining(t, "unreached", &steps)
	if _, err := j.Run(ctx); err != nil {
		t.Fatal(err)
	}
	patch := []byte(`{"spec":{"apiEndpoint":"https://127.0.0.1:1"}}`)
	if _, err := j.Host.registrations().Patch(ctx, "unreached", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	defer federatedOn(t, "acp-unreached", "unreached")()
	l := &Leave{Host: j.Host, Name: "unreached", Timeout: time.Nanosecond, Every: 10 * time.Millisecond}
	if left, err := l.Run(ctx); !errors.Is(err, ErrUnread) || left.Unread == "" || len(left.Federated) != 1 {
		t.Errorf("got %v, left %+v, want ErrUnread", err, left)
	}
	canceled, cancel := context.WithCancel(ctx)
	l.Timeout, l.Waiting = time.Minute, func(Remaining) { cancel() }
	if _, err := l.Run(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: got %v", err)
	}
	l.Force = true
	if _, err := l.Run(ctx); err != nil {
		t.Errorf("with Force: %v", err)
	}
	if u, _, err := j.Host.registration(ctx, "unreached"); u != nil || err != nil {
		t.Errorf("the member is still registered: %v, %v", u, err)
	}
}
