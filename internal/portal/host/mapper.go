package host

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/hostcluster"
)

// staticMapper maps ACP's kinds without discovery, so that the portal starts while the API server is not available.
func staticMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	gv := v1alpha1.GroupVersion
	for _, k := range hostcluster.AllKinds() {
		m.AddSpecific(gv.WithKind(k.Name), gv.WithResource(k.Plural), gv.WithResource(k.Plural), meta.RESTScopeRoot)
	}
	return m
}
