package membercluster

import (
	"context"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/memberhealth"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

type oneMember struct{}

func (oneMember) Registry() (bool, error)        { return true, nil }
func (oneMember) Clusters() []federation.Cluster { return []federation.Cluster{{Name: "m1"}} }
func (oneMember) Observe(string, string) federation.Observation {
	return federation.Observation{Reachable: true}
}

// TestPauses checks that many changes are one update, that a member is not written more often than the interval, and that it is
// written after the interval although nothing woke the Writer.
func TestPauses(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	lists, writes := make(chan struct{}, 10), make(chan string, 10)
	kubernetes := "v1.30.0" // read and written between updates, which the channels separate
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.MemberCluster{}).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			lists <- struct{}{}
			return c.List(ctx, list, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			writes <- o.(*v1alpha1.MemberCluster).Status.KubernetesVersion
			return c.SubResource(name).Update(ctx, o, opts...)
		},
	}).Build()
	pauses := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	w := &Writer{Client: c, Fleet: oneMember{}, Reports: statuscache.New(), Clock: pauses, Pauses: pauses, Interval: 10 * time.Second, Log: logr.Discard(),
		LastCheck: func(string) (memberhealth.CheckResult, bool) {
			return memberhealth.CheckResult{Kubernetes: kubernetes}, true
		},
		Complete:       func() bool { return true },
		Ready:          func(context.Context) error { return nil },
		Identities:     func(string, int32) *v1alpha1.MemberIdentities { return nil },
		Labels:         func(string) (int32, []v1alpha1.MemberLabel) { return 0, nil },
		Values:         func(string) (map[string][]string, bool) { return nil, true },
		NoHTTP:         func(string) message.Message { return message.Message{} },
		SupportsGroups: func() bool { return true },
	}
	if err := w.Prepare(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Start(ctx) }()
	receive := func(what string, from <-chan struct{}) {
		t.Helper()
		select {
		case <-from:
		case <-time.After(time.Minute):
			t.Fatalf("waited in vain: %s", what)
		}
	}
	resting := func() { // until the Writer waits for the pause after an update, beside its ticker
		t.Helper()
		for limit := time.Now().Add(time.Minute); pauses.Waiters() < 2; {
			if time.Now().After(limit) {
				t.Fatal("the Writer does not pause")
			}
			goruntime.Gosched()
		}
	}
	written := func(want ...string) {
		t.Helper()
		for _, w := range want {
			if got := <-writes; got != w {
				t.Errorf("%q was written, want %q", got, w)
			}
		}
		if n := len(writes); n > 0 {
			t.Errorf("%d more writes", n)
		}
	}
	receive("the first update", lists)
	resting()
	written("v1.30.0")

	kubernetes = "v1.31.0"
	w.Requeue()
	w.Requeue()
	pauses.Step(time.Second)
	receive("the update for both changes", lists)
	resting()
	written() // the member was written a second ago

	pauses.Step(time.Second)
	pauses.Step(8 * time.Second)
	receive("the update after the interval", lists)
	resting()
	written("v1.31.0")
	if n := len(lists); n > 0 {
		t.Errorf("%d more updates", n)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
