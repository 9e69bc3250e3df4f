package host

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/acp-io/acp/api/v1alpha1"
)

// staticMapper knows ACP's kinds, so that starting needs no discovery and an API server that is away stops nothing.
func staticMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	for kind, plural := range map[string]string{
		"AccessControlPolicy": "accesscontrolpolicies", "ProtectedResource": "protectedresources", "ResourceClass": "resourceclasses",
		"SubjectClass": "subjectclasses", "ExternalWorkload": "externalworkloads",
	} {
		gv := v1alpha1.GroupVersion
		m.AddSpecific(gv.WithKind(kind), gv.WithResource(plural), gv.WithResource(plural), meta.RESTScopeRoot)
	}
	return m
}
