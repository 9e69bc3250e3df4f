package federation

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// AnnotationHubble of a KubeFedCluster declares, as YAML or JSON, how the flow collector reaches the member's Hubble relay. The fields are
// those of Relay.
const AnnotationHubble = "acp.io/hubble"

// maxRelayDeclaration is the number of bytes of the longest declaration that is parsed: an authority of several certificates fits.
const maxRelayDeclaration = 64 << 10

// Relay is what a registration declares about the member's Hubble relay.
type Relay struct {
	// Address is HOST:PORT.
	Address string `json:"address"`
	// ServerName is the name in the relay's certificate. Default: that of the collector's settings.
	ServerName string `json:"serverName,omitempty"`
	// Authority contains the certificates, in PEM, of the authority that signs the relay's certificate. Default: that of the collector's
	// settings.
	Authority string `json:"ca,omitempty"`
	// WithoutProxy reports whether the relay is reached directly although the registration has a proxyURL.
	WithoutProxy bool `json:"withoutProxy,omitempty"`

	// Proxy is the proxy of the registration, through which the relay is reached; nil without one.
	Proxy *url.URL `json:"-"`
}

// RegisteredRelay is the relay of one registration. Relay is nil if it declares none. Problem is the reason why a declaration cannot be used.
type RegisteredRelay struct {
	Member  string
	Relay   *Relay
	Problem error
}

// NewRelayWatch returns a watch of the relays that the KubeFedClusters in a namespace of the host declare. It calls changed after every
// change, see NewWatch.
func NewRelayWatch(host dynamic.Interface, namespace string, log logr.Logger, changed func(name string)) *Watch[RegisteredRelay] {
	return NewWatch(host.Resource(clusterResource).Namespace(namespace), clusterResource.Resource, log, parseRegisteredRelay, changed)
}

// parseRegisteredRelay parses what a KubeFedCluster declares about its relay. A declaration that cannot be used is no error, but its Problem.
func parseRegisteredRelay(u *unstructured.Unstructured) (RegisteredRelay, error) {
	out := RegisteredRelay{Member: u.GetName()}
	text, declared := u.GetAnnotations()[AnnotationHubble]
	if !declared {
		return out, nil
	}
	proxy, _, err := unstructured.NestedString(u.Object, "spec", "proxyURL")
	if err != nil {
		return out, fmt.Errorf("read KubeFedCluster %s: %w", u.GetName(), err)
	}
	if out.Relay, err = parseRelay(text, proxy); err != nil {
		out.Relay, out.Problem = nil, fmt.Errorf("annotation %s: %w", AnnotationHubble, err)
	}
	return out, nil
}

func parseRelay(text, proxy string) (*Relay, error) {
	if len(text) > maxRelayDeclaration {
		return nil, fmt.Errorf("it has more than %d bytes", maxRelayDeclaration)
	}
	r := &Relay{}
	if err := yaml.UnmarshalStrict([]byte(text), r); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(r.Address)
	if err != nil || host == "" || port == "" {
		return nil, fmt.Errorf("address %q is not HOST:PORT", r.Address)
	}
	if r.Authority != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(r.Authority)) {
		return nil, errors.New("ca has no PEM certificate")
	}
	if proxy != "" && !r.WithoutProxy {
		if r.Proxy, err = url.Parse(proxy); err != nil {
			return nil, errors.New("the proxyURL of the registration is not a URL") // err would repeat a password in it
		}
	}
	return r, nil
}

// Equal reports whether both declare the same.
func (r *Relay) Equal(s *Relay) bool {
	if r == nil || s == nil {
		return r == s
	}
	return r.Address == s.Address && r.ServerName == s.ServerName && r.Authority == s.Authority && proxyText(r.Proxy) == proxyText(s.Proxy)
}

func proxyText(u *url.URL) string {
	if u == nil {
		return ""
	}
	return u.String()
}
