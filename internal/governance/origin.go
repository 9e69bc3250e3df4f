package governance

import (
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// OriginKind is the way in which a policy was created in the host cluster.
type OriginKind string

const (
	// FromPortal is the origin of policies that the portal writes.
	FromPortal OriginKind = "portal"
	// FromGitOps is the origin of policies that a deployment tool applies.
	FromGitOps OriginKind = "gitops"
	// FromKubectl is the origin of policies that were written with kubectl.
	FromKubectl OriginKind = "kubectl"
	// FromOther is the origin of policies that another program wrote, or whose origin is not recorded.
	FromOther OriginKind = "other"
)

// Origin is the origin of a policy as the host cluster recorded it. It is for display only: users who may write
// policies may also claim another name, so no decision depends on it.
type Origin struct {
	Kind OriginKind
	// Manager is the field manager that wrote the statements last, or the tool that tracks the object; empty if not
	// known.
	Manager string
	At      time.Time
}

// trackers are labels and annotations by which deployment tools mark the objects that they applied.
var trackers = map[string]string{
	"argocd.argoproj.io/tracking-id":   "Argo CD",
	"argocd.argoproj.io/instance":      "Argo CD",
	"kustomize.toolkit.fluxcd.io/name": "Flux",
	"helm.toolkit.fluxcd.io/name":      "Flux",
	"meta.helm.sh/release-name":        "Helm",
	"config.k8s.io/owning-inventory":   "kpt",
	"configsync.gke.io/resource-id":    "Config Sync",
	"configmanagement.gke.io/managed":  "Config Sync",
	"fleet.cattle.io/bundle-id":        "Fleet",
}

// deployers are prefixes of the field managers of such tools.
var deployers = []string{"argocd", "kustomize-controller", "helm", "flux", "Terraform", "pulumi", "kpt", "configsync"}

// OriginOf returns the origin of a policy.
func OriginOf(p *v1alpha1.AccessControlPolicy) Origin {
	out := Origin{Kind: FromOther, At: p.CreationTimestamp.Time}
	for i := range p.ManagedFields {
		m := &p.ManagedFields[i]
		if m.Subresource != "" || m.FieldsV1 == nil || !strings.Contains(m.FieldsV1.GetRawString(), `"f:statements"`) {
			continue
		}
		if m.Time == nil || m.Time.Time.Before(out.At) && out.Manager != "" {
			continue
		}
		out.Manager, out.At = m.Manager, m.Time.Time
	}
	tracker := ""
	for key, tool := range trackers {
		if p.Labels[key] != "" || p.Annotations[key] != "" {
			tracker = max(tracker, tool) // deterministic if there are several
		}
	}
	switch {
	case p.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByPortal:
		out.Kind = FromPortal
	case tracker != "":
		out.Kind, out.Manager = FromGitOps, tracker
	case begins(out.Manager, deployers):
		out.Kind = FromGitOps
	case strings.HasPrefix(out.Manager, "kubectl"):
		out.Kind = FromKubectl
	}
	return out
}

func begins(text string, heads []string) bool {
	for _, h := range heads {
		if strings.HasPrefix(text, h) {
			return true
		}
	}
	return false
}
