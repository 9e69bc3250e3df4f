package preflight

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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
	// Down is the reason why no change of the policies reaches the proxies of at least one istiod, because none of its pods is available, or zero.
	Down message.Message
	// Old is the reason why policies may have another meaning for at least one istiod, whose version is not supported, or zero.
	Old message.Message
}

// meshConfigKey is the key of a ConfigMap with a mesh configuration.
const meshConfigKey = "mesh"

// readMeshConfig reads the mesh configurations of all istiods of a member. A member that declares another root namespace gets no policy that could
// have an effect, so nothing is read there.
func readMeshConfig(ctx context.Context, c kubernetes.Interface, at federation.Locations) MeshConfig {
	if at.NonDefaultIstioRoot() != "" {
		return MeshConfig{}
	}
	all, why := istiodsOf(ctx, c, at.IstioRootDeclared)
	if !why.IsZero() {
		return MeshConfig{Unread: why}
	}
	own := istiodOf(at.IstioRoot, defaultRevision)
	// That of an istiod that no webhook calls, for example because nothing is injected, is read in addition.
	additional := len(all) > 0 && !slices.Contains(all, own)
	if additional || len(all) == 0 {
		all = append(all, own)
	}
	var out MeshConfig
	for _, i := range all {
		one := i.read(ctx, c, at.IstioRoot, at.IstioRootDeclared, additional && i == own)
		out.Ignored, out.Unread = firstOf(out.Ignored, one.Ignored), firstOf(out.Unread, one.Unread)
		out.Down, out.Old = firstOf(out.Down, one.Down), firstOf(out.Old, one.Old)
	}
	return out
}

// istiodsOf returns the istiods that the webhooks for the injection call, sorted. The webhooks of revision tags name the same istiods. why is the
// reason why they are not known: an istiod outside the cluster has its configuration there. Then, the root namespace has to be declared.
func istiodsOf(ctx context.Context, c kubernetes.Interface, declared bool) (all []istiodName, why message.Message) {
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
				all = append(all, istiodOf(service.Namespace, w.Labels[revisionLabel]))
			case !declared:
				return nil, message.PreflightIstiodElsewhere(w.Name)
			}
		}
	}
	slices.SortFunc(all, func(a, b istiodName) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.revision, b.revision))
	})
	return slices.Compact(all), message.Message{}
}

// read reads whether an istiod runs, and applies the policies of the root namespace of the member to the whole mesh. If declared is set, the declaration
// of the member counts in place of what the cluster does not contain. If optional is set, there may be no such istiod.
func (i istiodName) read(ctx context.Context, c kubernetes.Interface, root string, declared, optional bool) MeshConfig {
	sources, out := i.sources(ctx, c, declared, optional)
	settings, read := defaultMeshSettings(), false
	for _, name := range sources {
		what := "ConfigMap " + i.namespace + "/" + name
		found, err := c.CoreV1().ConfigMaps(i.namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) && (declared || optional):
			continue
		case err != nil:
			out.Unread = firstOf(out.Unread, unread(err, what))
		case !settings.override(found.Data[meshConfigKey], what):
			out.Unread = firstOf(out.Unread, message.PreflightMeshConfigInvalid(what))
		default:
			read = true
			continue
		}
		// This source was not read, and may override the settings of the earlier ones, so that they are not used.
		settings, read = defaultMeshSettings(), false
	}
	if read {
		ignored, unknown := settings.ignores(ctx, c, root)
		out.Ignored, out.Unread = ignored, firstOf(out.Unread, unknown)
	}
	return out
}

// meshSettings are the settings of a mesh configuration that decide which policies apply to the whole mesh. Source: istio.io/api/mesh/v1alpha1.
type meshSettings struct {
	rootNamespace      string
	discoverySelectors []metav1.LabelSelector
	// rootFrom and selectorsFrom are the objects that contain the settings.
	rootFrom, selectorsFrom string
}

// defaultMeshSettings returns the settings of an istiod without a configuration. Source: DefaultMeshConfig in pkg/config/mesh/mesh.go.
func defaultMeshSettings() meshSettings { return meshSettings{rootNamespace: objectkind.IstioRoot} }

