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
	// Strict reports whether a mesh-wide PeerAuthentication requires mutual TLS.
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

// mtlsOf evaluates PeerAuthentications as Istio does: the oldest policy of the root namespace without a selector counts for
// the mesh, where the absence of a mode means PERMISSIVE. If several were created in the same second, sidecars and ztunnel may use
// different ones, so each must require mutual TLS. Elsewhere a policy without a mode inherits it. Modes of ports count only
// in policies with a selector. Policies of a revision may be those of another istiod, so they require nothing.
func mtlsOf(policies []unstructured.Unstructured, root string) MTLS {
	var out MTLS
	var oldest *unstructured.Unstructured
	for i := range policies {
		u := &policies[i]
		mode, _, _ := unstructured.NestedString(u.Object, "spec", "mtls", "mode")
		labels, _, _ := unstructured.NestedMap(u.Object, "spec", "selector", "matchLabels")
		selected := len(labels) > 0
		if u.GetNamespace() == root && !selected {
			strict := mode == "STRICT" && u.GetLabels()[revisionLabel] == ""
			switch {
			case oldest == nil || isOlder(u, oldest):
				oldest, out.Strict = u, strict
			case !isOlder(oldest, u):
				out.Strict = out.Strict && strict
			}
		}
		weak := permitsPlainText(mode)
		ports, _, _ := unstructured.NestedMap(u.Object, "spec", "portLevelMtls")
		for _, p := range ports {
			settings, _ := p.(map[string]any)
			mode, _ := settings["mode"].(string)
			weak = weak || selected && permitsPlainText(mode)
		}
		if weak {
			out.Exceptions = append(out.Exceptions, u.GetNamespace()+"/"+u.GetName())
		}
	}
	slices.Sort(out.Exceptions)
	return out
}

// revisionLabel is the label with the revision of Istio that an object is for.
const revisionLabel = "istio.io/rev"

// isOlder reports whether a policy was created earlier than another one.
func isOlder(a, b *unstructured.Unstructured) bool {
	at, than := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	return at.Before(&than)
}

// permitsPlainText reports whether a mode permits plain text. An unknown mode does.
func permitsPlainText(mode string) bool { return mode != "" && mode != "UNSET" && mode != "STRICT" }

// PlainText returns the reason why pods accept plain text although the member declares strictMTLS, or zero. Unknown
// counts as a reason.
func (i Istio) PlainText() message.Message {
	if declared, err := mesh.ParseCapabilities(i.Declared); err != nil || !i.Enforces() || !declared.StrictMTLS {
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

// mtlsFindings reports a member that declares strictMTLS and accepts plain text, if there is a class of Istio's.
func mtlsFindings(f Facts, n Needs) []Finding {
	why := f.Istio.PlainText()
	if why.IsZero() || !slices.ContainsFunc(n.Keys, func(k Key) bool { return k.Istio }) {
		return nil
	}
	return []Finding{{Severity: Fails, Code: PlainTextAccepted, Message: why, Remedy: message.RemedyStrictMtls()}}
}
