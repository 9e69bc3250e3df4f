package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "acp.io", Version: "v1alpha1"}

var (
	// SchemeBuilder collects the functions that register this package's kinds.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme registers every kind of this package with a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&AccessControlPolicy{}, &AccessControlPolicyList{},
		&ResourceClass{}, &ResourceClassList{},
		&SubjectClass{}, &SubjectClassList{},
		&ProtectedResource{}, &ProtectedResourceList{},
		&ExternalWorkload{}, &ExternalWorkloadList{},
		&ApprovalPolicy{}, &ApprovalPolicyList{},
		&MemberCluster{}, &MemberClusterList{},
		&AccessRequest{}, &AccessRequestList{},
		&Organization{}, &OrganizationList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
