package preflight

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
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

// istiodIn returns the Deployment of an istiod in a namespace, whose pods are changed by functions.
func istiodIn(namespace, name string, changes ...func(*corev1.PodSpec)) runtime.Object {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	d.Status.AvailableReplicas = 1
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "proxy"}, {Name: istiodContainer, Args: []string{"discovery", "--log_as_json"}}}
	for _, change := range changes {
		change(&d.Spec.Template.Spec)
	}
	return d
}

// withVariable sets an environment variable of istiod.
func withVariable(name, value string) func(*corev1.PodSpec) {
	return func(pod *corev1.PodSpec) {
		pod.Containers[1].Env = append(pod.Containers[1].Env, corev1.EnvVar{Name: name, Value: value})
	}
}

// withMount mounts a volume at a path in istiod's container.
func withMount(path string, source corev1.VolumeSource) func(*corev1.PodSpec) {
	return func(pod *corev1.PodSpec) {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "config", VolumeSource: source})
		pod.Containers[1].VolumeMounts = append(pod.Containers[1].VolumeMounts, corev1.VolumeMount{Name: "config", MountPath: path})
	}
}

// TestMeshConfigOfSettings checks that the settings of istiod's Deployment decide from where its mesh configuration comes, and that what they do not
// contain is unknown.
func TestMeshConfigOfSettings(t *testing.T) {
	const root, other, neither = "rootNamespace: istio-system\n", "rootNamespace: mesh\n", "trustDomain: cluster.local\n"
	shared := withVariable(sharedMeshConfig, "shared")
	configs := func(own, shared string) []runtime.Object {
		return []runtime.Object{meshConfigIn("istio-system", "istio", own), meshConfigIn("istio-system", "shared", shared)}
	}
	mounted := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
	}
	for name, tc := range map[string]struct {
		reason          string
		istiod          []func(*corev1.PodSpec)
		objects         []runtime.Object
		declared        bool
		forbidden       string
		ignored, unread string
	}{
		"NotShared": {reason: "nothing names the other ConfigMap", objects: configs(neither, other)},
		"Shared": {
			reason: "it names the root",
			istiod: []func(*corev1.PodSpec){shared}, objects: configs(neither, other),
			ignored: "ConfigMap istio-system/shared names the root namespace mesh",
		},
		"Overridden": {reason: "the one of istiod takes precedence", istiod: []func(*corev1.PodSpec){shared}, objects: configs(root, other)},
		"Overriding": {
			reason: "also with another root",
			istiod: []func(*corev1.PodSpec){shared}, objects: configs(other, root),
			ignored: "istio-system/istio names",
		},
		"Null": {
			reason: "null is no value",
			istiod: []func(*corev1.PodSpec){shared}, objects: configs("rootNamespace: null\n", other),
			ignored: "istio-system/shared names",
		},
		"Empty":        {reason: "an empty value is one", objects: configs("rootNamespace: ''\n", ""), ignored: `root namespace ""`},
		"OriginalName": {reason: "a field has two names", objects: configs("root_namespace: mesh\n", ""), ignored: "root namespace mesh"},
		"BothNames":    {reason: "one takes precedence", objects: configs("root_namespace: mesh\nrootNamespace: istio-system\n", "")},
		"Selectors": {
			reason: "the shared one has selectors", istiod: []func(*corev1.PodSpec){shared},
			objects: configs(root, "discoverySelectors: [{matchLabels: {mesh: \"no\"}}]\n"), ignored: "discoverySelectors in the ConfigMap istio-system/shared",
		},
		"SelectorsReplaced": {
			reason: "they are not merged", istiod: []func(*corev1.PodSpec){shared},
			objects: configs("discoverySelectors: [{matchLabels: {mesh: \"yes\"}}]\n", "discoverySelectors: [{matchLabels: {mesh: \"no\"}}]\n"),
		},
		"NoSelectors": {
			reason: "an empty list replaces them", istiod: []func(*corev1.PodSpec){shared},
			objects: configs("discoverySelectors: []\n", "discoverySelectors: [{matchLabels: {mesh: \"no\"}}]\n"),
		},
		"Missing": {
			reason: "the shared one is not there", istiod: []func(*corev1.PodSpec){shared},
			objects: []runtime.Object{meshConfigIn("istio-system", "istio", root)}, unread: "there is no ConfigMap istio-system/shared",
		},
		"MissingDeclared": {
			reason: "the member declares its root namespace", istiod: []func(*corev1.PodSpec){shared}, declared: true,
			objects: []runtime.Object{meshConfigIn("istio-system", "istio", root)},
		},
		"Invalid": {
			reason: "the shared one is invalid",
			istiod: []func(*corev1.PodSpec){shared}, objects: configs(root, "{"),
			unread: "istio-system/shared contains no valid",
		},
		"OwnInvalid": {
			reason: "what the shared one has may be overridden",
			istiod: []func(*corev1.PodSpec){shared}, objects: configs("{", other),
			unread: "istio-system/istio contains no valid",
		},
		"Last": {
			reason: "the last value of a variable counts", istiod: []func(*corev1.PodSpec){withVariable(sharedMeshConfig, "gone"), shared},
			objects: configs(neither, other), ignored: "istio-system/shared names",
		},
		"Unset": {reason: "no value", istiod: []func(*corev1.PodSpec){shared, withVariable(sharedMeshConfig, "")}, objects: configs(neither, other)},
		"ValueFrom": {
			reason: "the value is elsewhere", objects: configs(root, root), unread: "istio-system/istiod depends on SHARED_MESH_CONFIG",
			istiod: []func(*corev1.PodSpec){func(pod *corev1.PodSpec) {
				pod.Containers[1].Env = []corev1.EnvVar{{Name: sharedMeshConfig, ValueFrom: &corev1.EnvVarSource{}}}
			}},
		},
		"Composed": {
			reason: "the value contains another one", objects: configs(root, root), unread: "depends on SHARED_MESH_CONFIG",
			istiod: []func(*corev1.PodSpec){withVariable(sharedMeshConfig, "shared-$(ZONE)")},
		},
		"EnvFrom": {
			reason: "variables are elsewhere", objects: configs(root, root), unread: "depends on SHARED_MESH_CONFIG",
			istiod: []func(*corev1.PodSpec){func(pod *corev1.PodSpec) { pod.Containers[1].EnvFrom = []corev1.EnvFromSource{{}} }},
		},
		"EnvFromOverridden": {
			reason: "variables of the container take precedence", objects: configs(neither, other), ignored: "istio-system/shared names",
			istiod: []func(*corev1.PodSpec){shared, func(pod *corev1.PodSpec) { pod.Containers[1].EnvFrom = []corev1.EnvFromSource{{}} }},
		},
		"Flag": {
			reason: "it is in a file", objects: configs(root, root), unread: "depends on --meshConfig",
			istiod: []func(*corev1.PodSpec){func(pod *corev1.PodSpec) { pod.Containers[1].Args = []string{"discovery", "--meshConfig=/mesh.yaml"} }},
		},
		"FlagDeclared": {
			reason: "the declaration counts", objects: configs(root, root), declared: true,
			istiod: []func(*corev1.PodSpec){func(pod *corev1.PodSpec) {
				pod.Containers[1].Args = []string{"discovery", "--meshConfig", "/mesh.yaml"}
			}},
		},
		"FlagDeclaredOther": {
			reason: "it does not count against what was read", objects: configs(other, root), declared: true, ignored: "root namespace mesh",
			istiod: []func(*corev1.PodSpec){func(pod *corev1.PodSpec) {
				pod.Containers[1].Args = []string{"discovery", "--meshConfig", "/mesh.yaml"}
			}},
		},
		"OtherNamespace": {
			reason: "it takes ConfigMaps from elsewhere", objects: configs(root, root), unread: "depends on POD_NAMESPACE",
			istiod: []func(*corev1.PodSpec){withVariable(ownNamespace, "mesh")},
		},
		"OtherRevision": {
			reason: "it takes the ConfigMap of another revision", objects: configs(root, root), unread: "depends on REVISION",
			istiod: []func(*corev1.PodSpec){withVariable(ownRevision, "canary")},
		},
		"Mounted": {
			reason: "a ConfigMap is the file", objects: configs(root, other), ignored: "istio-system/shared names",
			istiod: []func(*corev1.PodSpec){withMount("/etc/istio/config", mounted("shared"))},
		},
		"MountedOwn": {
			reason: "older charts mount that of istiod", objects: configs(root, other),
			istiod: []func(*corev1.PodSpec){withMount("/etc/istio/config/", mounted("istio"))},
		},
		"MountedSecret": {
			reason: "it cannot be read", objects: configs(root, other), unread: "depends on volumeMounts /etc/istio/config",
			istiod: []func(*corev1.PodSpec){withMount("/etc/istio/config", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}})},
		},
		"MountedAbove": {
			reason: "it may contain the file", objects: configs(root, other), unread: "depends on volumeMounts /etc",
			istiod: []func(*corev1.PodSpec){withMount("/etc", mounted("istio"))},
		},
		"MountedElsewhere": {
			reason:  "it does not",
			objects: configs(root, other), istiod: []func(*corev1.PodSpec){withMount("/etc/istio/configs", mounted("shared"))},
		},
		"NoContainer": {
			reason: "it is no istiod of Istio's charts", objects: configs(root, other), unread: "depends on containers",
			istiod: []func(*corev1.PodSpec){func(pod *corev1.PodSpec) { pod.Containers = pod.Containers[:1] }},
		},
		"Forbidden": {
			reason: "its settings are unknown, also with a declaration", objects: configs(root, other), declared: true, forbidden: "deployments",
			unread: "Deployment istio-system/istiod may not be read",
		},
		"ForbiddenOther": {
			reason: "the one of istiod takes precedence", objects: configs(other, other), forbidden: "deployments", ignored: "root namespace mesh",
			unread: "may not be read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientset(append(tc.objects, istiodIn("istio-system", "istiod", tc.istiod...))...)
			if err := c.Tracker().
				Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "istio-system", Labels: map[string]string{"mesh": "yes"}}}); err != nil {
				t.Fatal(err)
			}
			forbid(c, tc.forbidden)
			annotations := map[string]string{}
			if tc.declared {
				annotations[federation.AnnotationIstioRoot] = "istio-system"
			}
			got := readMeshConfig(t.Context(), c, federation.ParseLocations(annotations))
			for what, pair := range map[string][2]string{"ignored": {got.Ignored.Text, tc.ignored}, "unread": {got.Unread.Text, tc.unread}} {
				if (pair[0] == "") != (pair[1] == "") || !strings.Contains(pair[0], pair[1]) {
					t.Errorf("%s: %s is %q, want %q in it", tc.reason, what, pair[0], pair[1])
				}
			}
		})
	}
}

