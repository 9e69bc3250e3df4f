package federation

import (
	"slices"
	"strconv"
	"sync"

	"github.com/acp-io/acp/internal/enforcer/istio"
)

// OwnAllowed describes what one of ACP's own AuthorizationPolicies lets in to the pods with all of some labels.
type OwnAllowed struct {
	labels  []Label
	allowed *istio.Allowed
}

// OwnAllows parses what ACP's own policies let in to a member, from the host's objects. Each is parsed once for all
// members.
type OwnAllows struct {
	mu   sync.Mutex
	read map[ownKey]ownAllow
}

type ownAllow struct {
	of   *Object
	lets *OwnAllowed
}

// In returns the policies with the action ALLOW that are placed in a member.
func (o *OwnAllows) In(cluster string, objects *Objects) []*OwnAllowed {
	return o.from(cluster, objects.List())
}

func (o *OwnAllows) from(cluster string, all []*Object) []*OwnAllowed {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.read == nil {
		o.read = map[ownKey]ownAllow{}
	}
	var out []*OwnAllowed
	for _, object := range all {
		spec, key := object.SpecIn(cluster), ownKey{name: object.Meta.Name}
		if spec == nil {
			continue
		}
		if object.Overrides[cluster].Spec != nil {
			key.cluster = cluster
		}
		have, ok := o.read[key]
		if !ok || have.of != object {
			have = ownAllow{object, ParseOwnAllowed(spec)}
			o.read[key] = have
		}
		if have.lets != nil {
			out = append(out, have.lets)
		}
	}
	if len(o.read) > 2*len(all)+1024 {
		clear(o.read)
	}
	return out
}

// ParseOwnAllowed parses the spec of one of ACP's policies. It returns nil if the policy allows nothing, or does not select by pod
// labels alone.
func ParseOwnAllowed(spec map[string]any) *OwnAllowed {
	selector, _ := spec["selector"].(map[string]any)
	labels, _ := selector["matchLabels"].(map[string]any)
	if spec["action"] != "ALLOW" || len(labels) == 0 || len(selector) != 1 {
		return nil
	}
	out := &OwnAllowed{allowed: istio.ParseAllowed(spec, IstioPolicy.Namespace)}
	for key, v := range labels {
		value, ok := v.(string)
		if !ok {
			return nil
		}
		out.labels = append(out.labels, Label{Key: key, Value: value})
	}
	return out
}

// maxAllowedChecks bounds the comparisons for one member. Policies that are not compared count as opening the pods.
const maxAllowedChecks = 2_000_000

// comparison compares which connections to pods foreign policies and ACP's own policies let in.
type comparison struct {
	own     []*OwnAllowed
	byLabel map[Label][]int
	left    int
	// known caches results by the policy and ACP's policies for the pods.
	known map[string]bool
}

func newComparison(own []*OwnAllowed) *comparison {
	c := &comparison{own: own, byLabel: map[Label][]int{}, left: maxAllowedChecks, known: map[string]bool{}}
	for i, o := range own {
		c.byLabel[o.labels[0]] = append(c.byLabel[o.labels[0]], i)
	}
	return c
}

// adds reports whether a policy may let in more than ACP's own policies do, to pods that certainly have some labels.
func (c *comparison) adds(p *IstioAllow, labels map[string]string) bool {
	var about []int
	for key, value := range labels {
		for _, i := range c.byLabel[Label{Key: key, Value: value}] {
			if !slices.ContainsFunc(c.own[i].labels, func(l Label) bool { have, ok := labels[l.Key]; return !ok || have != l.Value }) {
				about = append(about, i)
			}
		}
	}
	slices.Sort(about)
	memo := p.String()
	var own []*istio.Allowed
	for _, i := range about {
		memo += " " + strconv.Itoa(i)
		own = append(own, c.own[i].allowed)
	}
	adds, ok := c.known[memo]
	if !ok {
		adds = !p.allowed.Within(own, func() bool { c.left--; return c.left > 0 })
		c.known[memo] = adds
	}
	return adds
}
