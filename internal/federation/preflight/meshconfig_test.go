package preflight

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

// meshConfigIn returns the ConfigMap with a mesh configuration.
func meshConfigIn(namespace, name, config string) runtime.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{meshConfigKey: config}}
}

// injector returns the configuration of a webhook for the injection of a revision that calls an istiod in a namespace, or outside the cluster if the
// namespace is "".
func injector(name, revision, namespace string) runtime.Object {
	calls := admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: namespace, Name: "istiod"}}
	if namespace == "" {
		url := "https://istiod.example:15017/inject"
		calls = admissionv1.WebhookClientConfig{URL: &url}
	}
	return &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{revisionLabel: revision}},
		Webhooks:   []admissionv1.MutatingWebhook{{Name: "rev.namespace.sidecar-injector.istio.io", ClientConfig: calls}},
	}
}

// TestMeshConfig checks in which members every istiod is known to apply the policies of istio-system to the whole mesh.
func TestMeshConfig(t *testing.T) {
	const root, other = "rootNamespace: istio-system\ntrustDomain: cluster.local\n", "rootNamespace: mesh\n"
	selecting := func(label string) string {
		return root + "discoverySelectors: [{matchLabels: {mesh: \"" + label + "\"}}]\n"
	}
	elsewhere := injector("istio-sidecar-injector", "default", "")
	for name, tc := range map[string]struct {
		reason          string
		objects         []runtime.Object
		forbidden       string
		annotations     map[string]string
		ignored, unread string
	}{
		"Same":    {reason: "the usual installation", objects: []runtime.Object{meshConfigIn("istio-system", "istio", root)}},
		"Default": {reason: "Istio's own default", objects: []runtime.Object{meshConfigIn("istio-system", "istio", "trustDomain: x\n")}},
		"Other": {
			reason:  "nothing of the mesh reads istio-system",
			objects: []runtime.Object{meshConfigIn("istio-system", "istio", other)}, ignored: "root namespace mesh",
		},
		"None": {reason: "an istiod in another namespace, which nothing names", unread: "there is no ConfigMap istio-system/istio"},
		"Revision": {
			reason: "only a revision is installed",
			objects: []runtime.Object{
				injector("istio-sidecar-injector-a", "a", "istio-system"), meshConfigIn("istio-system", "istio-a", root),
			},
		},
		"Tag": {
			reason: "a tag names another revision than the webhook of the injection",
			objects: []runtime.Object{
				injector("istio-sidecar-injector-a", "a", "istio-system"), injector("istio-revision-tag-prod", "b", "istio-system"),
				meshConfigIn("istio-system", "istio-a", root), meshConfigIn("istio-system", "istio-b", other),
			},
			ignored: "istio-b names the root namespace mesh",
		},
		"RevisionBesideDefault": {
			reason: "pods of the default revision are not protected",
			objects: []runtime.Object{
				injector("istio-sidecar-injector-a", "a", "istio-system"),
				meshConfigIn("istio-system", "istio-a", root), meshConfigIn("istio-system", "istio", other),
			},
			ignored: "ConfigMap istio-system/istio names",
		},
		"RevisionUnread": {
			reason:  "the configuration of a revision is missing",
			objects: []runtime.Object{injector("istio-sidecar-injector-a", "a", "istio-system"), meshConfigIn("istio-system", "istio", root)},
			unread:  "there is no ConfigMap istio-system/istio-a",
		},
		"OtherNamespace": {
			reason:  "an istiod in another namespace, whose root is usually its own",
			objects: []runtime.Object{injector("istio-sidecar-injector-mesh", "default", "mesh"), meshConfigIn("mesh", "istio", other)},
			ignored: "ConfigMap mesh/istio names the root namespace mesh",
		},
		"OtherNamespaceSameRoot": {
			reason:  "its root may be istio-system",
			objects: []runtime.Object{injector("istio-sidecar-injector-mesh", "default", "mesh"), meshConfigIn("mesh", "istio", root)},
		},
		"OtherNamespaceLacks": {
			reason:  "the configuration of the default revision is there, but not that of the istiod that is called",
			objects: []runtime.Object{injector("istio-sidecar-injector-mesh", "default", "mesh"), meshConfigIn("istio-system", "istio", root)},
			unread:  "there is no ConfigMap mesh/istio",
		},
		"Elsewhere": {reason: "an istiod outside the cluster", objects: []runtime.Object{elsewhere}, unread: "outside the cluster"},
		"ElsewhereDeclared": {
			reason:      "the member declares its root namespace",
			objects:     []runtime.Object{elsewhere},
			annotations: map[string]string{federation.AnnotationIstioRoot: "istio-system"},
		},
		"DeclaredWrongly": {
			reason:      "a declaration does not outweigh what was read",
			objects:     []runtime.Object{meshConfigIn("istio-system", "istio", other)},
			annotations: map[string]string{federation.AnnotationIstioRoot: "istio-system"}, ignored: "root namespace mesh",
		},
		"OtherDeclared": {
			reason:      "every statement is refused there",
			objects:     []runtime.Object{meshConfigIn("istio-system", "istio", other)},
			annotations: map[string]string{federation.AnnotationIstioRoot: "mesh"},
		},
		"Selected": {reason: "the selectors include the namespace", objects: []runtime.Object{meshConfigIn("istio-system", "istio", selecting("yes"))}},
		"NotSelected": {
			reason:  "they do not",
			objects: []runtime.Object{meshConfigIn("istio-system", "istio", selecting("no"))}, ignored: "discoverySelectors",
		},
		"Invalid": {reason: "no YAML", objects: []runtime.Object{meshConfigIn("istio-system", "istio", "{")}, unread: "no valid mesh configuration"},
		"Empty":   {reason: "no key", objects: []runtime.Object{meshConfigIn("istio-system", "istio", "")}, unread: "no valid mesh configuration"},
		"ForbiddenWebhooks": {
			reason:  "revisions are unknown",
			objects: []runtime.Object{meshConfigIn("istio-system", "istio", root)}, forbidden: "mutatingwebhookconfigurations",
			unread: "MutatingWebhookConfigurations may not be read",
		},
		"ForbiddenConfig": {
			reason:  "the root is unknown, also with a declaration",
			objects: []runtime.Object{meshConfigIn("istio-system", "istio", root)}, forbidden: "configmaps",
			annotations: map[string]string{federation.AnnotationIstioRoot: "istio-system"}, unread: "may not be read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientset(tc.objects...)
			root := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "istio-system", Labels: map[string]string{"mesh": "yes"}}}
			if err := c.Tracker().Add(root); err != nil {
				t.Fatal(err)
			}
			if tc.forbidden != "" {
				c.PrependReactor("*", tc.forbidden, func(a clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: a.GetResource().Resource}, "", nil)
				})
			}
			got := readMeshConfig(t.Context(), c, federation.ParseLocations(tc.annotations))
			for what, pair := range map[string][2]string{"ignored": {got.Ignored.Text, tc.ignored}, "unread": {got.Unread.Text, tc.unread}} {
				if (pair[0] == "") != (pair[1] == "") || !strings.Contains(pair[0], pair[1]) {
					t.Errorf("%s: %s is %q, want %q in it", tc.reason, what, pair[0], pair[1])
				}
			}
		})
	}
}

