package preflight

import (
	"cmp"
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/objectkind"
	"github.com/acp-io/acp/internal/message"
)

// MeshConfig describes whether every istiod of a member applies the policies of the namespace to which ACP distributes them, by the mesh
// configurations.
type MeshConfig struct {
	// Ignored is the reason why at least one istiod does not apply them to the whole mesh, or zero.
	Ignored message.Message
	// Unread is the reason why this is not known of every istiod, or zero.
	Unread message.Message
}

// meshConfigMap is the name of the ConfigMap with the mesh configuration of the istiod without a revision, in the namespace of this istiod. That of a
// revision has the name of the revision as a suffix. Source: getMeshConfigMapName in pilot/pkg/bootstrap/mesh.go.
const meshConfigMap = "istio"

// meshConfigKey is the key of the ConfigMap.
const meshConfigKey = "mesh"

// defaultRevision is the value of the label of the revision for an istiod without one.
const defaultRevision = "default"

// readMeshConfig reads the mesh configurations of all istiods of a member. A member that declares another root namespace gets no policy that could
// have an effect, so nothing is read there.
func readMeshConfig(ctx context.Context, c kubernetes.Interface, at federation.Locations) MeshConfig {
	if at.NonDefaultIstioRoot() != "" {
		return MeshConfig{}
	}
	names, why := namedMeshConfigs(ctx, c, at.IstioRootDeclared)
	if !why.IsZero() {
		return MeshConfig{Unread: why}
	}
	own := types.NamespacedName{Namespace: at.IstioRoot, Name: meshConfigMap}
	// That of an istiod that no webhook calls, for example because nothing is injected, is read in addition.
	additional := len(names) > 0 && !slices.Contains(names, own)
	if additional || len(names) == 0 {
		names = append(names, own)
	}
	var out MeshConfig
	for _, name := range names {
		what := "ConfigMap " + name.String()
		found, err := c.CoreV1().ConfigMaps(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) && (at.IstioRootDeclared || additional && name == own):
			continue
		case err != nil:
			out.Unread = firstOf(out.Unread, unread(err, what))
			continue
		}
		var config meshSettings
		if err := yaml.Unmarshal([]byte(found.Data[meshConfigKey]), &config); err != nil || found.Data[meshConfigKey] == "" {
			out.Unread = firstOf(out.Unread, message.PreflightMeshConfigInvalid(what))
			continue
		}
		ignored, unknown := config.ignores(ctx, c, what, at.IstioRoot)
		out.Ignored, out.Unread = firstOf(out.Ignored, ignored), firstOf(out.Unread, unknown)
	}
	return out
}

// namedMeshConfigs returns the names of the ConfigMaps of the istiods that the webhooks for the injection call, sorted. The webhooks of revision tags
// name the same istiods. why is the reason why they are not known: an istiod outside the cluster has its configuration there. Then, the root namespace
// has to be declared.
func namedMeshConfigs(ctx context.Context, c kubernetes.Interface, declared bool) (names []types.NamespacedName, why message.Message) {
	webhooks, err := c.AdmissionregistrationV1().MutatingWebhookConfigurations().
		List(ctx, metav1.ListOptions{LabelSelector: revisionLabel, ResourceVersion: "0"})
	if err != nil {
		return nil, unread(err, "MutatingWebhookConfigurations")
	}
	for i := range webhooks.Items {
		w := &webhooks.Items[i]
		for j := range w.Webhooks {
			service := w.Webhooks[j].ClientConfig.Service
			switch {
			case service != nil:
				names = append(names, types.NamespacedName{Namespace: service.Namespace, Name: meshConfigMapOf(w.Labels[revisionLabel])})
			case !declared:
				return nil, message.PreflightIstiodElsewhere(w.Name)
			}
		}
	}
	slices.SortFunc(names, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(names), message.Message{}
}

// meshConfigMapOf returns the name of the ConfigMap with the mesh configuration of a revision.
func meshConfigMapOf(revision string) string {
	if revision == defaultRevision {
		return meshConfigMap
	}
	return meshConfigMap + "-" + revision
}

// meshSettings are the settings of a mesh configuration that decide which policies apply to the whole mesh. Source: istio.io/api/mesh/v1alpha1.
type meshSettings struct {
	RootNamespace      string                 `json:"rootNamespace"`
	DiscoverySelectors []metav1.LabelSelector `json:"discoverySelectors"`
}

// ignores returns the reason why an istiod does not apply the policies of a namespace to the whole mesh: another namespace is its root, or its
// discovery selectors do not select the namespace, for which Istio makes no exception for the root (pkg/kube/namespace/filter.go). unknown is the reason
// why this is not known.
func (s *meshSettings) ignores(ctx context.Context, c kubernetes.Interface, config, namespace string) (ignored, unknown message.Message) {
	if root := cmp.Or(s.RootNamespace, objectkind.IstioRoot); root != namespace {
		return message.PreflightMeshRoot(config, root, namespace), message.Message{}
	}
	if len(s.DiscoverySelectors) == 0 {
		return message.Message{}, message.Message{}
	}
	list, err := c.CoreV1().Namespaces().List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + namespace})
	switch {
	case err != nil:
		return message.Message{}, unread(err, "namespaces")
	case len(list.Items) != 1:
		return message.Message{}, message.PreflightNotFound("Namespace " + namespace)
	}
	for i := range s.DiscoverySelectors {
		selector, err := metav1.LabelSelectorAsSelector(&s.DiscoverySelectors[i])
		if err != nil {
			return message.Message{}, message.PreflightMeshConfigInvalid(config)
		}
		if selector.Matches(labels.Set(list.Items[0].Labels)) {
			return message.Message{}, message.Message{}
		}
	}
	return message.PreflightMeshNotDiscovered(config, namespace), message.Message{}
}

// firstOf returns the first message that is not zero.
func firstOf(a, b message.Message) message.Message {
	if a.IsZero() {
		return b
	}
	return a
}

// meshConfigFindings reports a member whose Istio is to enforce, and whose istiods do not apply ACP's policies, or where this is not known, if there
// is a class of Istio's.
func meshConfigFindings(f Facts, n Needs) []Finding {
	if !f.Istio.Enforces() || len(IstioLabels(n.Keys)) == 0 {
		return nil
	}
	switch config := f.Istio.Config; {
	case !config.Ignored.IsZero():
		return []Finding{{Severity: Fails, Code: PoliciesNotInMesh, Message: message.PreflightPoliciesNotInMesh(config.Ignored),
			Remedy: message.RemedyMeshRoot(objectkind.IstioRoot, federation.AnnotationIstioRoot)}}
	case !config.Unread.IsZero():
		return []Finding{{Severity: Warns, Code: MeshConfigUnread, Message: message.PreflightMeshConfigUnread(config.Unread),
			Remedy: message.RemedyMeshConfigUnread(objectkind.IstioRoot, federation.AnnotationIstioRoot+"="+objectkind.IstioRoot)}}
	}
	return nil
}