// TestIstiodIsAvailable checks that an istiod without an available pod is found, also if its Deployment is to have none, unless nothing refers to it.
func TestIstiodIsAvailable(t *testing.T) {
	down := func(name string, replicas int32) runtime.Object {
		d, _ := istiodIn("istio-system", name, withVariable(ownRevision, strings.TrimPrefix(strings.TrimPrefix(name, "istiod"), "-"))).(*appsv1.Deployment)
		d.Status.AvailableReplicas, d.Spec.Replicas = 0, &replicas
		return d
	}
	own := meshConfigIn("istio-system", "istio", "rootNamespace: istio-system\n")
	revision := []runtime.Object{injector("istio-sidecar-injector-a", "a", "istio-system"), meshConfigIn("istio-system", "istio-a", "trustDomain: x\n")}
	up := istiodIn("istio-system", "istiod-a", withVariable(ownRevision, "a"))
	for name, tc := range map[string]struct {
		objects []runtime.Object
		down    string
	}{
		"Up":             {[]runtime.Object{istiodIn("istio-system", "istiod"), own}, ""},
		"Down":           {[]runtime.Object{down("istiod", 1), own}, "Deployment istio-system/istiod is available"},
		"NoPods":         {[]runtime.Object{down("istiod", 0), own}, "istio-system/istiod"},
		"RevisionDown":   {append(revision, down("istiod-a", 1)), "istio-system/istiod-a"},
		"RevisionNoPods": {append(revision, down("istiod-a", 0)), "istio-system/istiod-a"},
		"FormerNoPods":   {append(revision, up, down("istiod", 0), own), ""},
		"FormerDown":     {append(revision, up, down("istiod", 1), own), "istio-system/istiod "},
	} {
		t.Run(name, func(t *testing.T) {
			got := readMeshConfig(t.Context(), fake.NewClientset(tc.objects...), federation.DefaultLocations())
			if !got.Ignored.IsZero() || !got.Unread.IsZero() || (got.Down.Text == "") != (tc.down == "") || !strings.Contains(got.Down.Text, tc.down) {
				t.Errorf("%+v, want %q", got, tc.down)
			}
		})
	}
}

