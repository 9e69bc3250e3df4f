// Package inventory reads ClusterProfiles (multicluster.x-k8s.io), by which a cluster manager describes the clusters of its inventory. ACP
// takes addresses from them and compares members with them; it neither trusts nor uses credentials of an inventory, and writes nothing there.
package inventory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/internal/federation"
)

// Resource is the resource of ClusterProfiles.
var Resource = schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "clusterprofiles"}

// conditionHealthy is the condition by which a cluster manager reports on the control plane of a cluster.
const conditionHealthy = "ControlPlaneHealthy"

// Profile contains the fields of a ClusterProfile that ACP uses.
type Profile struct {
	Name types.NamespacedName
	// Manager is the cluster manager that owns the ClusterProfile.
	Manager string
	// Deleting reports whether its deletion was requested.
	Deleting bool
	// Healthy is the status of the condition ControlPlaneHealthy. It is Unknown if the condition is missing, or about an earlier generation.
	Healthy metav1.ConditionStatus
	// Reason is the reason of the condition, or "".
	Reason string
	// Access are the ways to the cluster, by the names of their providers.
	Access []Access
}

// Access is one way to a cluster.
type Access struct {
	Provider, Endpoint string
	CABundle           []byte
	ProxyURL           string
	// ServerName is the name that the certificate must have, if it is not that of the endpoint.
	ServerName string
	// LaxTLS reports whether the certificate is not to be verified.
	LaxTLS bool
}

// object is a ClusterProfile, as far as it is read.
type object struct {
	Spec struct {
		ClusterManager struct {
			Name string `json:"name"`
		} `json:"clusterManager"`
	} `json:"spec"`
	Status struct {
		Conditions          []metav1.Condition `json:"conditions"`
		CredentialProviders []accessProvider   `json:"credentialProviders"`
		AccessProviders     []accessProvider   `json:"accessProviders"`
	} `json:"status"`
}

type accessProvider struct {
	Name    string `json:"name"`
	Cluster struct {
		Server                   string `json:"server"`
		TLSServerName            string `json:"tls-server-name"`
		InsecureSkipTLSVerify    bool   `json:"insecure-skip-tls-verify"`
		CertificateAuthorityData string `json:"certificate-authority-data"`
		ProxyURL                 string `json:"proxy-url"`
	} `json:"cluster"`
}

// ParseName parses NAMESPACE/NAME.
func ParseName(text string) (types.NamespacedName, error) {
	namespace, name, _ := strings.Cut(text, "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return types.NamespacedName{}, fmt.Errorf("%q is not NAMESPACE/NAME", text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// Parse parses a ClusterProfile. Of two providers of the same name, the one in accessProviders counts, as the API says.
func Parse(u *unstructured.Unstructured) (Profile, error) {
	p := Profile{Name: types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}, Deleting: u.GetDeletionTimestamp() != nil,
		Healthy: metav1.ConditionUnknown}
	var o object
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
		return p, fmt.Errorf("%w: %s: %w", ErrMalformed, p.Name, err)
	}
	p.Manager = o.Spec.ClusterManager.Name
	if c := meta.FindStatusCondition(o.Status.Conditions, conditionHealthy); c != nil &&
		(c.ObservedGeneration == 0 || c.ObservedGeneration >= u.GetGeneration()) {
		p.Healthy, p.Reason = c.Status, c.Reason
	}
	for _, a := range slices.Concat(o.Status.AccessProviders, o.Status.CredentialProviders) {
		if slices.ContainsFunc(p.Access, func(b Access) bool { return b.Provider == a.Name }) {
			continue
		}
		ca, err := base64.StdEncoding.DecodeString(a.Cluster.CertificateAuthorityData)
		if err != nil {
			return p, fmt.Errorf("%w: %s: the certificate authority of the access provider %q is not base64", ErrMalformed, p.Name, a.Name)
		}
		p.Access = append(p.Access, Access{Provider: a.Name, Endpoint: a.Cluster.Server, CABundle: ca, ProxyURL: a.Cluster.ProxyURL,
			ServerName: a.Cluster.TLSServerName, LaxTLS: a.Cluster.InsecureSkipTLSVerify})
	}
	slices.SortFunc(p.Access, func(a, b Access) int { return cmp.Compare(a.Provider, b.Provider) })
	return p, nil
}

