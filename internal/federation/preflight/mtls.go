package preflight

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	mesh "github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/message"
)

// MTLS describes whether the workloads of a member's mesh accept plain text, by its PeerAuthentications.
type MTLS struct {
	// Strict reports that a mesh-wide PeerAuthentication requires mutual TLS.
	Strict bool
	// Exceptions are the PeerAuthentications that permit plain text somewhere, as namespace/name, sorted.
	Exceptions []string
	// Unread is the reason why they are not known, or zero.
	Unread message.Message
}

var peerAuthentications = schema.GroupVersionResource{Group: istioGroup, Version: "v1", Resource: "peerauthentications"}

// readMTLS reads the PeerAuthentications of every namespace. Where the kind is not served, nothing requires mutual TLS.
func readMTLS(ctx context.Context, c dynamic.Interface, root string) MTLS {
	list, err := c.Resource(peerAuthentications).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return MTLS{}
	case err != nil:
		return MTLS{Unread: unread(err, "PeerAuthentications")}
	}
	return mtlsOf(list.Items, root)
}

// mtlsOf evaluates PeerAuthentications. A policy without a mode inherits it, so it is no exception.
func mtlsOf(policies []unstructured.Unstructured, root string) MTLS {
	var out MTLS
	for i := range policies {
		o := policies[i].Object
		mode, _, _ := unstructured.NestedString(o, "spec", "mtls", "mode")
		labels, _, _ := unstructured.NestedMap(o, "spec", "selector", "matchLabels")
		if policies[i].GetNamespace() == root && len(labels) == 0 && mode == "STRICT" {
			out.Strict = true
		}
		weak := permitsPlainText(mode)
		ports, _, _ := unstructured.NestedMap(o, "spec", "portLevelMtls")
		for _, p := range ports {
			settings, _ := p.(map[string]any)
			mode, _ := settings["mode"].(string)
			weak = weak || permitsPlainText(mode)
		}
		if weak {
			out.Exceptions = append(out.Exceptions, policies[i].GetNamespace()+"/"+policies[i].GetName())
		}
	}
	slices.Sort(out.Exceptions)
	return out
}

// permitsPlainText reports whether a mode permits plain text. An unknown mode does.
func permitsPlainText(mode string) bool { return mode != "" && mode != "UNSET" && mode != "STRICT" }

// PlainText returns the reason why pods accept plain text although the member declares strictMTLS, or zero. Unknown
// counts as a reason.
func (i Istio) PlainText() message.Message {
	if declared, err := mesh.ParseCapabilities(i.Declared); i.Declared == "" || err != nil || !declared.StrictMTLS {
		return message.Message{}
	}
	switch {
	case !i.MTLS.Unread.IsZero():
		return message.PreflightMtlsUnread(i.MTLS.Unread)
	case !i.MTLS.Strict:
		return message.PreflightMtlsNotStrict()
	case len(i.MTLS.Exceptions) > 0:
		return message.PreflightMtlsExceptions(message.NamesOf(i.MTLS.Exceptions, maxNamedPods))
	}
	return message.Message{}
}

// mtlsFindings reports a member that declares strictMTLS and accepts plain text, if a class of Istio's relies on it.
func mtlsFindings(f Facts, n Needs) []Finding {
	why := f.Istio.PlainText()
	if why.IsZero() || !slices.ContainsFunc(n.Keys, func(k Key) bool { return k.Istio }) {
		return nil
	}
	return []Finding{{Severity: Fails, Code: PlainTextAccepted, Message: why, Do: message.RemedyStrictMtls()}}
}
