package foreignpolicy

import (
	"net/netip"
	"slices"
	"strings"
	"unique"
)

// Label is one label of an endpoint. The key of a label that does not come from Kubernetes begins with its source and a
// colon, as in "reserved:host"; Kubernetes keys contain no colon.
type Label struct{ Key, Value string }

// Handle is an interned Label, which is stored once for all endpoints.
type Handle = unique.Handle[Label]

// Sources of labels in Cilium's terms.
const (
	anySource      = "any"
	k8sSource      = "k8s"
	reservedSource = "reserved"
	groupSource    = "cidrgroup"
)

// Keys of labels that Cilium adds to the identities of pods.
const (
	namespaceKey       = "io.kubernetes.pod.namespace"
	namespaceLabelsKey = "io.cilium.k8s.namespace.labels"
	clusterKey         = "io.cilium.k8s.policy.cluster"
	groupNameKey       = "io.cilium.policy.cidrgroupname/"
)

type operator uint8

const (
	opIn operator = iota
	opNotIn
	opExists
	opAbsent
)

// requirement is one condition on an endpoint's labels.
type requirement struct {
	source, key string
	op          operator
	// values are sorted.
	values []string
}

// selectorKind is the kind of objects that a selector selects.
type selectorKind uint8

const (
	// byLabels selects endpoints by their labels.
	byLabels selectorKind = iota
	// byPrefix selects addresses outside the cluster mesh.
	byPrefix
	// byGroup selects such addresses by the labels of their groups.
	byGroup
	// opaque is a selector that could not be parsed and may select anything.
	opaque
)

// selector selects endpoints or addresses; all of its conditions must hold.
type selector struct {
	kind selectorKind
	// reqs are conditions on labels, or on the labels of groups.
	reqs []requirement
	// local limits the selector to pods of the policy's own cluster.
	local  bool
	prefix netip.Prefix
	except []netip.Prefix
	// text identifies the selector: selectors with equal texts select the same.
	text string
}

// checks returns how many conditions, at least one, a comparison with a source or a pod evaluates at most.
func (s *selector) checks() int { return 1 + len(s.reqs) + len(s.except) }

// everySource returns a selector of every source.
func everySource() selector { return withText(selector{}) }

// unknownSelector returns a selector that may select anything.
func unknownSelector() selector { return withText(selector{kind: opaque}) }

// withText sets the text of a selector.
func withText(s selector) selector {
	var b strings.Builder
	b.WriteByte('0' + byte(s.kind))
	if s.local {
		b.WriteByte('l')
	}
	if s.kind == byPrefix {
		b.WriteString(s.prefix.String())
	}
	for _, p := range s.except {
		b.WriteByte('-')
		b.WriteString(p.String())
	}
	slices.SortFunc(s.reqs, func(a, b requirement) int { return strings.Compare(a.source+":"+a.key, b.source+":"+b.key) })
	for _, r := range s.reqs {
		b.WriteByte('\n')
		b.WriteString(r.source + ":" + r.key)
		b.WriteByte('0' + byte(r.op))
		for _, v := range r.values {
			b.WriteByte('\t')
			b.WriteString(v)
		}
	}
	s.text = b.String()
	return s
}

// splitKey returns the source and the key of a label in a selector. A missing source is replaced by assumed.
func splitKey(key, assumed string) (string, string) {
	if source, rest, ok := strings.Cut(key, ":"); ok && source != "" {
		return source, rest
	}
	return assumed, strings.TrimPrefix(key, ":")
}

