package hubble

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/acp-io/acp/internal/audit"
)

const (
	prefixK8s      = "k8s:"
	prefixReserved = "reserved:"
	prefixCIDR     = "cidr:"
	labelCluster   = "io.cilium.k8s.policy.cluster"
	labelNamespace = "io.kubernetes.pod.namespace"
)

// endpointParts are what is needed of an encoded endpoint.
type endpointParts struct {
	namespace, cluster string
	labels             []string
}

func (p *endpointParts) validate() error {
	ok := utf8.ValidString(p.namespace) && utf8.ValidString(p.cluster)
	for _, l := range p.labels {
		ok = ok && utf8.ValidString(l)
	}
	if !ok {
		return fmt.Errorf("%w: an endpoint has text that is not UTF-8", errUnreadable)
	}
	return nil
}

// endpoint reads the labels of an identity. An endpoint whose identity is not known is nobody: only "*" matches it. The
// address and the port belong to the event.
func (p *endpointParts) endpoint() audit.Endpoint {
	out := audit.Endpoint{Kind: audit.KindReserved, Identity: "unknown", Namespace: p.namespace, Cluster: p.cluster}
	labels := map[string]string{}
	reserved := map[string]bool{}
	for _, l := range p.labels {
		switch {
		case strings.HasPrefix(l, prefixK8s):
			k, v, _ := strings.Cut(l[len(prefixK8s):], "=")
			labels[k] = v
		case strings.HasPrefix(l, prefixReserved):
			// Hubble writes "reserved:host"; some versions add "=".
			reserved[strings.TrimSuffix(l[len(prefixReserved):], "=")] = true
		case strings.HasPrefix(l, prefixCIDR):
			reserved["world"] = true
		}
	}
	outside := reserved["world"] || reserved["world-ipv4"] || reserved["world-ipv6"]
	switch {
	case reserved["host"]:
		out.Kind, out.Identity = audit.KindLocalHost, "host"
	case outside && len(labels) == 0 && !reserved["remote-node"]:
		out.Kind, out.Identity, out.Cluster = audit.KindOutside, "", ""
	case len(reserved) > 0:
		out.Identity = firstReserved(reserved)
	case len(labels) > 0:
		out.Kind, out.Identity, out.Labels = audit.KindWorkload, "", labels
		if c := labels[labelCluster]; c != "" {
			out.Cluster = c
		}
		if out.Namespace == "" {
			out.Namespace = labels[labelNamespace]
		}
	}
	return out
}

// firstReserved names an identity by one label, always the same of several.
func firstReserved(reserved map[string]bool) string {
	best := ""
	for name := range reserved {
		if best == "" || name < best {
			best = name
		}
	}
	return best
}

// maxEndpoints bounds the remembered endpoints, and maxEncoded how long one may be to be remembered.
const (
	maxEndpoints = 40_000
	maxEncoded   = 4096
)

// endpoints remembers what encoded endpoints mean: a fleet has far fewer of them than flows. Those that mean the same, such
// as the pods of one workload, are one, so that what is remembered about pairs of them is little. One that is read again
// after the memory was full is a new one, so what is remembered about pairs of them must be dropped with it.
type endpoints struct {
	limit   int
	known   map[string]*audit.Endpoint // as they are encoded
	alike   map[string]*audit.Endpoint // by their meaning
	dropped func()
}

func newEndpoints(limit int, dropped func()) *endpoints {
	return &endpoints{limit: limit, known: map[string]*audit.Endpoint{}, alike: map[string]*audit.Endpoint{}, dropped: dropped}
}

// meaning is everything that an encoded endpoint says, without ambiguity.
func meaning(e *audit.Endpoint) string {
	b := []byte(e.Kind)
	for _, part := range []string{e.Identity, e.Namespace, e.Cluster} {
		b = strconv.AppendQuote(b, part)
	}
	for _, k := range slices.Sorted(maps.Keys(e.Labels)) {
		b = strconv.AppendQuote(strconv.AppendQuote(b, k), e.Labels[k])
	}
	return string(b)
}

// of returns the endpoint, nearly always the same pointer for the same bytes. It must not be changed.
func (c *endpoints) of(encoded []byte) (*audit.Endpoint, error) {
	if e := c.known[string(encoded)]; e != nil {
		return e, nil
	}
	parts, err := readEndpoint(encoded)
	if err != nil {
		return nil, err
	}
	e := parts.endpoint()
	if len(encoded) > maxEncoded {
		return &e, nil
	}
	if len(c.known) >= c.limit {
		c.known, c.alike = map[string]*audit.Endpoint{}, map[string]*audit.Endpoint{}
		c.dropped()
	}
	m := meaning(&e)
	same := c.alike[m]
	if same == nil {
		same = &e
		c.alike[m] = same
	}
	c.known[string(encoded)] = same
	return same, nil
}
