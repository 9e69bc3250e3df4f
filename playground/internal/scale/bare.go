package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/playground/internal/memberapi"
)

// bulk measures a bare loop of server-side applies of the same objects to as many members as empty as the adapter's were, with as many
// requests at a time, and compares the adapter with it.
func (r *run) bulk(ctx context.Context) error {
	if err := r.supervisor.Stop(adapterProcess); err != nil {
		return err
	}
	first, last := r.Resources/2, r.Resources
	r.say("the same objects in a bare loop …")
	bodies := map[string][]byte{}
	for i := first; i < last; i++ {
		body, err := applied(r.members.All()[0].Get(memberapi.Policies, objectOf(i)))
		if err != nil {
			return err
		}
		bodies[objectOf(i)] = body
	}
	config := r.config
	bare := &writes{}
	config.Changed = bare.record
	members, err := memberapi.Start(config, r.Members)
	if err != nil {
		return err
	}
	defer members.Stop()
	before, err := r.costs(ctx)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	var failed atomic.Pointer[error]
	for _, m := range members.All() {
		client, err := r.client(m)
		if err != nil {
			return err
		}
		target := client.Resource(memberapi.Policies.GroupVersionResource)
		var next atomic.Int64
		next.Store(int64(first))
		for range perMember {
			running.Go(func() {
				force := true
				for failed.Load() == nil {
					i := int(next.Add(1)) - 1
					if i >= last {
						return
					}
					_, err := target.Patch(ctx, objectOf(i), types.ApplyPatchType, bodies[objectOf(i)],
						metav1.PatchOptions{FieldManager: fieldManager, Force: &force})
					if err != nil {
						failed.CompareAndSwap(nil, &err)
					}
				}
			})
		}
	}
	running.Wait()
	if err := failed.Load(); err != nil {
		return fmt.Errorf("apply an object: %w", *err)
	}
	after, err := r.costs(ctx)
	if err != nil {
		return err
	}
	after.Print(r.out, "the bare loop", before, (last-first)*r.Members)
	rate := float64((last-first)*r.Members) / bare.span().Seconds()
	r.say("  %.1f s, %.0f per second", bare.span().Seconds(), rate)
	r.figure("bare_per_s", rate, "per_s")
	r.figure("bulk_vs_bare", r.bulkRate/rate, "x")
	return nil
}

// applied returns the configuration that was applied to an object that nobody else changed.
func applied(object []byte) ([]byte, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(object); err != nil {
		return nil, fmt.Errorf("read an object of a member: %w", err)
	}
	return json.Marshal(map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(),
		"metadata": map[string]any{"name": u.GetName(), "labels": u.GetLabels()}, "spec": u.Object["spec"]})
}
