package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

const (
	istioGroup   = "security.istio.io"
	gatewayGroup = "gateway.networking.k8s.io"
	istiod       = "istiod"
	ztunnel      = "ztunnel"
)

// Timeout is the timeout of one request to a member.
const Timeout = 10 * time.Second

// Read collects the facts of a member: the kinds with the pusher's credentials, and the configuration with the
// reader's, from the locations that the member declares. Pusher and reader may be the same. If only the pusher is
// refused, the member is unreachable and its configuration is read all the same, because what was distributed before
// continues to be read back.
func Read(ctx context.Context, member string, pusher, reader *rest.Config, kinds []federation.Kind, at federation.Locations) Facts {
	f := Facts{Member: member}
	as, err := dynamic.NewForConfig(bounded(pusher))
	if err != nil {
		f.Unreachable = err.Error()
		return f
	}
	pushing, err := kubernetes.NewForConfig(bounded(pusher))
	if err != nil {
		f.Unreachable = err.Error()
		return f
	}
	info, err := pushing.Discovery().ServerVersion()
	if err != nil {
		if f.Unreachable = apiMessage(err); f.Unreachable == refused {
			return ReadConfig(ctx, member, reader, refused, at)
		}
		return f
	}
	f.Version = info.GitVersion
	for _, k := range kinds {
		l := list(ctx, as, k)
		if l.Detail == refused { // KubeFed's own health check detects this, too
			return ReadConfig(ctx, member, reader, refused, at)
		}
		f.Kinds = append(f.Kinds, l)
	}
	if err := f.readConfig(ctx, reader, at); err != nil {
		f.Unreachable = err.Error()
	}
	return f
}

// ReadConfig collects the facts of a member that is unreachable for the pusher, for the given reason: everything but the
// kinds. If the reader's request fails, too, nothing is read.
func ReadConfig(ctx context.Context, member string, reader *rest.Config, unreachable string, at federation.Locations) Facts {
	f := Facts{Member: member, Unreachable: unreachable}
	clients, err := kubernetes.NewForConfig(bounded(reader))
	if err != nil {
		return f
	}
	info, err := clients.Discovery().ServerVersion()
	if err != nil {
		return f
	}
	out := f
	out.Version, out.OnlyPusherFails = info.GitVersion, true
	if err := out.readConfig(ctx, reader, at); err != nil {
		return f
	}
	return out
}

// readConfig reads everything but the kinds. The error is about the configuration of the reader; no request was made then.
func (f *Facts) readConfig(ctx context.Context, reader *rest.Config, at federation.Locations) error {
	if at == (federation.Locations{}) {
		at = federation.DefaultLocations()
	}
	clients, err := kubernetes.NewForConfig(bounded(reader))
	if err != nil {
		return fmt.Errorf("the reader's configuration cannot be used: %w", err)
	}
	reading, err := dynamic.NewForConfig(bounded(reader))
	if err != nil {
		return fmt.Errorf("the reader's configuration cannot be used: %w", err)
	}
	pods, err := metadata.NewForConfig(bounded(reader))
	if err != nil {
		return fmt.Errorf("the reader's configuration cannot be used: %w", err)
	}
	f.Cilium = readCilium(ctx, clients, reading, pods, at)
	f.Istio = readIstio(ctx, clients, at.IstioRoot)
	if f.Istio.Served {
		f.Istio.MTLS, f.Istio.Config = readMTLS(ctx, reading, at.IstioRoot), readMeshConfig(ctx, clients, at)
		f.Istio.PoliciesUnread = readPolicies(ctx, reading)
	} else {
		f.Istio.MTLS.Unread, f.Istio.Config.Unread = f.Istio.Unread, f.Istio.Unread // zero if it is known that the kinds are missing
	}
	f.Guard = readGuard(ctx, reading)
	f.Mark, f.MarkUnread = readMark(ctx, reading)
	return nil
}

func bounded(c *rest.Config) *rest.Config {
	out := rest.CopyConfig(c)
	out.Timeout = Timeout
	return out
}

// readPolicies requests one of Istio's policies in the namespace to which ACP distributes its own, and returns the reason why they cannot be read, or zero.
func readPolicies(ctx context.Context, c dynamic.Interface) message.Message {
	kind := federation.IstioPolicy
	_, err := c.Resource(kind.TargetResource).Namespace(kind.Namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err == nil || apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return message.Message{}
	}
	return unread(err, "AuthorizationPolicies")
}

// list requests one object of a kind, as KubeFed's informer would request all of them.
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
		l.Result, l.Detail = ListFails, apiMessage(err)
	}
	return l
}

const refused = "it refuses the token"

// apiMessage returns an error in the API server's words.
func apiMessage(err error) string {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsUnauthorized(err):
		return refused
	case errors.As(err, &status):
		return status.Status().Message
	}
	return err.Error()
}

func unread(err error, what string) message.Message {
	switch {
	case apierrors.IsNotFound(err):
		return message.PreflightNotFound(what)
	case apierrors.IsForbidden(err):
		return message.PreflightForbidden(what)
	}
	return message.PreflightUnreadable(what, apiText(apiMessage(err)))
}

func readIstio(ctx context.Context, c kubernetes.Interface, istioNamespace string) Istio {
	groups, err := c.Discovery().ServerGroups()
	if err != nil {
		return Istio{Unread: apiText(apiMessage(err))}
	}
	served := func(name string) bool {
		return slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == name })
	}
	if !served(istioGroup) {
		return Istio{GatewayAPI: served(gatewayGroup)}
	}
	out := Istio{Served: true, GatewayAPI: served(gatewayGroup)}
	d, err := c.AppsV1().Deployments(istioNamespace).Get(ctx, istiod, metav1.GetOptions{})
	if err != nil {
		out.Unread = unread(err, "Deployment "+istioNamespace+"/"+istiod)
		return out
	}
	out.Version = istiodVersion(&d.Spec.Template.Spec)
	_, err = c.AppsV1().DaemonSets(istioNamespace).Get(ctx, ztunnel, metav1.GetOptions{})
	out.Ambient = err == nil
	return out
}
