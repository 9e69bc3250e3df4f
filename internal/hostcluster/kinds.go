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
	// Name is the kind, for example ResourceClass. Plural is its resource, which also names the file of the CRD.
	Name, Plural string
	// Object is an empty object of the kind. It must not be modified.
	Object client.Object
}

// Kinds returns the kinds that decide about access. ApprovalPolicy is not among them, because it decides about tickets.
func Kinds() []Kind {
	return []Kind{
		{"AccessControlPolicy", "accesscontrolpolicies", &v1alpha1.AccessControlPolicy{}},
		{"ProtectedResource", "protectedresources", &v1alpha1.ProtectedResource{}},
		{"ResourceClass", "resourceclasses", &v1alpha1.ResourceClass{}},
		{"SubjectClass", "subjectclasses", &v1alpha1.SubjectClass{}},
		{"ExternalWorkload", "externalworkloads", &v1alpha1.ExternalWorkload{}},
	}
}

// DecisionKinds returns the Kinds and MemberCluster, which placements select: the kinds that Input lists.
func DecisionKinds() []Kind {
	return append(Kinds(), Kind{"MemberCluster", "memberclusters", &v1alpha1.MemberCluster{}})
}

// KindsWithApprovals returns the kinds that people write, directly or by tickets, and that a backup therefore contains: the Kinds,
// ApprovalPolicy, and Organization. MemberCluster is not among them, because the adapter writes it.
func KindsWithApprovals() []Kind {
	return append(Kinds(), Kind{"ApprovalPolicy", "approvalpolicies", &v1alpha1.ApprovalPolicy{}},
		Kind{"Organization", "organizations", &v1alpha1.Organization{}})
}

// AllKinds returns the KindsWithApprovals and MemberCluster.
func AllKinds() []Kind {
	return append(KindsWithApprovals(), Kind{"MemberCluster", "memberclusters", &v1alpha1.MemberCluster{}})
}

// Unserved returns those of the kinds that the host cluster does not serve. Programs check this before they start
// watches, because informers wait silently for a missing kind. It returns an error if the API server cannot be reached
// now.
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
