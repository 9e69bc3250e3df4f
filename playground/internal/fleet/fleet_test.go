package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/acp-io/acp/playground/internal/parts"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

var (
	ccnpResource      = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumclusterwidenetworkpolicies"}
	federatedResource = schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatedciliumclusterwidenetworkpolicies"}
)

type testProgress struct{ t *testing.T }

func (p testProgress) Begin(_, _ int, part parts.Part, log string) {
	p.t.Logf("building %s (%s), log %s", part.Name, part.Expect, log)
}
func (p testProgress) Elapsed(parts.Part, time.Duration, bool) {}
func (p testProgress) End(parts.Part, time.Duration, error)    {}

// createDemoClasses creates the classes of the demo in the host cluster.
func createDemoClasses(ctx context.Context, t *testing.T, f *Fleet) {
	t.Helper()
	classes, err := ParseDir(filepath.Join(f.Repo, "playground/demo/objects"))
	if err != nil {
		t.Fatal(err)
	}
	classes = slices.DeleteFunc(classes, func(u *unstructured.Unstructured) bool {
		return u.GetKind() != "ResourceClass" && u.GetKind() != "SubjectClass"
	})
	if _, err := f.Applier(Host).CreateAbsent(ctx, classes); err != nil {
		t.Fatal(err)
	}
}

func newFleet(t *testing.T, dir string) (*Fleet, *supervisor.Supervisor) {
	t.Helper()
	return newFleetOf(t, dir, Config{})
}

// newGuardedFleet returns a fleet whose members refuse changes of objects that ACP manages by every user but KubeFed and the
// break-glass group.
func newGuardedFleet(t *testing.T, dir string) (*Fleet, *supervisor.Supervisor) {
	t.Helper()
	return newFleetOf(t, dir, Config{Guarded: true})
}

// newFleetOf returns a fleet in a state folder. The rest of its configuration is completed.
func newFleetOf(t *testing.T, dir string, config Config) (*Fleet, *supervisor.Supervisor) {
	t.Helper()
	repo, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	cacheDir, err := parts.DefaultDir()
	if err != nil {
		t.Fatal(err)
	}
	cache := &parts.Cache{Repo: repo, Dir: cacheDir, Assets: os.Getenv("KUBEBUILDER_ASSETS"), Progress: testProgress{t}}
	needed := parts.All()
	if len(config.Pull) > 0 {
		agent, err := parts.Select(parts.OCM)
		if err != nil {
			t.Fatal(err)
		}
		needed = append(needed, agent...)
	}
	built, err := cache.Ensure(t.Context(), needed)
	if err != nil {
		t.Fatal(err)
	}
	layout, err := NewLayout(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := supervisor.New(supervisor.Config{RunDir: layout.Run(), LogDir: layout.Logs(), Report: func(e supervisor.Event) {
		t.Logf("%s: %s", e.Name, e.Text)
	}})
	t.Cleanup(s.Close)
	config.Layout, config.Repo, config.Built, config.Supervisor = layout, repo, built, s
	f, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return f, s
}

func as(t *testing.T, f *Fleet, name string) dynamic.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", f.Layout.Kubeconfig(name))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1 // tests poll
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func federated(app string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "types.kubefed.io/v1beta1",
		"kind":       "FederatedCiliumClusterwideNetworkPolicy",
		"metadata":   map[string]any{"name": "carried"},
		"spec": map[string]any{
			"placement": map[string]any{"clusterSelector": map[string]any{}},
			"template": map[string]any{"spec": map[string]any{
				"endpointSelector":  map[string]any{"matchLabels": map[string]any{"com.trip/redis-cluster": "bobs-cluster"}},
				"enableDefaultDeny": map[string]any{"ingress": true, "egress": false},
				"ingress": []any{map[string]any{"fromEndpoints": []any{
					map[string]any{"matchLabels": map[string]any{"com.trip/appid": app}},
				}}},
			}},
		},
	}}
}

// waitFor polls a member until it has the policy of the application. An empty application waits until the policy is absent.
func waitFor(t *testing.T, ctx context.Context, f *Fleet, member, app string) {
	t.Helper()
	waitIn(t, ctx, as(t, f, member), member, app)
}

func waitIn(t *testing.T, ctx context.Context, client dynamic.Interface, member, app string) {
	t.Helper()
	err := poll(ctx, fmt.Sprintf("policy of app %q in %s", app, member), func(ctx context.Context) error {
		obj, err := client.Resource(ccnpResource).Get(ctx, "carried", metav1.GetOptions{})
		if app == "" && apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		ingress, _, err := unstructured.NestedSlice(obj.Object, "spec", "ingress")
		if err != nil {
			return err
		}
		if app == "" ||
			fmt.Sprint(ingress) != fmt.Sprint(federated(app).Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["ingress"]) {
			return errors.New("it is another policy")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFleet checks that a real fleet propagates an object from the host to the members, keeps it over a restart, and updates a
// member that was down.
func TestFleet(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	f, s := newFleet(t, dir)
	if err := f.Up(ctx, nil); err != nil {
		t.Fatal(err)
	}
	host := as(t, f, Host).Resource(federatedResource)
	if _, err := host.Create(ctx, federated("888"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, m := range Members() {
		waitFor(t, ctx, f, m, "888")
	}

	t.Run("LeastPrivilege", func(t *testing.T) {
		secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
		if _, err := as(t, f, KubeFed).Resource(secrets).Namespace(ACPNamespace).List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("KubeFed must not read the adapter's credentials: %v", err)
		}
		if _, err := as(t, f, Portal).Resource(secrets).Namespace(KubeFedNamespace).List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("the portal must not hold member credentials: %v", err)
		}
	})

	if err := s.Kill("apiserver-m2"); err != nil {
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
	waitFor(t, ctx, f, "m1", "889")
	if err := s.StartAndWait(ctx, "apiserver-m2"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, ctx, f, "m2", "889")

	s.Close()
	again, _ := newFleet(t, dir)
	if err := again.Up(ctx, nil); err != nil {
		t.Fatalf("the second start: %v", err)
	}
	waitFor(t, ctx, again, "m1", "889")
	if err := as(t, again, Host).Resource(federatedResource).Delete(ctx, "carried", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, m := range Members() {
		waitFor(t, ctx, again, m, "")
	}
}
