package manifest

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/api/v1alpha1"
)

// plurals of the kinds that decide, as an API server lists them.
var plurals = []string{"accesscontrolpolicies", "resourceclasses", "subjectclasses", "protectedresources", "externalworkloads", "approvalpolicies"}

// page is how many objects one answer of the API server holds.
const page = 500

// FromCluster reads everything from a host cluster. An API server judged the objects when they were written, so there
// are no issues. Members are read from every namespace where that is allowed; without KubeFed there are none but those that the
// adapter reports.
func FromCluster(ctx context.Context, client dynamic.Interface) (*Set, error) {
	set := newSet()
	for _, plural := range plurals {
		err := list(ctx, client, v1alpha1.GroupVersion.WithResource(plural), set)
		switch {
		case apierrors.IsNotFound(err):
			return nil, fmt.Errorf("the cluster has no %s.%s: apply deploy/crds there, or name files with -f", plural, v1alpha1.GroupVersion.Group)
		case apierrors.IsForbidden(err):
			return nil, fmt.Errorf("the cluster forbids to list %s: ask for read access to them, or name files with -f: %w", plural, err)
		case err != nil:
			return nil, fmt.Errorf("list the cluster's %s: %w", plural, err)
		}
	}
	// Without what the adapter reports of the members, and without their registrations, the defaults count.
	if err := list(ctx, client, v1alpha1.GroupVersion.WithResource("memberclusters"), set); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("list what is reported of the members: %w", err)
	}
	members := schema.GroupVersionResource{Group: kubefedGroup, Version: "v1beta1", Resource: "kubefedclusters"}
	if err := list(ctx, client, members, set); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("list the member clusters: %w", err)
	}
	return set, nil
}

func list(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, set *Set) error {
	for next := ""; ; {
		found, err := client.Resource(resource).List(ctx, metav1.ListOptions{Limit: page, Continue: next})
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
