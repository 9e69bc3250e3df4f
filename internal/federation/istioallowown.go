package federation

import (
	"slices"
	"strconv"
	"sync"

	"github.com/acp-io/acp/internal/enforcer/istio"
)

// OwnAllowed is what one of ACP's own AuthorizationPolicies lets in to the pods with all of some labels.
type OwnAllowed struct {
	labels  []Label
	allowed *istio.Allowed
}

// OwnAllows reads what ACP's own policies let in to a member, from what the host has of them. Each is read once for all members.
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
			have = ownAllow{object, parseOwnAllowed(spec)}
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

// parseOwnAllowed reads one of ACP's policies; nil: it lets in nobody, or not by the labels of pods alone.
func parseOwnAllowed(spec map[string]any) *OwnAllowed {
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

// mostAllowedChecks bounds what is compared for one member. What is not compared counts as opened.
const mostAllowedChecks = 2_000_000

// comparison compares what policies of others let in to pods with what ACP's own let in to them.
type comparison struct {
	own     []*OwnAllowed
	byLabel map[Label][]int
	left    int
	// known are the answers, by the policy and ACP's that are about the pods.
	known map[string]bool
}

func newComparison(own []*OwnAllowed) *comparison {
	c := &comparison{own: own, byLabel: map[Label][]int{}, left: mostAllowedChecks, known: map[string]bool{}}
	for i, o := range own {
		c.byLabel[o.labels[0]] = append(c.byLabel[o.labels[0]], i)
	}
	return c
}

// adds tells whether a policy may let in more to pods that surely have some labels than ACP's own policies do.
func (c *comparison) adds(p *Opening, labels map[string]string) bool {
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
