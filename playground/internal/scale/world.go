package scale

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/playground/internal/bench"
)

var (
	policies  = v1alpha1.GroupVersion.WithResource("accesscontrolpolicies")
	resources = v1alpha1.GroupVersion.WithResource("protectedresources")
	workloads = v1alpha1.GroupVersion.WithResource("externalworkloads")
)

const (
	className     = "redis"
	resourceOwner = "trnv1:rsc:trip-com:redis:clusters:scale-"
	subjectPrefix = "trnv1:rsc:trip-com:iam:sa:app/"
	// applications is the number of clients.
	applications = 10_000
	// workloadSubjects is the number of clients that external workloads act as.
	workloadSubjects = 5_000
	// maxWorkloads is the number of addresses in 10.0.0.0/8.
	maxWorkloads = 1 << 24
)

// clientName returns the name of a client, by its number.
func clientName(n int) string { return fmt.Sprint(100_000 + n%applications) }

// world is what the host has: resources with grants.
type world struct {
	// grants is the number of grants of each resource.
	grants int
}

func resourceName(i int) string { return fmt.Sprintf("scale-%d", i) }

// objectOf returns the name of a resource's policy in the members.
func objectOf(i int) string {
	return v1alpha1.ObjectPrefix + policy.UnitID(fmt.Sprint(resourceOwner, i))
}

// app returns a client of a resource. The clients of a resource differ from each other.
func (w world) app(i, grant int) string { return clientName(i*w.grants + grant) }

// statements returns the statements of a resource's policy without the first ones.
func (w world) statements(i, without int) []any {
	out := []any{}
	for g := without; g < w.grants; g++ {
		out = append(out, map[string]any{"sid": fmt.Sprint("g", g), "effect": "Allow", "subjects": []any{subjectPrefix + w.app(i, g)},
			"actions": []any{"redis:connect"}, "resources": []any{fmt.Sprint(resourceOwner, i)}})
	}
	return out
}

// hostObject returns an object of ACP for the host.
func hostObject(kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind,
		"metadata": map[string]any{"name": name}, "spec": spec}}
}

// external creates the external workloads, each with an address of its own.
func (r *run) external(ctx context.Context) error {
	if r.Workloads == 0 {
		return nil
	}
	r.say("%d external workloads …", r.Workloads)
	return bench.ForEachConcurrently(r.Workloads, func(n int) error {
		address := fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&0xff, n&0xff)
		workload := hostObject("ExternalWorkload", fmt.Sprint("scale-", n),
			map[string]any{"subject": subjectPrefix + clientName(n%workloadSubjects), "addresses": []any{address}})
		if _, err := r.host.Resource(workloads).Create(ctx, workload, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create external workload %d: %w", n, err)
		}
		return nil
	})
}

// create creates enforced resources, from the first to before the last one, with their policies.
func (w world) create(ctx context.Context, e *environment, first, last int) error {
	return bench.ForEachConcurrently(last-first, func(n int) error {
		i := first + n
		rule := hostObject("AccessControlPolicy", resourceName(i), map[string]any{"statements": w.statements(i, 0)})
		if _, err := e.host.Resource(policies).Create(ctx, rule, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create policy %d: %w", i, err)
		}
		resource := hostObject("ProtectedResource", resourceName(i), map[string]any{"resource": fmt.Sprint(resourceOwner, i), "mode": "Enforce"})
		if _, err := e.host.Resource(resources).Create(ctx, resource, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create resource %d: %w", i, err)
		}
		return nil
	})
}

// grant revokes the first grant of a resource, or restores it.
func (w world) grant(ctx context.Context, e *environment, i int, granted bool) error {
	without := 1
	if granted {
		without = 0
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"statements": w.statements(i, without)}})
	if err != nil {
		return err
	}
	if _, err := e.host.Resource(policies).Patch(ctx, resourceName(i), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("change policy %d: %w", i, err)
	}
	return nil
}
