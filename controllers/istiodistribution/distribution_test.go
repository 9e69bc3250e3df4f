package istiodistribution

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
)

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestKindIsFoundLater checks when a host is asked for the kind again, and what is known meanwhile: a host without the kind supports
// nothing, whereas an unexpected answer says nothing about it.
func TestKindIsFoundLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind := federation.IstioPolicy.FederatedResource
		host := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
			kind: "FederatedIstioPolicyList",
			{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatednamespaces"}: "FederatedNamespaceList",
		})
		var answer error
		checks := 0
		host.PrependReactor("list", kind.Resource, func(k8stesting.Action) (bool, runtime.Object, error) {
			checks++
			return answer != nil, nil, answer
		})
		pauses := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
		d, err := New(Config{Pauses: pauses, KindChanged: func() {}, Changed: func() {}, Fleet: federation.FleetConfig{
			Host: host, KubeFedNamespace: "fed", CredentialsNamespace: "acp", Revision: enforcer.Revision, Log: logr.Discard()}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		answer = apierrors.NewInternalError(context.DeadlineExceeded)
		go func() { ended <- d.watch(ctx) }()
		synctest.Wait()
		for _, step := range []struct {
			reason           string
			pause            time.Duration // until the next check
			answer           error         // of the next check
			known, supported bool          // after it
		}{
			{"the host fails again", hostRetryInterval, answer, false, false},
			{"the kind is missing", hostRetryInterval, apierrors.NewNotFound(kind.GroupResource(), ""), true, false},
			{"it may not be read", kindPollInterval, apierrors.NewForbidden(kind.GroupResource(), "", nil), true, false},
			{"it is there", kindPollInterval, nil, true, true},
		} {
			before := checks
			answer = step.answer
			pauses.Step(step.pause - 1)
			synctest.Wait()
			if checks != before {
				t.Errorf("%s: the host was asked before %s", step.reason, step.pause)
			}
			pauses.Step(1)
			synctest.Wait()
			if checks == before || closed(d.known) != step.known || closed(d.Supported()) != step.supported || d.IsSupported() != step.supported {
				t.Errorf("%s: %d checks, known %t, supported %t", step.reason, checks-before, closed(d.known), d.IsSupported())
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
