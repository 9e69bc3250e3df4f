package manifest

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/api/v1alpha1"
)

// plurals are the resources of the kinds that decide, in the API server's notation.
var plurals = []string{"accesscontrolpolicies", "resourceclasses", "subjectclasses", "protectedresources", "externalworkloads", "approvalpolicies"}

// pageSize is the number of objects in one response of the API server.
const pageSize = 500

// ErrNoKinds means that a cluster is not a host of ACP.
var ErrNoKinds = errors.New("the cluster has none of ACP's kinds")

// FromCluster reads all objects from a host cluster. There are no issues, because the API server validated the objects
// when they were written. Members are read from all namespaces if that is permitted; without KubeFed there are none.
func FromCluster(ctx context.Context, client dynamic.Interface) (*Set, error) {
	set := newSet()
	for i, plural := range plurals {
		err := list(ctx, client, v1alpha1.GroupVersion.WithResource(plural), set)
		switch {
		case apierrors.IsNotFound(err) && i == 0:
			return nil, fmt.Errorf("%w: apply deploy/crds there, or name files with -f", ErrNoKinds)
		case apierrors.IsNotFound(err):
			return nil, fmt.Errorf("the cluster has no %s.%s: apply deploy/crds there, or name files with -f", plural, v1alpha1.GroupVersion.Group)
		case apierrors.IsForbidden(err):
			return nil, fmt.Errorf("the cluster forbids to list %s: ask for read access to them, or name files with -f: %w", plural, err)
		case err != nil:
			return nil, fmt.Errorf("list the cluster's %s: %w", plural, err)
		}
	}
	// Without organizations no bounds are checked. Without what the adapter reports of the members, and without their registrations, the
	// defaults count.
	for plural, what := range map[string]string{"organizations": "the organizations", "memberclusters": "what is reported of the members"} {
		err := list(ctx, client, v1alpha1.GroupVersion.WithResource(plural), set)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("list %s: %w", what, err)
		}
	}
	members := schema.GroupVersionResource{Group: kubefedGroup, Version: "v1beta1", Resource: "kubefedclusters"}
	if err := list(ctx, client, members, set); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("list the member clusters: %w", err)
	}
	return set, nil
}

func list(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, set *Set) error {
	for next := ""; ; {
		found, err := client.Resource(resource).List(ctx, metav1.ListOptions{Limit: pageSize, Continue: next})
		if err != nil {
			return err
		}
		for i := range found.Items {
			set.add(&found.Items[i], Position{File: "cluster"})
		}
		if next = found.GetContinue(); next == "" {
			return nil
		}
	}
}
