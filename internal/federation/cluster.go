package federation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	fedcommon "sigs.k8s.io/kubefed/pkg/apis/core/common"
	fedv1beta1 "sigs.k8s.io/kubefed/pkg/apis/core/v1beta1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/message"
)

// Cluster is a member as its KubeFedCluster registers it.
type Cluster struct {
	Name     string
	Labels   map[string]string
	Endpoint string
	CABundle []byte
	ProxyURL string
	// LaxTLS reports whether the registration disables checks of the member's certificate.
	LaxTLS bool
	// Leaving reports whether nothing may be placed in the member any more.
	Leaving bool
	// Secret is the name of KubeFed's own Secret for the member, even while the member is quarantined.
	Secret string
	// ReadyForKubeFed reports whether KubeFed finds the member ready.
	ReadyForKubeFed bool
	// Quarantined reports whether propagation to the member is suspended, whichever its engine, for QuarantineReason.
	Quarantined      bool
	QuarantineReason message.Message
	// DowngradeMark is the mark of the downgrade that caused the quarantine, or nil if there is none or another reason.
	DowngradeMark *guard.DowngradeMark
	// Istio is the member's declaration about its Istio; "" means that no Istio there can enforce policies.
	Istio string
	// noIstio is whether the declaration that was parsed means that no Istio enforces there.
	noIstio noIstio
	// Mesh is the cluster mesh that the member declares: NoMesh, a name, or "" for the mesh of all members that declare
	// nothing.
	Mesh string
	// Enforcer is the enforcer that the member declares by AnnotationEnforcer; "" means Cilium.
	Enforcer string
	// Engine is the propagation engine that AnnotationEngine selects.
	Engine Engine
	// FormerEngine is the engine that AnnotationFormerEngine names, from which the member is moving, or "".
	FormerEngine Engine
	// Profile is the ClusterProfile that AnnotationClusterProfile names, or "".
	Profile string
	// Locations are the locations of the parts of its dataplane.
	Locations Locations
	// AnnouncedToken is the fingerprint of the last token that was announced to KubeFed, or "".
	AnnouncedToken string
}

// noIstio is the result of istio.DeclaresNone for a declaration, which is too expensive for each resource.
type noIstio struct {
	declared string
	is       bool
}

// ParseCluster parses a KubeFedCluster.
func ParseCluster(u *unstructured.Unstructured) (Cluster, error) {
	var c fedv1beta1.KubeFedCluster
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &c); err != nil {
		return Cluster{}, fmt.Errorf("read KubeFedCluster %s: %w", u.GetName(), err)
	}
	secret, held := c.Spec.SecretRef.Name, false
	if kept := c.Annotations[AnnotationQuarantinedSecret]; secret == quarantineSecret && kept != "" {
		secret, held = kept, true
	}
	var mark *guard.DowngradeMark
	if text, downgraded := c.Annotations[AnnotationDowngraded]; downgraded && held {
		mark = &guard.DowngradeMark{}
		if err := json.Unmarshal([]byte(text), mark); err != nil {
			mark = &guard.DowngradeMark{} // the presence of the mark is what counts
		}
	}
	mesh := c.Annotations[AnnotationMesh]
	if c.Annotations[AnnotationEnforcer] == string(v1alpha1.EnforcerIstio) {
		mesh = NoMesh // without Cilium, its pods have no identities for other members
	}
	return Cluster{
		DowngradeMark:    mark,
		Name:             c.Name,
		Labels:           c.Labels,
		Endpoint:         c.Spec.APIEndpoint,
		CABundle:         c.Spec.CABundle,
		ProxyURL:         c.Spec.ProxyURL,
		LaxTLS:           len(c.Spec.DisabledTLSValidations) > 0,
		Leaving:          c.Annotations[AnnotationLeaving] != "",
		Secret:           secret,
		ReadyForKubeFed:  readyForKubeFed(&c.Status),
		Quarantined:      held,
		QuarantineReason: message.OfText(c.Annotations[AnnotationQuarantineReason], message.Decode(c.Annotations[AnnotationQuarantineMessage])),
		Istio:            c.Annotations[AnnotationIstio],
		noIstio:          noIstio{c.Annotations[AnnotationIstio], istio.DeclaresNone(c.Annotations[AnnotationIstio])},
		Mesh:             mesh,
		Enforcer:         c.Annotations[AnnotationEnforcer],
		Engine:           ParseEngine(c.Annotations[AnnotationEngine]),
		FormerEngine:     Engine(c.Annotations[AnnotationFormerEngine]),
		Profile:          c.Annotations[AnnotationClusterProfile],
		Locations:        ParseLocations(c.Annotations),
		AnnouncedToken:   c.Annotations[AnnotationRenewed],
	}, nil
}

