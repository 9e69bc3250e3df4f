package federation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	fedv1beta1 "sigs.k8s.io/kubefed/pkg/apis/core/v1beta1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation/guard"
)

// Cluster is a member as its KubeFedCluster registers it.
type Cluster struct {
	Name     string
	Labels   map[string]string
	Endpoint string
	CABundle []byte
	ProxyURL string
	// LaxTLS: the registration switches off checks of the member's certificate.
	LaxTLS bool
	// Leaving: nothing is to be placed there any more.
	Leaving bool
	// Secret is the name of KubeFed's own Secret for the member, also while the member is held.
	Secret string
	// Held: KubeFed is kept from the member, because of Why.
	Held bool
	Why  string
	// Downgrade is the mark because of which it is held; nil: it is held because of something else, or not at all.
	Downgrade *guard.Downgrade
	// Istio is what the member declares of its Istio; "": it has none that enforces.
	Istio string
	// Mesh is what the member declares as its cluster mesh: NoMesh, a name, or "", which is the mesh of all who declare nothing.
	Mesh string
	// Places are where the parts of its dataplane are.
	Places Places
	// Told is the fingerprint of the token that KubeFed was last told of; "": it was told of none.
	Told string
}

// ParseCluster reads a KubeFedCluster.
func ParseCluster(u *unstructured.Unstructured) (Cluster, error) {
	var c fedv1beta1.KubeFedCluster
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &c); err != nil {
		return Cluster{}, fmt.Errorf("read KubeFedCluster %s: %w", u.GetName(), err)
	}
	secret, held := c.Spec.SecretRef.Name, false
	if kept := c.Annotations[AnnotationHeld]; secret == heldSecret && kept != "" {
		secret, held = kept, true
	}
	var mark *guard.Downgrade
	if text, downgraded := c.Annotations[AnnotationDowngraded]; downgraded && held {
		mark = &guard.Downgrade{}
		if err := json.Unmarshal([]byte(text), mark); err != nil {
			mark = &guard.Downgrade{} // what counts is that there is one
		}
	}
	return Cluster{Downgrade: mark, Name: c.Name, Labels: c.Labels, Endpoint: c.Spec.APIEndpoint, CABundle: c.Spec.CABundle,
		ProxyURL: c.Spec.ProxyURL, LaxTLS: len(c.Spec.DisabledTLSValidations) > 0,
		Leaving: c.Annotations[AnnotationLeaving] != "", Secret: secret, Held: held, Why: c.Annotations[AnnotationHeldBecause],
		Istio: c.Annotations[AnnotationIstio], Mesh: c.Annotations[AnnotationMesh], Places: ParsePlaces(c.Annotations), Told: c.Annotations[AnnotationRenewed]}, nil
}

// ErrPlacement is a placement that cannot be resolved.
var ErrPlacement = errors.New("placement cannot be resolved")

// Resolve turns a class's placement into explicit names, sorted. Names that no KubeFedCluster has are kept: they were
// asked for, and the status has to say that they are missing. Members that are leaving are in no placement.
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
		for _, c := range clusters {
			if selector.Matches(labels.Set(c.Labels)) {
				names = append(names, c.Name)
			}
		}
	default:
		return nil, fmt.Errorf("%w: it needs exactly one of clusters and clusterSelector", ErrPlacement)
	}
	names = slices.DeleteFunc(names, func(n string) bool {
		return slices.ContainsFunc(clusters, func(c Cluster) bool { return c.Name == n && c.Leaving })
	})
	slices.Sort(names)
	return slices.Compact(names), nil
}

func byName(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) }

// SameConnection tells whether both are reached in the same way.
func (c Cluster) SameConnection(d Cluster) bool {
	return c.Endpoint == d.Endpoint && c.ProxyURL == d.ProxyURL && c.LaxTLS == d.LaxTLS && bytes.Equal(c.CABundle, d.CABundle)
}

// samePlace tells whether the same is to be placed there, and to be said of it.
func (c Cluster) samePlace(d Cluster) bool {
	return maps.Equal(c.Labels, d.Labels) && c.Leaving == d.Leaving && c.Held == d.Held && c.Why == d.Why && c.Istio == d.Istio && c.Mesh == d.Mesh && c.Places == d.Places && sameMark(c.Downgrade, d.Downgrade)
}

func sameMark(a, b *guard.Downgrade) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Same(*b))
}

// SameMesh reports whether pods of both members have one set of identities, so that either member knows those of the other.
func (c Cluster) SameMesh(d Cluster) bool {
	return c.Name == d.Name || c.Mesh == d.Mesh && c.Mesh != NoMesh
}
