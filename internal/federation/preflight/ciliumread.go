package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

// nodeConfigs override the ConfigMap on the nodes that they select.
var nodeConfigs = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumnodeconfigs"}

const agentContainer = "cilium-agent"

// readCilium reads everything that configures agents: the ConfigMap, the CiliumNodeConfigs in its namespace, and the
// arguments and environment in the agents' DaemonSet. A part that cannot be read makes the whole configuration unknown.
func readCilium(ctx context.Context, c kubernetes.Interface, d dynamic.Interface, pods metadata.Interface, at federation.Locations) Cilium {
	if !at.Problem.IsZero() {
		return Cilium{Unread: at.Problem}
	}
	m, err := c.CoreV1().ConfigMaps(at.CiliumConfig.Namespace).Get(ctx, at.CiliumConfig.Name, metav1.GetOptions{})
	if err != nil {
		return Cilium{Unread: unread(err, "ConfigMap "+at.CiliumConfig.String())}
	}
	out := Cilium{Sources: []Source{{Where: "ConfigMap " + at.CiliumConfig.String(), Settings: m.Data, Base: true}}}
	agents, err := c.AppsV1().DaemonSets(at.CiliumAgents.Namespace).Get(ctx, at.CiliumAgents.Name, metav1.GetOptions{})
	if err != nil {
		out.Unread = unread(err, "DaemonSet "+at.CiliumAgents.String())
		return out
	}
	out.Version, out.Agents = imageVersion(agents), ready(agents)
	if out.Unread = unreadSource(agents, at); !out.Unread.IsZero() {
		return out
	}
	overrides, changed, why := readNodeConfigs(ctx, d, at.CiliumAgents.Namespace)
	if !why.IsZero() {
		out.Unread = why
		return out
	}
	out.Sources = append(append(out.Sources, overrides...), arguments(agents, at.CiliumAgents.String())...)
	out.Pods = listAgentPods(ctx, pods, agents, at)
	out.ChangedAt(latest(changed, configChange(m, agents)))
	envoy, err := c.AppsV1().DaemonSets(at.CiliumEnvoy.Namespace).Get(ctx, at.CiliumEnvoy.Name, metav1.GetOptions{})
	switch {
	case err != nil:
		out.Envoy.Unread = unread(err, "DaemonSet "+at.CiliumEnvoy.String()) // it matters only if Envoy runs separately
	default:
		out.Envoy = ready(envoy)
	}
	return out
}

// readNodeConfigs returns the CiliumNodeConfigs of a namespace that agents apply: one without a selector applies to no
// node, and one with a selector may apply to some node at any time. changed is the time of the last change of one of them.
func readNodeConfigs(ctx context.Context, d dynamic.Interface, namespace string) (out []Source, changed time.Time, why message.Message) {
	list, err := d.Resource(nodeConfigs).Namespace(namespace).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return nil, changed, message.Message{}
	case err != nil:
		return nil, changed, unread(err, "CiliumNodeConfigs in "+namespace)
	}
	for i := range list.Items {
		o := &list.Items[i]
		changed = latest(changed, lastChange(o))
		if _, selects, _ := unstructured.NestedMap(o.Object, "spec", "nodeSelector"); !selects {
			continue
		}
		defaults, _, err := unstructured.NestedStringMap(o.Object, "spec", "defaults")
		if err != nil {
			return nil, changed, message.PreflightUnreadable("CiliumNodeConfig "+namespace+"/"+o.GetName(), message.Of(err))
		}
		out = append(out, Source{Where: "CiliumNodeConfig " + namespace + "/" + o.GetName(), Settings: defaults})
	}
	slices.SortFunc(out, func(a, b Source) int { return strings.Compare(a.Where, b.Where) })
	return out, changed, message.Message{}
}