// parseSelector parses a label selector. In doubt it returns a selector that may select anything.
func parseSelector(written any, source string) selector {
	m, ok := written.(map[string]any)
	if !ok {
		return unknownSelector()
	}
	var s selector
	for field, value := range m {
		switch field {
		case "matchLabels":
			pairs, ok := value.(map[string]any)
			if !ok && value != nil {
				return unknownSelector()
			}
			for k, v := range pairs {
				text, ok := v.(string)
				if !ok {
					return unknownSelector()
				}
				from, key := splitKey(k, source)
				s.reqs = append(s.reqs, requirement{from, key, opIn, []string{text}})
			}
		case "matchExpressions":
			list, ok := value.([]any)
			if !ok && value != nil {
				return unknownSelector()
			}
			for _, e := range list {
				r, ok := parseExpression(e, source)
				if !ok {
					return unknownSelector()
				}
				s.reqs = append(s.reqs, r)
			}
		default:
			return unknownSelector()
		}
	}
	for _, r := range s.reqs {
		switch r.source {
		case anySource, k8sSource, reservedSource, groupSource:
		default:
			return unknownSelector()
		}
	}
	return withText(s)
}

var operators = map[string]operator{"In": opIn, "NotIn": opNotIn, "Exists": opExists, "DoesNotExist": opAbsent}

func parseExpression(written any, source string) (requirement, bool) {
	m, ok := written.(map[string]any)
	if !ok {
		return requirement{}, false
	}
	key, isText := m["key"].(string)
	text, _ := m["operator"].(string)
	op, known := operators[text]
	if !isText || !known {
		return requirement{}, false
	}
	r := requirement{op: op}
	r.source, r.key = splitKey(key, source)
	list, ok := m["values"].([]any)
	if !ok && m["values"] != nil {
		return requirement{}, false
	}
	for _, v := range list {
		value, ok := v.(string)
		if !ok {
			return requirement{}, false
		}
		r.values = append(r.values, value)
	}
	slices.Sort(r.values)
	r.values = slices.Compact(r.values)
	if needs := op == opIn || op == opNotIn; needs != (len(r.values) > 0) {
		return requirement{}, false
	}
	return r, true
}

// names reports whether the selector has a condition on a label of one of the sources. A key that ends in a slash or a
// dot matches all keys that begin with it.
func (s selector) names(key string, sources ...string) bool {
	return slices.ContainsFunc(s.reqs, func(r requirement) bool {
		return slices.Contains(sources, r.source) &&
			(r.key == key || key == "" || (strings.HasSuffix(key, "/") || strings.HasSuffix(key, ".")) && strings.HasPrefix(r.key, key))
	})
}

// with returns the selector with an additional condition.
func (s selector) with(r requirement) selector {
	if s.kind == opaque {
		return s
	}
	s.reqs = append(slices.Clone(s.reqs), r)
	return withText(s)
}

// inOwnCluster returns the selector limited to the policy's own cluster.
func (s selector) inOwnCluster() selector {
	if s.kind == opaque {
		return s
	}
	s.local = true
	return withText(s)
}

// reserved returns a selector of Cilium's reserved identity of that name.
func reserved(name string) selector {
	return withText(selector{reqs: []requirement{{reservedSource, name, opExists, nil}}})
}

// contains reports whether a value is among those of the condition. There may be very many.
func (r *requirement) contains(value string) bool {
	_, found := slices.BinarySearch(r.values, value)
	return found
}

// holds reports whether a condition holds for a label that an endpoint has or lacks.
func (r *requirement) holds(value string, has bool) bool {
	switch r.op {
	case opIn:
		return has && r.contains(value)
	case opNotIn:
		return !has || !r.contains(value)
	case opExists:
		return has
	default:
		return !has
	}
}

// is reports whether the condition is about labels with that key.
func (r *requirement) is(key string) bool {
	source, rest, ok := strings.Cut(key, ":")
	if !ok {
		return r.key == key && (r.source == k8sSource || r.source == anySource)
	}
	return r.key == rest && (r.source == source || r.source == anySource)
}

// matchesLabels reports whether all conditions hold for an endpoint with the labels.
func (s *selector) matchesLabels(labels []Handle) bool {
	for i := range s.reqs {
		r := &s.reqs[i]
		value, has := "", false
		for _, h := range labels {
			if l := h.Value(); r.is(l.Key) {
				value, has = l.Value, true
				break
			}
		}
		if !r.holds(value, has) {
			return false
		}
	}
	return true
}
