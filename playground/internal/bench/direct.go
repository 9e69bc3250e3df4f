package bench

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	playgroundfleet "github.com/acp-io/acp/playground/internal/fleet"
)

var (
	secrets  = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	clusters = schema.GroupVersionResource{Group: "core.kubefed.io", Version: "v1beta1", Resource: "kubefedclusters"}
)

// directFirst is the number of the first resource of this part, which no other part uses.
const directFirst = 1_000_000

// direct moves the members to the direct engine, and measures its propagation of many and of single changes.
func direct(ctx context.Context, o Options, f *fleet, out, progress io.Writer) error {
	if err := f.control(ctx, "stop", "portal", "flow-collector"); err != nil {
		return err
	}
	s, err := enter(ctx, f)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.useDirectEngine(ctx, f); err != nil {
		return err
	}
	if err := s.awaitRetreat(ctx); err != nil {
		return err
	}
	if err := f.control(ctx, "stop", "kubefed"); err != nil {
		return err
	}
	if err := s.protect(ctx, directFirst, 1); err != nil { // an adapter that has reconciled nothing never counts as quiet
		return err
	}
	if _, _, err := f.quiet(ctx, time.Now()); err != nil {
		return err
	}
	fmt.Fprintf(progress, "%d enforced resources with a grant each, by the direct engine …\n", o.Units)
	before, err := f.adapterActivity(ctx)
	if err != nil {
		return err
	}
	of := func(i int) string { return objectOf(directFirst + 1 + i) }
	var ours, bare float64
	if err := s.costing(ctx, f, out, "push_bulk", o.Units, func() error {
		ours, err = s.rate(ctx, o.Units, of, func() error { return s.protect(ctx, directFirst+1, o.Units) })
		return err
	}); err != nil {
		return err
	}
	fmt.Fprintf(progress, "the same objects in a bare loop of server-side applies …\n")
	if err := s.costing(ctx, f, out, "the bare loop", o.Units, func() error {
		bare, err = s.bare(ctx, o.Units, of)
		return err
	}); err != nil {
		return err
	}
	fmt.Fprintf(progress, "  direct engine: %.0f per second; bare loop: %.0f per second\n", ours, bare)
	fmt.Fprintf(out, "bench push_bulk_vs_bare %.2f x\n", ours/bare)

	if _, _, err := f.quiet(ctx, time.Now()); err != nil {
		return err
	}
	after, err := f.adapterActivity(ctx)
	if err != nil {
		return err
	}
	// Otherwise the dataplanes would still write their statuses, and the adapter would compare its own policies with them as those of others.
	if err := s.removeBare(ctx); err != nil {
		return err
	}
	fmt.Fprintln(progress, "changes one after the other …")
	if _, _, err := f.quiet(ctx, time.Now()); err != nil {
		return err
	}
	fmt.Fprintf(out, "bench push_direct_writes %.1f per_unit\n", (after.writes-before.writes)/float64(o.Units))
	var times []time.Duration
	recorded, err := s.followRecord(ctx, objectOf(directFirst))
	if err != nil {
		return err
	}
	s.changes = nil
	if err := s.costing(ctx, f, out, "push_direct", o.Pushes, func() error {
		times, err = s.oneByOne(ctx, directFirst, o.Pushes)
		return err
	}); err != nil {
		return err
	}
	fmt.Fprintf(out, "bench push_direct_p50 %.0f ms\n", Millis(Quantile(times, 0.50)))
	fmt.Fprintf(out, "bench push_direct_p99 %.0f ms\n", Millis(Quantile(times, 0.99)))
	return printStages(out, s.changes, recorded())
}

// costing does something for n objects, and prints what it cost.
func (s *scene) costing(ctx context.Context, f *fleet, out io.Writer, what string, n int, do func() error) error {
	before, err := s.costs(ctx, f)
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	after, err := s.costs(ctx, f)
	if err != nil {
		return err
	}
	after.Print(out, what, before, n)
	return nil
}