// ErrMalformed means that a ClusterProfile was read, but that its content cannot be parsed.
var ErrMalformed = errors.New("the ClusterProfile cannot be parsed")

// Get reads a ClusterProfile from the host. The error is NotFound of the API, too, if the host does not serve the kind.
func Get(ctx context.Context, host dynamic.Interface, name types.NamespacedName) (Profile, error) {
	u, err := host.Resource(Resource).Namespace(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if err != nil {
		return Profile{}, fmt.Errorf("read ClusterProfile %s: %w", name, err)
	}
	return Parse(u)
}

// ErrUnusable means that a ClusterProfile does not contain what ACP needs to connect to the cluster.
var ErrUnusable = errors.New("the ClusterProfile cannot be used")

// Use returns the way to the cluster that a provider describes. provider may be "" if all ways are the same.
func (p Profile) Use(provider string) (Access, error) {
	if p.Deleting {
		return Access{}, fmt.Errorf("%w: %s is being deleted", ErrUnusable, p.Name)
	}
	var names []string
	found := slices.Clone(p.Access)
	for _, a := range p.Access {
		names = append(names, a.Provider)
	}
	if provider != "" {
		found = slices.DeleteFunc(found, func(a Access) bool { return a.Provider != provider })
	}
	switch {
	case len(p.Access) == 0:
		return Access{}, fmt.Errorf("%w: the status of %s has no access provider, and so no address", ErrUnusable, p.Name)
	case len(found) == 0:
		return Access{}, fmt.Errorf("%w: %s has no access provider %q, but %s", ErrUnusable, p.Name, provider, strings.Join(names, ", "))
	case slices.ContainsFunc(found, func(a Access) bool { return !a.sameWay(found[0]) }):
		return Access{}, fmt.Errorf("%w: the access providers of %s differ, choose one: %s", ErrUnusable, p.Name, strings.Join(names, ", "))
	}
	a := found[0]
	switch {
	case a.LaxTLS:
		return Access{}, fmt.Errorf("%w: %s says not to verify the certificate of the API server (insecure-skip-tls-verify)", ErrUnusable, p.Name)
	case a.ServerName != "":
		return Access{}, fmt.Errorf("%w: %s says that the certificate is of another name than the address (tls-server-name), which a KubeFedCluster cannot say",
			ErrUnusable, p.Name)
	}
	return a, nil
}

func (a Access) sameWay(b Access) bool {
	return federation.Address(a.Endpoint) == federation.Address(b.Endpoint) && a.ProxyURL == b.ProxyURL && a.ServerName == b.ServerName &&
		a.LaxTLS == b.LaxTLS && SameAuthority(a.CABundle, b.CABundle)
}

// Has reports whether one of the ways has the address of a registration. A way without a certificate authority matches any authority.
func (p Profile) Has(c federation.Cluster) bool {
	return slices.ContainsFunc(p.Access, func(a Access) bool {
		return federation.Address(a.Endpoint) == federation.Address(c.Endpoint) && a.ProxyURL == c.ProxyURL &&
			(len(a.CABundle) == 0 || SameAuthority(a.CABundle, c.CABundle))
	})
}

// SameAuthority reports whether two PEM bundles contain the same blocks in the same order, whatever is between them.
func SameAuthority(a, b []byte) bool {
	return slices.EqualFunc(blocks(a), blocks(b), bytes.Equal)
}

func blocks(text []byte) [][]byte {
	var out [][]byte
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return out
		}
		out = append(out, block.Bytes)
	}
}
