package preflight

import (
	"context"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/acp-io/acp/internal/message"
)

// istiodName identifies an istiod of a member. Istio's charts and its operator name its Deployment and its ConfigMap after the revision.
type istiodName struct{ namespace, revision string }

// defaultRevision is the value of the label of the revision for an istiod without one.
const defaultRevision = "default"

// istiodOf returns the istiod of a revision in a namespace. "" is the same revision as defaultRevision.
func istiodOf(namespace, revision string) istiodName {
	if revision == "" {
		revision = defaultRevision
	}
	return istiodName{namespace, revision}
}

// named returns the name of an object of the istiod that has a base name without a revision.
func (i istiodName) named(base string) string {
	if i.revision == defaultRevision {
		return base
	}
	return base + "-" + i.revision
}

// configMap returns the name of the ConfigMap with the mesh configuration. Source: getMeshConfigMapName in pilot/pkg/bootstrap/mesh.go.
func (i istiodName) configMap() string { return i.named("istio") }

// These settings of istiod's container decide from where it takes its mesh configuration. Source: getConfigurationSources in
// pilot/pkg/bootstrap/mesh.go, pilot/pkg/bootstrap/options.go, and pilot/cmd/pilot-discovery/app/cmd.go.
const (
	// istiodContainer is the name of the container in the Deployment.
	istiodContainer = "discovery"
	// sharedMeshConfig is the environment variable that names another ConfigMap, whose settings count unless the one of the istiod has them, too.
	sharedMeshConfig = "SHARED_MESH_CONFIG"
	// ownNamespace and ownRevision are the environment variables with the namespace and the revision, which determine the ConfigMap of the istiod.
	ownNamespace, ownRevision = "POD_NAMESPACE", "REVISION"
	// meshConfigFile is the default of the flag --meshConfig. A file that exists replaces the ConfigMap of the istiod.
	meshConfigFile = "/etc/istio/config/" + meshConfigKey
)

// meshConfigFlags are the flags of istiod that decide from where it takes its mesh configuration: the path of the file, the namespace of the ConfigMaps,
// and the cluster. With --configDir, it takes policies from files.
var meshConfigFlags = []string{"--meshConfig", "--namespace", "-n", "--kubeconfig", "--configDir"}

// sources returns the names of the ConfigMaps in the namespace of the istiod whose mesh configurations it applies, in this order, so that a later one
// overrides an earlier one, and what is wrong with its Deployment. declared and optional are as in read.
func (i istiodName) sources(ctx context.Context, c kubernetes.Interface, declared, optional bool) (names []string, out MeshConfig) {
	names = []string{i.configMap()}
	name := i.named(istiod)
	what := "Deployment " + i.namespace + "/" + name
	d, err := c.AppsV1().Deployments(i.namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && (declared || optional):
		return names, out
	case err != nil:
		out.Unread = unread(err, what)
		return names, out
	}
	if optional && d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
		return names, out // It was left without pods, for example after an upgrade to another revision.
	}
	if d.Status.AvailableReplicas == 0 {
		out.Down = message.PreflightIstiodDown(what)
	}
	if version := istiodVersion(&d.Spec.Template.Spec); old(version, oldestIstio) {
		out.Old = message.PreflightOldIstiod(what, version)
	}
	shared, file, setting := i.settingsOf(&d.Spec.Template.Spec)
	switch {
	case setting != "" && declared:
	case setting != "":
		out.Unread = message.PreflightIstiodSetting(what, setting)
	case file != "":
		names = []string{file}
	}
	if shared != "" {
		names = []string{shared, names[0]}
	}
	return names, out
}

// istiodVersion returns the tag of the image of istiod's container, or "".
func istiodVersion(pod *corev1.PodSpec) string {
	for i := range pod.Containers {
		if pod.Containers[i].Name == istiodContainer {
			return tag(pod.Containers[i].Image)
		}
	}
	return ""
}

// settingsOf returns the names of the ConfigMaps that pods of the istiod use for the shared mesh configuration, and for the file that replaces the one of
// its revision; "" means none. unknown is the setting on which they depend, if that cannot be read from the pod.
func (i istiodName) settingsOf(pod *corev1.PodSpec) (shared, file, unknown string) {
	at := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == istiodContainer })
	if at < 0 {
		return "", "", "containers"
	}
	container := &pod.Containers[at]
	for _, arg := range slices.Concat(container.Command, container.Args) {
		if flag, _, _ := strings.Cut(arg, "="); slices.Contains(meshConfigFlags, flag) {
			return "", "", flag
		}
	}
	if value, known := variable(container, ownNamespace); known && value != "" && value != i.namespace {
		return "", "", ownNamespace
	}
	if value, known := variable(container, ownRevision); known && istiodOf(i.namespace, value) != i {
		return "", "", ownRevision
	}
	shared, known := variable(container, sharedMeshConfig)
	if !known {
		return "", "", sharedMeshConfig
	}
	file, unknown = mountedFile(pod, container)
	return shared, file, unknown
}

// variable returns the value of an environment variable of a container, or "" if it is not set. known is false if the value is not in the container.
func variable(container *corev1.Container, name string) (value string, known bool) {
	known = len(container.EnvFrom) == 0
	for _, e := range container.Env {
		if e.Name == name { // The last one counts.
			value, known = e.Value, e.ValueFrom == nil && !strings.Contains(e.Value, "$(")
		}
	}
	return value, known
}

// mountedFile returns the name of the ConfigMap that is mounted as the folder of the file with the mesh configuration, or "" if nothing is. unknown is
// the mount that provides the file, if it is something else.
func mountedFile(pod *corev1.PodSpec, container *corev1.Container) (name, unknown string) {
	for _, m := range container.VolumeMounts {
		mounted := path.Clean(m.MountPath)
		if mounted != meshConfigFile && !strings.HasPrefix(meshConfigFile, strings.TrimSuffix(mounted, "/")+"/") {
			continue
		}
		at := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if at < 0 || pod.Volumes[at].ConfigMap == nil || len(pod.Volumes[at].ConfigMap.Items) > 0 || mounted != path.Dir(meshConfigFile) ||
			m.SubPath != "" || m.SubPathExpr != "" || name != "" {
			return "", "volumeMounts " + m.MountPath
		}
		name = pod.Volumes[at].ConfigMap.Name
	}
	return name, ""
}