// useDirectEngine registers the members with the direct engine, which writes with the account of their administrator.
func (s *scene) useDirectEngine(ctx context.Context, f *fleet) error {
	for _, m := range playgroundfleet.Members() {
		config, err := clientcmd.BuildConfigFromFlags("", f.ready.Kubeconfigs[m])
		if err != nil {
			return fmt.Errorf("read the kubeconfig of %s: %w", m, err)
		}
		name := "acp-direct-" + m
		_, err = s.host.Resource(secrets).Namespace(playgroundfleet.ACPNamespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name},
			"data": map[string]any{"token": base64.StdEncoding.EncodeToString([]byte(config.BearerToken))}}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create Secret %s: %w", name, err)
		}
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"acp.io/engine":"direct"}},"spec":{"secretRef":{"name":%q}}}`, name)
		_, err = s.host.Resource(clusters).Namespace(playgroundfleet.KubeFedNamespace).Patch(ctx, m, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("change the engine of %s: %w", m, err)
		}
	}
	return nil
}

// retreatLimit bounds how long KubeFed may take to give the members up, which it checks every ten seconds.
const retreatLimit = 2 * time.Minute

// awaitRetreat waits until KubeFed has no client of the members any more. Until then the direct engine reads each object before it writes it.
func (s *scene) awaitRetreat(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, retreatLimit)
	defer cancel()
	for _, m := range playgroundfleet.Members() {
		for {
			u, err := s.host.Resource(clusters).Namespace(playgroundfleet.KubeFedNamespace).Get(limited, m, metav1.GetOptions{})
			if err != nil {
				return fmt.Errorf("read the registration of %s: %w", m, err)
			}
			if !readyForKubeFed(u) {
				break
			}
			select {
			case <-time.After(time.Second):
			case <-limited.Done():
				return fmt.Errorf("KubeFed still finds %s ready: %w", m, limited.Err())
			}
		}
	}
	return nil
}

// readyForKubeFed reports whether KubeFed finds a registered member ready.
func readyForKubeFed(registration *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(registration.Object, "status", "conditions") // without a status it is not ready
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Ready" && condition["status"] == "True"
	})
}

// bareLabel is the label of the objects of the bare loop.
const bareLabel = "bench-bare"

// removeBare deletes the objects of the bare loop.
func (s *scene) removeBare(ctx context.Context) error {
	for _, member := range playgroundfleet.Members() {
		err := s.members[member].Resource(inMembers).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: bareLabel})
		if err != nil {
			return fmt.Errorf("delete the objects of the bare loop in %s: %w", member, err)
		}
	}
	return nil
}

// bare applies copies of n objects to all members, with as many requests at a time as the direct engine makes, and returns how many
// of them all members got per second.
func (s *scene) bare(ctx context.Context, n int, of func(i int) string) (float64, error) {
	bodies, names := make([][]byte, n), make([]string, n)
	first := s.members[playgroundfleet.Members()[0]].Resource(inMembers)
	err := ForEachConcurrently(n, func(i int) error {
		u, err := first.Get(ctx, of(i), metav1.GetOptions{})
		if err != nil {
			return err
		}
		names[i] = fmt.Sprint("bench-bare-", i)
		bodies[i], err = json.Marshal(map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(),
			"metadata": map[string]any{"name": names[i], "labels": map[string]any{bareLabel: "true", "unit": fmt.Sprint(i), "revision": "0123456789abcdef"}},
			"spec":     u.Object["spec"]})
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the objects of a member: %w", err)
	}
	began := time.Now()
	errs := make([]error, len(playgroundfleet.Members()))
	var running sync.WaitGroup
	for m, member := range playgroundfleet.Members() {
		target := s.members[member].Resource(inMembers)
		running.Go(func() {
			force := true
			errs[m] = ForEachConcurrently(n, func(i int) error {
				_, err := target.Patch(ctx, names[i], types.ApplyPatchType, bodies[i], metav1.PatchOptions{FieldManager: "acp-bench", Force: &force})
				return err
			})
		})
	}
	running.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, fmt.Errorf("apply an object to a member: %w", err)
		}
	}
	return float64(n) / time.Since(began).Seconds(), nil
}