// override applies a mesh configuration in YAML, which an object contains, to the settings, and reports whether it is valid. Each field that is
// present replaces the one of earlier sources; null counts as absent, and an empty value does not. Source: ApplyMeshConfig in
// pkg/config/mesh/mesh.go, and jsonpb, which also accepts the names of the fields in the definition of the message.
func (s *meshSettings) override(config, object string) bool {
	var fields map[string]json.RawMessage
	if err := yaml.Unmarshal([]byte(config), &fields); err != nil || config == "" {
		return false
	}
	field := func(name, original string) json.RawMessage {
		if value, present := fields[name]; present {
			return value
		}
		return fields[original]
	}
	present := func(value json.RawMessage) bool { return len(value) > 0 && string(value) != "null" }
	if root := field("rootNamespace", "root_namespace"); present(root) {
		if json.Unmarshal(root, &s.rootNamespace) != nil {
			return false
		}
		s.rootFrom = object
	}
	if selectors := field("discoverySelectors", "discovery_selectors"); present(selectors) {
		s.discoverySelectors = nil // Otherwise the elements would keep fields of earlier ones.
		if json.Unmarshal(selectors, &s.discoverySelectors) != nil {
			return false
		}
		s.selectorsFrom = object
	}
	return true
}

// ignores returns the reason why an istiod with these settings does not apply the policies of a namespace to the whole mesh: another namespace is its
// root, or its discovery selectors do not select the namespace, for which Istio makes no exception for the root (pkg/kube/namespace/filter.go). unknown is
// the reason why this is not known.
func (s *meshSettings) ignores(ctx context.Context, c kubernetes.Interface, namespace string) (ignored, unknown message.Message) {
	if s.rootNamespace != namespace {
		return message.PreflightMeshRoot(s.rootFrom, cmp.Or(s.rootNamespace, `""`), namespace), message.Message{}
	}
	if len(s.discoverySelectors) == 0 {
		return message.Message{}, message.Message{}
	}
	list, err := c.CoreV1().Namespaces().List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + namespace})
	switch {
	case err != nil:
		return message.Message{}, unread(err, "namespaces")
	case len(list.Items) != 1:
		return message.Message{}, message.PreflightNotFound("Namespace " + namespace)
	}
	for i := range s.discoverySelectors {
		selector, err := metav1.LabelSelectorAsSelector(&s.discoverySelectors[i])
		if err != nil {
			return message.Message{}, message.PreflightMeshConfigInvalid(s.selectorsFrom)
		}
		if selector.Matches(labels.Set(list.Items[0].Labels)) {
			return message.Message{}, message.Message{}
		}
	}
	return message.PreflightMeshNotDiscovered(s.selectorsFrom, namespace), message.Message{}
}

// firstOf returns the first message that is not zero.
func firstOf(a, b message.Message) message.Message {
	if a.IsZero() {
		return b
	}
	return a
}

// meshConfigFindings reports a member whose Istio is to enforce, and whose istiods do not run, or do not apply ACP's policies, or where this is not known,
// if there is a class of Istio's.
func meshConfigFindings(f Facts, n Needs) []Finding {
	if !f.Istio.Enforces() || len(IstioLabels(n.Keys)) == 0 {
		return nil
	}
	var out []Finding
	config := f.Istio.Config
	if !config.Down.IsZero() {
		out = append(out, Finding{Severity: Warns, Code: IstiodNotAvailable, Message: config.Down, Remedy: message.RemedyMendIstiod()})
	}
	if !config.Old.IsZero() && !old(f.Istio.Version, oldestIstio) { // otherwise it is reported in any case
		out = append(out, Finding{Severity: Warns, Code: IstioUnsupported, Message: config.Old, Remedy: message.RemedyUpgradeIstio()})
	}
	switch {
	case !config.Ignored.IsZero():
		out = append(out, Finding{Severity: Fails, Code: PoliciesNotInMesh, Message: message.PreflightPoliciesNotInMesh(config.Ignored),
			Remedy: message.RemedyMeshRoot(objectkind.IstioRoot, federation.AnnotationIstioRoot)})
	case !config.Unread.IsZero():
		out = append(out, Finding{Severity: Warns, Code: MeshConfigUnread, Message: message.PreflightMeshConfigUnread(config.Unread),
			Remedy: message.RemedyMeshConfigUnread(objectkind.IstioRoot, federation.AnnotationIstioRoot+"="+objectkind.IstioRoot)})
	}
	return out
}