func readyForKubeFed(s *fedv1beta1.KubeFedClusterStatus) bool {
	return slices.ContainsFunc(s.Conditions, func(c fedv1beta1.ClusterCondition) bool {
		return c.Type == fedcommon.ClusterReady && c.Status == corev1.ConditionTrue
	})
}

// ErrPlacement is returned for a placement that cannot be resolved.
var ErrPlacement = errors.New("placement cannot be resolved")

// Resolve converts a class's placement into explicit names, sorted. Names that no KubeFedCluster has are kept, so that
// the status can report them as missing. Members that are leaving are left out.
func Resolve(p v1alpha1.Placement, clusters []Cluster) ([]string, error) {
	var names []string
	switch {
	case p.Clusters != nil && p.ClusterSelector == nil:
		for _, n := range *p.Clusters {
			names = append(names, string(n))
		}
	case p.ClusterSelector != nil && p.Clusters == nil:
		selector, err := metav1.LabelSelectorAsSelector(p.ClusterSelector)
		if err != nil {
			return nil, fmt.Errorf("%w: clusterSelector: %w", ErrPlacement, err)
		}
		for i := range clusters {
			if selector.Matches(labels.Set(clusters[i].Labels)) {
				names = append(names, clusters[i].Name)
			}
		}
	default:
		return nil, fmt.Errorf("%w: it needs exactly one of clusters and clusterSelector", ErrPlacement)
	}
	var leaving []string // nearly always none
	for i := range clusters {
		if clusters[i].Leaving {
			leaving = append(leaving, clusters[i].Name)
		}
	}
	names = slices.DeleteFunc(names, func(n string) bool { return slices.Contains(leaving, n) })
	slices.Sort(names)
	return slices.Compact(names), nil
}

func byName(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) }

// SameConnection reports whether both clusters are reached with the same address, certificate and proxy.
func (c Cluster) SameConnection(d Cluster) bool {
	return c.Endpoint == d.Endpoint && c.ProxyURL == d.ProxyURL && c.LaxTLS == d.LaxTLS && bytes.Equal(c.CABundle, d.CABundle)
}

// samePlacementAndStatus reports whether placement and status of the two are the same.
func (c Cluster) samePlacementAndStatus(d Cluster) bool {
	return maps.Equal(c.Labels, d.Labels) && c.Leaving == d.Leaving && c.Quarantined == d.Quarantined && c.QuarantineReason == d.QuarantineReason &&
		c.Istio == d.Istio &&
		c.Mesh == d.Mesh &&
		c.Enforcer == d.Enforcer &&
		c.Engine == d.Engine &&
		c.FormerEngine == d.FormerEngine &&
		c.Secret == d.Secret &&
		c.SharedWithKubeFed() == d.SharedWithKubeFed() &&
		c.Locations == d.Locations &&
		sameMark(c.DowngradeMark, d.DowngradeMark)
}

func sameMark(a, b *guard.DowngradeMark) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Same(*b))
}

// WithoutCilium reports whether the member declares that Istio alone enforces there.
func (c Cluster) WithoutCilium() bool { return c.Enforcer == string(v1alpha1.EnforcerIstio) }

// WithoutIstio reports whether the member declares that no Istio enforces there, so that it gets no object of Istio's.
// The declaration of a Cluster that ParseCluster returned is not parsed again.
func (c Cluster) WithoutIstio() bool {
	if c.Istio == c.noIstio.declared {
		return c.noIstio.is
	}
	return istio.DeclaresNone(c.Istio)
}

// NeedsIstioKind reports whether the member has to serve the kind of Istio's policies, if the host distributes them. KubeFed lists the objects of each
// kind in each member, whatever is placed there.
func (c Cluster) NeedsIstioKind() bool { return c.Engine.IsKubeFed() || !c.WithoutIstio() }

// SameMesh reports whether the pods of both members share one set of identities, so that each member can identify the
// pods of the other.
func (c Cluster) SameMesh(d Cluster) bool {
	return c.Name == d.Name || c.Mesh == d.Mesh && c.Mesh != NoMesh
}
