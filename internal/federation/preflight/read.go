package preflight

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/federation"
)

const (
	ciliumNamespace = "kube-system"
	ciliumConfig    = "cilium-config"
	ciliumAgents    = "cilium"
	istioNamespace  = "istio-system"
	istioGroup      = "security.istio.io"
	istiod          = "istiod"
	ztunnel         = "ztunnel"
)

// Timeout of one request to a member.
const Timeout = 10 * time.Second

// Read gathers the facts of a member: the kinds as the pusher sees them, the configuration as the reader does. They may
// be the same.
func Read(ctx context.Context, member string, pusher, reader *rest.Config, kinds []federation.Kind) Facts {
	f := Facts{Member: member}
	as, err := dynamic.NewForConfig(bounded(pusher))
	if err != nil {
		f.Silent = err.Error()
		return f
	}
	clients, err := kubernetes.NewForConfig(bounded(reader))
	if err != nil {
		f.Silent = err.Error()
		return f
	}
	reading, err := dynamic.NewForConfig(bounded(reader))
	if err != nil {
		f.Silent = err.Error()
		return f
	}
	pushing, err := kubernetes.NewForConfig(bounded(pusher))
	if err != nil {
		f.Silent = err.Error()
		return f
	}
	info, err := pushing.Discovery().ServerVersion()
	if err != nil {
		f.Silent = plain(err)
		return f
	}
	f.Version = info.GitVersion
	for _, k := range kinds {
		l := list(ctx, as, k)
		if l.Detail == refused {
			f.Silent = refused // which KubeFed's own health check finds, too
			return f
		}
		f.Kinds = append(f.Kinds, l)
	}
	f.Cilium = readCilium(ctx, clients)
	f.Istio = readIstio(ctx, clients)
	f.Guard = readGuard(ctx, reading)
	f.Mark, f.MarkUnread = readMark(ctx, reading)
	return f
}

func bounded(c *rest.Config) *rest.Config {
	out := rest.CopyConfig(c)
	out.Timeout = Timeout
	return out
}

// list asks for one object, as KubeFed's informer would for all of them.
func list(ctx context.Context, as dynamic.Interface, k federation.Kind) Listing {
	_, err := as.Resource(k.TargetResource).List(ctx, metav1.ListOptions{Limit: 1})
	l := Listing{Resource: k.TargetResource}
	switch {
	case err == nil:
		l.Result = Listed
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		l.Result = NotServed
	case apierrors.IsForbidden(err):
		l.Result = Forbidden
	default:
		l.Result, l.Detail = ListFails, plain(err)
	}
	return l
}

const refused = "it refuses the token"

// plain is an error in the API server's own words.
func plain(err error) string {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsUnauthorized(err):
		return refused
	case errors.As(err, &status):
		return status.Status().Message
	}
	return err.Error()
}

func readCilium(ctx context.Context, c kubernetes.Interface) Cilium {
	m, err := c.CoreV1().ConfigMaps(ciliumNamespace).Get(ctx, ciliumConfig, metav1.GetOptions{})
	if err != nil {
		return Cilium{Unread: unread(err, "ConfigMap "+ciliumNamespace+"/"+ciliumConfig)}
	}
	out := ParseCilium(m.Data)
	if agents, err := c.AppsV1().DaemonSets(ciliumNamespace).Get(ctx, ciliumAgents, metav1.GetOptions{}); err == nil {
		out.Version = imageVersion(agents)
	}
	return out
}

// ParseCilium reads the agents' ConfigMap.
func ParseCilium(data map[string]string) Cilium {
	out := Cilium{ClusterName: data["cluster-name"], ClusterID: data["cluster-id"], MaxClusters: data["max-connected-clusters"], Labels: data["labels"],
		LabelsFile: data["label-prefix-file"] != "", Audit: isTrue(data["policy-audit-mode"]), Never: strings.EqualFold(data["enable-policy"], "never")}
	if out.ClusterName == "" {
		out.ClusterName = "default"
	}
	if out.ClusterID == "" {
		out.ClusterID = "0"
	}
	return out
}

// isTrue reads a setting as the agents do.
func isTrue(s string) bool {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true", "t", "1":
		return true
	}
	return false
}

func unread(err error, what string) string {
	switch {
	case apierrors.IsNotFound(err):
		return "there is no " + what
	case apierrors.IsForbidden(err):
		return "the " + what + " may not be read"
	}
	return fmt.Sprintf("the %s cannot be read: %s", what, plain(err))
}

// CiliumVersion asks a cluster which version its agents have.
func CiliumVersion(ctx context.Context, c kubernetes.Interface) (string, error) {
	agents, err := c.AppsV1().DaemonSets(ciliumNamespace).Get(ctx, ciliumAgents, metav1.GetOptions{})
	if err != nil {
		return "", errors.New(unread(err, "DaemonSet "+ciliumNamespace+"/"+ciliumAgents))
	}
	if v := imageVersion(agents); v != "" {
		return v, nil
	}
	return "", fmt.Errorf("the image of the DaemonSet %s/%s has no version", ciliumNamespace, ciliumAgents)
}

func imageVersion(d *appsv1.DaemonSet) string {
	for _, c := range d.Spec.Template.Spec.Containers {
		if c.Name == "cilium-agent" {
			return tag(c.Image)
		}
	}
	return ""
}

// tag of an image, as v1.20.2; "" when it has none.
func tag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	i := strings.LastIndexByte(image, ':')
	if i < 0 || i < strings.LastIndexByte(image, '/') {
		return ""
	}
	return image[i+1:]
}

func readIstio(ctx context.Context, c kubernetes.Interface) Istio {
	groups, err := c.Discovery().ServerGroups()
	if err != nil {
		return Istio{Unread: plain(err)}
	}
	served := false
	for i := range groups.Groups {
		served = served || groups.Groups[i].Name == istioGroup
	}
	if !served {
		return Istio{}
	}
	d, err := c.AppsV1().Deployments(istioNamespace).Get(ctx, istiod, metav1.GetOptions{})
	if err != nil {
		return Istio{Served: true, Unread: unread(err, "Deployment "+istioNamespace+"/"+istiod)}
	}
	out := Istio{Served: true}
	for _, container := range d.Spec.Template.Spec.Containers {
		if container.Name == "discovery" {
			out.Version = tag(container.Image)
		}
	}
	_, err = c.AppsV1().DaemonSets(istioNamespace).Get(ctx, ztunnel, metav1.GetOptions{})
	out.Ambient = err == nil
	return out
}
