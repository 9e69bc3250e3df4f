package hostcluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Kind is one of ACP's kinds.
type Kind struct {
	// Name is the kind, for example ResourceClass, and Plural its resource, which also names the CRD's file.
	Name, Plural string
	// Object is an empty one; nobody may change it.
	Object client.Object
}

// Kinds are those that decide about access. ApprovalPolicy is not among them: it decides about tickets.
func Kinds() []Kind {
	return []Kind{
		{"AccessControlPolicy", "accesscontrolpolicies", &v1alpha1.AccessControlPolicy{}},
		{"ProtectedResource", "protectedresources", &v1alpha1.ProtectedResource{}},
		{"ResourceClass", "resourceclasses", &v1alpha1.ResourceClass{}},
		{"SubjectClass", "subjectclasses", &v1alpha1.SubjectClass{}},
		{"ExternalWorkload", "externalworkloads", &v1alpha1.ExternalWorkload{}},
	}
}

// ForDecisions are the Kinds and MemberCluster, which says where classes are placed: what Input lists.
func ForDecisions() []Kind {
	return append(Kinds(), Kind{"MemberCluster", "memberclusters", &v1alpha1.MemberCluster{}})
}

// WithApprovals are the Kinds and ApprovalPolicy, for who judges approval policies or follows them.
func WithApprovals() []Kind {
	return append(Kinds(), Kind{"ApprovalPolicy", "approvalpolicies", &v1alpha1.ApprovalPolicy{}})
}

// WithMembers are WithApprovals and MemberCluster, for who tells how the members stand or follows them.
func WithMembers() []Kind {
	return append(WithApprovals(), Kind{"MemberCluster", "memberclusters", &v1alpha1.MemberCluster{}})
}

// Unserved returns those of the kinds that the host cluster does not serve. Programs ask before they watch, because informers
// only wait for a missing kind in silence. An error is the API server's, wrapped: it cannot be asked now.
func Unserved(ctx context.Context, config *rest.Config, kinds []Kind) ([]Kind, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client of the host cluster: %w", err)
	}
	list, err := d.ServerResourcesForGroupVersionWithContext(ctx, v1alpha1.GroupVersion.String())
	if apierrors.IsNotFound(err) {
		return kinds, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask the host cluster for its kinds: %w", err)
	}
	served := map[string]bool{}
	for _, r := range list.APIResources {
		served[r.Name] = true
	}
	var missing []Kind
	for _, k := range kinds {
		if !served[k.Plural] {
			missing = append(missing, k)
		}
	}
	return missing, nil
}
