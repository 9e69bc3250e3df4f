package membership

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/deploy/istio"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/objectkind"
)

// Needed returns the kinds that are pushed to every member now: the optional ones only if the host distributes them.
func (h *Host) Needed(ctx context.Context) ([]federation.Kind, error) {
	var out []federation.Kind
	for _, k := range objectkind.Registered() {
		if k.Optional {
			_, err := h.dynamic.Resource(k.FederatedResource).Namespace(k.Namespace).List(ctx, metav1.ListOptions{Limit: 1})
			switch {
			case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
				continue
			case err != nil:
				return nil, fmt.Errorf("find out whether the host carries %s: %w", k.FederatedResource.Resource, err)
			}
		}
		out = append(out, k.Kind)
	}
	return out, nil
}

// istioRoles returns the root namespace and the roles of a member that uses some engines.
func istioRoles(engines ...federation.Engine) ([]*unstructured.Unstructured, error) {
	out, err := documents("roles.yaml", istio.Roles)
	if err != nil {
		return nil, err
	}
	own, err := rolesOf(engines, func(r engineRoles) []byte { return r.istio })
	return append(out, own...), err
}

// applyIstio creates what a member needs so that Istio's policies can be distributed to it: with the engine KubeFed, which reads the kind in every
// member, whether or not it has an Istio. An existing kind stays as Istio created it.
func applyIstio(ctx context.Context, objects dynamic.Interface, cluster string, engine federation.Engine, dry bool,
	record func(Step, error) error) error {
	definitions, err := documents("authorizationpolicies.yaml", istio.Kind)
	if err != nil {
		return err
	}
	if err := applyMissing(ctx, objects, cluster, definitions, dry, record); err != nil {
		return err
	}
	roles, err := istioRoles(engine)
	if err != nil {
		return err
	}
	for _, o := range roles {
		if err := record(applyObject(ctx, objects, cluster, o, dry)); err != nil {
			return err
		}
	}
	return nil
}
