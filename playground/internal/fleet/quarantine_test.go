package fleet

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/playground/internal/supervisor"
)

// TestQuarantineLetsTheRealKubeFedContinue checks that a member that lacks a kind does not stop the real KubeFed for every member:
// the adapter quarantines it, the healthy member receives changes, and the other one converges when it serves the kind again.
func TestQuarantineLetsTheRealKubeFedContinue(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute) // less than the time after which KubeFed would exit
	defer cancel()
	f, s := newFleet(t, t.TempDir())
	if err := f.Up(ctx, nil); err != nil {
		t.Fatal(err)
	}
	startAdapter(t, f)
	host := as(t, f, Host).Resource(federatedResource)
	if _, err := host.Create(ctx, federated("888"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, m := range Members() {
		waitFor(t, ctx, f, m, "888")
	}

	// KubeFed lists a kind when it starts and when a member becomes ready; in between it uses its cache.
	if err := s.Stop("kubefed"); err != nil {
		t.Fatal(err)
	}
	if err := poll(ctx, "KubeFed still runs", func(context.Context) error {
		for _, p := range s.Status() {
			if p.Name == "kubefed" && p.State != supervisor.StateDown {
				return errors.New(string(p.State))
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := as(t, f, "m2").Resource(crdResource).Delete(ctx, "ciliumclusterwidenetworkpolicies.cilium.io", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := poll(ctx, "m2 still serves the kind", func(ctx context.Context) error {
		_, err := as(t, f, "m2").Resource(ccnpResource).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it answers %w", err)
	}); err != nil {
		t.Fatal(err)
	}
	present, err := host.Get(ctx, "carried", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	present.Object["spec"] = federated("889").Object["spec"]
	if _, err := host.Update(ctx, present, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := s.Start("kubefed"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, ctx, f, "m1", "889")
	t.Logf("the healthy member got the change %s after KubeFed was started", time.Since(began).Round(time.Second))
	if secret := pushedWith(t, ctx, f, "m2"); secret == "kubefed-m2" {
		t.Error("KubeFed still has a client of the broken member")
	}

	if err := f.setUpMember(ctx, "m2"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, ctx, f, "m2", "889")
	if secret := pushedWith(t, ctx, f, "m2"); secret != "kubefed-m2" {
		t.Errorf("KubeFed uses the Secret %q", secret)
	}
}

// pushedWith returns the Secret with which KubeFed accesses a member.
func pushedWith(t *testing.T, ctx context.Context, f *Fleet, member string) string {
	t.Helper()
	u, err := as(t, f, Host).Resource(kubeFedClusterResource).Namespace(KubeFedNamespace).Get(ctx, member, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	name, _, err := unstructured.NestedString(u.Object, "spec", "secretRef", "name")
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// startAdapter builds the real adapter and runs it until the test ends.
func startAdapter(t *testing.T, f *Fleet, flags ...string) {
	t.Helper()
	adapter := exec.CommandContext(t.Context(), buildAdapter(t, f),
		append([]string{"--kubeconfig", f.Layout.Kubeconfig(Adapter), "--health-address=0", "--metrics-address=0", "--leader-elect=false"}, flags...)...)
	adapter.Stderr = logWriter{t}
	if err := adapter.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		var exit *exec.ExitError
		if err := adapter.Wait(); err != nil && !errors.As(err, &exit) {
			t.Error(err)
		}
	})
}

type logWriter struct{ t *testing.T }

func (w logWriter) Write(p []byte) (int, error) {
	w.t.Logf("adapter: %s", p)
	return len(p), nil
}
