package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
	playgroundfleet "github.com/acp-io/acp/playground/internal/fleet"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

var (
	policies  = v1alpha1.GroupVersion.WithResource("accesscontrolpolicies")
	resources = v1alpha1.GroupVersion.WithResource("protectedresources")
	classes   = v1alpha1.GroupVersion.WithResource("resourceclasses")
	federated = schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatedciliumclusterwidenetworkpolicies"}
	inMembers = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumclusterwidenetworkpolicies"}
)

const (
	// writers is the number of goroutines that create objects concurrently.
	writers    = 8
	demoClass  = "redis"
	benchOwner = "trnv1:rsc:trip-com:redis:clusters:bench-"
)

// scene creates and changes the measured objects as the administrator of a running fleet.
type scene struct {
	host    dynamic.Interface
	members map[string]dynamic.Interface
	views   map[string]*view
	// servers are the configurations of the clusters' clients.
	servers map[string]*rest.Config
	// changes are the single changes that were made.
	changes []change
	stop    func()
}

func enter(ctx context.Context, f *fleet) (*scene, error) {
	s := &scene{members: map[string]dynamic.Interface{}, views: map[string]*view{}, servers: map[string]*rest.Config{}}
	client := func(cluster string) (dynamic.Interface, error) {
		config, err := clientcmd.BuildConfigFromFlags("", f.ready.Kubeconfigs[cluster])
		if err != nil {
			return nil, fmt.Errorf("read the kubeconfig of %s: %w", cluster, err)
		}
		config.QPS, config.UserAgent = -1, "acp-bench"
		s.servers[cluster] = config
		return dynamic.NewForConfig(config)
	}
	var err error
	if s.host, err = client(playgroundfleet.Host); err != nil {
		return nil, err
	}
	ctx, s.stop = context.WithCancel(ctx)
	for _, m := range playgroundfleet.Members() {
		if s.members[m], err = client(m); err != nil {
			s.stop()
			return nil, err
		}
		if s.views[m], err = follow(ctx, s.members[m].Resource(inMembers)); err != nil {
			s.stop()
			return nil, fmt.Errorf("watch member %s: %w", m, err)
		}
	}
	return s, nil
}

func name(i int) string { return fmt.Sprintf("bench-%d", i) }

// objectOf returns the name of the object of a resource's unit in the members.
func objectOf(i int) string {
	return v1alpha1.ObjectPrefix + policy.UnitID(fmt.Sprint(benchOwner, i))
}

const (
	grantedApp  = "888"
	grantedSID  = "bench"
	policyOf    = "bench-policy-"
	subjectName = "trnv1:rsc:trip-com:iam:sa:app/" + grantedApp
)

func statements(i int, granted bool) []any {
	if !granted {
		return []any{}
	}
	return []any{map[string]any{"sid": grantedSID, "effect": "Allow", "subjects": []any{subjectName},
		"actions": []any{"redis:connect"}, "resources": []any{fmt.Sprint(benchOwner, i)}}}
}

// protect creates n enforced resources with one grant each, from a number on.
func (s *scene) protect(ctx context.Context, first, n int) error {
	return ForEachConcurrently(n, func(i int) error {
		i += first
		for _, o := range []struct {
			kind schema.GroupVersionResource
			u    *unstructured.Unstructured
		}{
			{resources, object("ProtectedResource", name(i), map[string]any{"resource": fmt.Sprint(benchOwner, i), "mode": "Enforce"})},
			{policies, object("AccessControlPolicy", fmt.Sprint(policyOf, i), map[string]any{"statements": statements(i, true)})},
		} {
			_, err := s.host.Resource(o.kind).Create(ctx, o.u, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) && o.kind == policies {
				err = s.grant(ctx, i, true) // another part may have revoked it
			}
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("create %s: %w", o.u.GetName(), err)
			}
		}
		return nil
	})
}

func object(kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec}}
}

// grant adds the grant of a resource, or removes it.
func (s *scene) grant(ctx context.Context, i int, granted bool) error {
	patch := `{"spec":{"statements":[]}}`
	if granted {
		patch = fmt.Sprintf(`{"spec":{"statements":[{"sid":%q,"effect":"Allow","subjects":[%q],"actions":["redis:connect"],"resources":["%s%d"]}]}}`,
			grantedSID, subjectName, benchOwner, i)
	}
	_, err := s.host.Resource(policies).Patch(ctx, fmt.Sprint(policyOf, i), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// mode changes the mode of a resource.
func (s *scene) mode(ctx context.Context, i int, mode string) error {
	_, err := s.host.Resource(resources).Patch(ctx, name(i), types.MergePatchType, fmt.Appendf(nil, `{"spec":{"mode":%q}}`, mode), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("change the mode of %s: %w", name(i), err)
	}
	return nil
}

// ports changes the ports of the class, and so every unit of it.
func (s *scene) ports(ctx context.Context, ports string) error {
	patch := `{"spec":{"actions":[{"name":"redis:connect","ports":[` + ports + `]}]}}`
	_, err := s.host.Resource(classes).Patch(ctx, demoClass, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// direct creates n Federated objects like those of the adapter, as a user of KubeFed without ACP would.
func (s *scene) direct(ctx context.Context, n int) error {
	clusters := []any{}
	for _, m := range playgroundfleet.Members() {
		clusters = append(clusters, map[string]any{"name": m})
	}
	return ForEachConcurrently(n, func(i int) error {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": federated.GroupVersion().String(), "kind": "FederatedCiliumClusterwideNetworkPolicy",
			"metadata": map[string]any{"name": fmt.Sprint(directName, i)},
			"spec": map[string]any{"placement": map[string]any{"clusters": clusters}, "template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"bench": "direct", "unit": fmt.Sprint(i), "revision": "0123456789abcdef"}},
				"spec": map[string]any{
					"endpointSelector":  map[string]any{"matchLabels": map[string]any{"k8s:com.trip/redis-cluster": fmt.Sprint("direct-", i)}},
					"enableDefaultDeny": map[string]any{"ingress": true, "egress": false},
					"ingress": []any{map[string]any{
						"fromEndpoints": []any{map[string]any{"matchExpressions": []any{
							map[string]any{"key": "k8s:com.trip/appid", "operator": "In", "values": []any{grantedApp}},
							map[string]any{"key": "k8s:io.cilium.k8s.policy.cluster", "operator": "Exists"}}}},
						"toPorts": []any{map[string]any{"ports": []any{map[string]any{"port": "6379", "protocol": "TCP"}}}}}},
				}}}}}
		if _, err := s.host.Resource(federated).Create(ctx, u, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create %s: %w", u.GetName(), err)
		}
		return nil
	})
}

const directName = "bench-direct-"

// ForEachConcurrently calls do n times, with limited concurrency, and returns the joined errors.
func ForEachConcurrently(n int, do func(i int) error) error {
	var next atomic.Int64
	errs := make([]error, writers)
	var running sync.WaitGroup
	for w := range writers {
		running.Go(func() {
			for errs[w] == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				errs[w] = do(i)
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// costs returns the costs of the fleet and of this program until now.
func (s *scene) costs(ctx context.Context, f *fleet) (Costs, error) {
	status, err := supervisor.NewClient(playgroundfleet.Layout{Dir: f.ready.StateDir}.Run()).Status(ctx)
	if err != nil {
		return Costs{}, err
	}
	processes := map[string]int{"this program": os.Getpid()}
	for _, p := range status {
		if p.PID != 0 {
			processes[p.Name] = p.PID
		}
	}
	return CostsOf(ctx, processes, s.servers)
}