// TestMeshConfigFinding checks that policies that Istio does not apply fail the preflight if there is a class of Istio's, and that unknown is reported.
func TestMeshConfigFinding(t *testing.T) {
	codes := func(declared string, config MeshConfig, keys ...Key) (out []string) {
		f, n := healthy(), needs
		f.Istio, n.Keys = Istio{Declared: declared, Config: config}, keys
		for _, found := range Assess(f, n) {
			out = append(out, string(found.Severity)+" "+found.Code)
		}
		return out
	}
	const sidecars = `{"dataplane": "sidecar", "version": "1.31.2"}`
	ignored, unknown := MeshConfig{Ignored: message.Verbatim("another root")}, MeshConfig{Unread: message.Verbatim("forbidden")}
	key := Key{Class: "redis", Label: needs.Keys[0].Label, Istio: true}
	for name, tc := range map[string]struct {
		got, want []string
	}{
		"Ignored":          {codes(sidecars, ignored, key), []string{"Fails PoliciesNotInMesh"}},
		"Unknown":          {codes(sidecars, unknown, key), []string{"Warns MeshConfigUnread"}},
		"Known":            {codes(sidecars, MeshConfig{}, key), nil},
		"NoClassOfIstio's": {codes(sidecars, ignored, needs.Keys[0]), nil},
		"NotDeclared":      {codes("", ignored, key), nil},
	} {
		if !slices.Equal(tc.got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, tc.got, tc.want)
		}
	}
	f, n := healthy(), needs
	f.Istio, n.Keys = Istio{Declared: sidecars, Config: unknown}, []Key{key}
	for _, found := range Assess(f, n) { // deploy/istio contains the right for istio-system alone
		if remedy := found.Remedy.Text; !strings.Contains(remedy, "another namespace than istio-system") || !strings.Contains(remedy, "get ConfigMaps") {
			t.Errorf("the remedy is %q", remedy)
		}
	}
}
