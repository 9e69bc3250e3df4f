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

// endpointParts are the needed fields of an encoded endpoint.
type endpointParts struct {
	namespace, cluster string
	labels             []string
}

// These are limits of what an endpoint may contain, in bytes. Names and labels become part of edges, of which there are many in
// memory, so their lengths must not be the source's choice. maxName is the length of the longest name that Kubernetes permits. A
// label of Cilium has a prefix, a key of at most 317 bytes that may follow another prefix, and a value that may be a name.
const (
	maxName  = 253
	maxLabel = 1024
)

func (p *endpointParts) validate() error {
	ok, short := utf8.ValidString(p.namespace) && utf8.ValidString(p.cluster), len(p.namespace) <= maxName && len(p.cluster) <= maxName
	for _, l := range p.labels {
		ok, short = ok && utf8.ValidString(l), short && len(l) <= maxLabel
	}
	switch {
	case !ok:
		return fmt.Errorf("%w: an endpoint has text that is not UTF-8", errUnreadable)
	case !short:
		return fmt.Errorf("%w: an endpoint has a name or a label that is longer than Kubernetes permits", errUnreadable)
	}
	return nil
}

// endpoint derives the endpoint from the labels of its identity. An endpoint with an unknown identity is reserved, and only "*"
// matches it. Address and port belong to the event and stay empty.
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
			// Hubble writes "reserved:host"; some versions append "=".
			reserved[strings.TrimSuffix(l[len(prefixReserved):], "=")] = true
		case strings.HasPrefix(l, prefixCIDR):
			reserved["world"] = true
		case strings.HasPrefix(l, prefixIstio+labelServiceAccount+"="):
			out.ServiceAccount = l[len(prefixIstio+labelServiceAccount+"="):]
		}
	}
	outside := reserved["world"] || reserved["world-ipv4"] || reserved["world-ipv6"]
	switch {
	case reserved["host"]:
		out.Kind, out.Identity = audit.KindLocalHost, "host"
	case outside && len(labels) == 0 && !reserved["remote-node"]:
		out.Kind, out.Identity, out.Cluster = audit.KindOutside, "", ""
	case out.ServiceAccount != "":
		out.Kind, out.Identity = audit.KindWorkload, ""
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

// firstReserved returns the alphabetically first label, so that an identity with several labels always gets the same name.
func firstReserved(reserved map[string]bool) string {
	best := ""
	for name := range reserved {
		if best == "" || name < best {
			best = name
		}
	}
	return best
}

// maxEndpoints bounds the number of cached endpoints, bytesPerEndpoint their average size in bytes, and maxEncoded the length in
// bytes of an encoded endpoint that is read. The pods with the most labels need a few thousand bytes. bytesPerLabel is what a label
// takes in addition to its text.
const (
	maxEndpoints     = 40_000
	bytesPerEndpoint = 4096
	maxEncoded       = 64 << 10
	bytesPerLabel    = 64
)

// endpoints caches decoded endpoints: a fleet has far fewer of them than flows. Encodings with the same meaning, such as the pods
// of one workload, share one value, so that few pairs of endpoints have to be cached. When the cache is full it is cleared, and
// the same endpoint gets a new pointer; decisions that are cached by pairs of pointers must then be dropped by onReset.
//
// Every endpoint is cached. An endpoint that is not would have a new pointer each time, and each pointer a decision.
type endpoints struct {
	limit      int
	bytes      int                        // what the cached endpoints take in memory, approximately
	byEncoding map[string]*audit.Endpoint // by encoding
	byKey      map[string]*audit.Endpoint // by canonical key
	onReset    func()
}

func newEndpoints(limit int, dropped func()) *endpoints {
	return &endpoints{limit: limit, byEncoding: map[string]*audit.Endpoint{}, byKey: map[string]*audit.Endpoint{}, onReset: dropped}
}

// canonicalKey returns a text that is equal for endpoints with equal content, and only for those.
func canonicalKey(e *audit.Endpoint) string {
	b := []byte(e.Kind)
	for _, part := range []string{e.Identity, e.Namespace, e.Cluster, e.ServiceAccount} {
		b = strconv.AppendQuote(b, part)
	}
	for _, k := range slices.Sorted(maps.Keys(e.Labels)) {
		b = strconv.AppendQuote(strconv.AppendQuote(b, k), e.Labels[k])
	}
	return string(b)
}

// get decodes the endpoint. It nearly always returns the same pointer for the same bytes. The caller must not change the
// endpoint.
func (c *endpoints) get(encoded []byte) (*audit.Endpoint, error) {
	if e := c.byEncoding[string(encoded)]; e != nil {
		return e, nil
	}
	if len(encoded) > maxEncoded {
		return nil, fmt.Errorf("%w: an endpoint has %d bytes, at most %d are read", errUnreadable, len(encoded), maxEncoded)
	}
	parts, err := parseEndpoint(encoded)
	if err != nil {
		return nil, err
	}
	e := parts.endpoint()
	m := canonicalKey(&e)
	size := len(encoded) + len(m) + len(encoded) + bytesPerLabel*len(e.Labels)
	if len(c.byEncoding) >= c.limit || c.bytes+size > c.limit*bytesPerEndpoint {
		c.byEncoding, c.byKey, c.bytes = map[string]*audit.Endpoint{}, map[string]*audit.Endpoint{}, 0
		c.onReset()
	}
	same := c.byKey[m]
	if same == nil {
		same = &e
		c.byKey[m] = same
	} else {
		size = len(encoded)
	}
	c.bytes += size
	c.byEncoding[string(encoded)] = same
	return same, nil
}