// TestOldIstiod checks that the version of each istiod counts, whatever the member declares.
func TestOldIstiod(t *testing.T) {
	image := func(tag string) func(*corev1.PodSpec) {
		return func(pod *corev1.PodSpec) { pod.Containers[1].Image = "registry:5000/istio/pilot" + tag }
	}
	for tag, old := range map[string]bool{":1.28.9": true, ":1.28.9-distroless": true, ":1.29.0": false, ":1.31-dev": false, ":latest": false, "": false} {
		got := readMeshConfig(t.Context(), fake.NewClientset(
			injector("istio-sidecar-injector-a", "a", "istio-system"), meshConfigIn("istio-system", "istio-a", "trustDomain: x\n"),
			istiodIn("istio-system", "istiod-a", withVariable(ownRevision, "a"), image(tag))), federation.DefaultLocations())
		if got.Old.IsZero() == old || !got.Unread.IsZero() {
			t.Errorf("%q: %+v", tag, got)
		}
	}
}

// forbid lets the requests about a resource fail, unless it is "".
func forbid(c *fake.Clientset, resource string) {
	if resource == "" {
		return
	}
	c.PrependReactor("*", resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: a.GetResource().Resource}, "", nil)
	})
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
		istiods         []runtime.Object // nil means one of each revision in each namespace
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
		"NoIstiod": {
			reason:  "nothing tells from where its configuration comes",
			objects: []runtime.Object{meshConfigIn("istio-system", "istio", root)}, istiods: []runtime.Object{},
			unread: "there is no Deployment istio-system/istiod",
		},
		"NoIstiodDeclared": {
			reason:  "the member declares its root namespace",
			objects: []runtime.Object{meshConfigIn("istio-system", "istio", root)}, istiods: []runtime.Object{},
			annotations: map[string]string{federation.AnnotationIstioRoot: "istio-system"},
		},
		"NoIstiodOfRevision": {
			reason: "the one of the revision is not found",
			objects: []runtime.Object{
				injector("istio-sidecar-injector-a", "a", "istio-system"), meshConfigIn("istio-system", "istio-a", root),
			},
			istiods: []runtime.Object{istiodIn("istio-system", "istiod")}, unread: "there is no Deployment istio-system/istiod-a",
		},
		"OnlyRevision": {
			reason: "there is no istiod without a revision, and its configuration was left",
			objects: []runtime.Object{
				injector("istio-sidecar-injector-a", "a", "istio-system"), meshConfigIn("istio-system", "istio-a", root),
				meshConfigIn("istio-system", "istio", root),
			},
			istiods: []runtime.Object{istiodIn("istio-system", "istiod-a", withVariable(ownRevision, "a"))},
		},
		"SharedByRevision": {
			reason: "the revision has a shared configuration",
			objects: []runtime.Object{
				injector("istio-sidecar-injector-a", "a", "mesh"), meshConfigIn("mesh", "istio-a", "trustDomain: x\n"),
				meshConfigIn("mesh", "shared", other),
			},
			istiods: []runtime.Object{istiodIn("mesh", "istiod-a", withVariable(ownRevision, "a"), withVariable(sharedMeshConfig, "shared"))},
			ignored: "ConfigMap mesh/shared names",
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
			c := fake.NewClientset(append(tc.objects, tc.istiods...)...)
			for _, name := range []string{"istiod", "istiod-a", "istiod-b"} {
				if tc.istiods != nil {
					break
				}
				for _, in := range []string{"istio-system", "mesh"} {
					if err := c.Tracker().
						Add(istiodIn(in, name, withVariable(ownRevision, strings.TrimPrefix(strings.TrimPrefix(name, "istiod"), "-")))); err != nil {
						t.Fatal(err)
					}
				}
			}
			root := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "istio-system", Labels: map[string]string{"mesh": "yes"}}}
			if err := c.Tracker().Add(root); err != nil {
				t.Fatal(err)
			}
			forbid(c, tc.forbidden)
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
		"Ignored": {codes(sidecars, ignored, key), []string{"Fails PoliciesNotInMesh"}},
		"Unknown": {codes(sidecars, unknown, key), []string{"Warns MeshConfigUnread"}},
		"Down":    {codes(sidecars, MeshConfig{Down: message.Verbatim("down")}, key), []string{"Warns IstiodNotAvailable"}},
		"Old":     {codes(sidecars, MeshConfig{Old: message.Verbatim("old")}, key), []string{"Warns IstioUnsupported"}},
		"DownAndUnknown": {
			codes(sidecars, MeshConfig{Down: message.Verbatim("down"), Unread: message.Verbatim("forbidden")}, key),
			[]string{"Warns IstiodNotAvailable", "Warns MeshConfigUnread"},
		},
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
		if remedy := found.Remedy.Text; !strings.Contains(remedy, "another namespace than istio-system") ||
			!strings.Contains(remedy, "get ConfigMaps and Deployments") {
			t.Errorf("the remedy is %q", remedy)
		}
	}
}