// unreadSource returns the reason why agents read settings from a place that is not read here, or zero. It reads the
// sources of the init container that collects the settings.
func unreadSource(agents *appsv1.DaemonSet, at federation.Locations) message.Message {
	for i := range agents.Spec.Template.Spec.Containers {
		if c := &agents.Spec.Template.Spec.Containers[i]; c.Name == agentContainer && len(c.EnvFrom) > 0 {
			return message.PreflightEnvFrom()
		}
	}
	for i := range agents.Spec.Template.Spec.InitContainers {
		c := &agents.Spec.Template.Spec.InitContainers[i]
		words := slices.Concat(c.Command, c.Args)
		if !slices.Contains(words, "build-config") {
			continue
		}
		for source := range strings.SplitSeq(flags(words)["source"], ",") {
			kind, place, _ := strings.Cut(source, ":")
			switch {
			case source == "",
				kind == "config-map" && (place == at.CiliumConfig.Name || place == at.CiliumConfig.String()),
				kind == "cilium-node-config" && (place == "" || place == at.CiliumAgents.Namespace):
			default:
				return message.PreflightOtherSource(clip(source))
			}
		}
	}
	return message.Message{}
}

// arguments returns the settings in the DaemonSet's arguments and environment.
func arguments(agents *appsv1.DaemonSet, name string) []Source {
	var out []Source
	for i := range agents.Spec.Template.Spec.Containers {
		c := &agents.Spec.Template.Spec.Containers[i]
		if c.Name != agentContainer {
			continue
		}
		if set := environment(c.Env); len(set) > 0 {
			out = append(out, Source{Where: "the environment of DaemonSet " + name, Settings: set})
		}
		if set := flags(slices.Concat(c.Command, c.Args)); len(set) > 0 {
			out = append(out, Source{Where: "the arguments of DaemonSet " + name, Settings: set})
		}
	}
	return out
}

// flags returns the long options of a command line.
func flags(words []string) map[string]string {
	var all []string
	for _, w := range words {
		if strings.Contains(w, " --") { // the text of a shell script
			all = append(all, strings.Fields(w)...)
			continue
		}
		all = append(all, w)
	}
	words = all
	out := map[string]string{}
	for i, w := range words {
		name, ok := strings.CutPrefix(w, "--")
		if !ok || name == "" {
			continue
		}
		name, value, given := strings.Cut(name, "=")
		if !given {
			// A boolean needs no value, and a value may be the next word.
			if value = "true"; i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
				value = words[i+1]
			}
		}
		out[name] = value
	}
	return out
}

// environment returns the settings in environment variables: CILIUM_ENABLE_POLICY is enable-policy. A value from
// another object is unknown, which no check accepts.
func environment(variables []corev1.EnvVar) map[string]string {
	out := map[string]string{}
	for _, v := range variables {
		name, ok := strings.CutPrefix(v.Name, "CILIUM_")
		if !ok {
			continue
		}
		value := v.Value
		if v.ValueFrom != nil {
			value = "(from elsewhere)"
		}
		out[strings.ToLower(strings.ReplaceAll(name, "_", "-"))] = value
	}
	return out
}

func ready(d *appsv1.DaemonSet) Workload {
	return Workload{Desired: d.Status.DesiredNumberScheduled, Ready: d.Status.NumberReady}
}

// CiliumVersion returns the version of a cluster's agents.
func CiliumVersion(ctx context.Context, c kubernetes.Interface, at federation.Locations) (string, error) {
	agents, err := c.AppsV1().DaemonSets(at.CiliumAgents.Namespace).Get(ctx, at.CiliumAgents.Name, metav1.GetOptions{})
	if err != nil {
		return "", unread(err, "DaemonSet "+at.CiliumAgents.String()).Err()
	}
	if v := imageVersion(agents); v != "" {
		return v, nil
	}
	return "", fmt.Errorf("the image of the DaemonSet %s has no version", at.CiliumAgents)
}

func imageVersion(d *appsv1.DaemonSet) string {
	for _, c := range d.Spec.Template.Spec.Containers {
		if c.Name == agentContainer {
			return tag(c.Image)
		}
	}
	return ""
}

// tag returns the tag of an image, as v1.20.2, or "" if it has none.
func tag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	i := strings.LastIndexByte(image, ':')
	if i < 0 || i < strings.LastIndexByte(image, '/') {
		return ""
	}
	return image[i+1:]
}
