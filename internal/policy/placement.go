package policy

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// Cluster is a member of the fleet.
type Cluster struct {
	Name string
	// Labels are the labels by which placements select the member; nil if they are not known, so that any placement may
	// select it.
	Labels map[string]string
	// NoRequests is the reason why Cilium's HTTP rules (method, path) are not enforced in the member, or zero if they
	// are. It affects decisions about what the members have, but no unit.
	NoRequests message.Message `json:",omitzero"`
	// Dataplane contains the reported properties of its dataplane. If it is nil, defaults apply.
	Dataplane *v1alpha1.MemberDataplane `json:",omitempty"`
	// Istio is what the member declares about its Istio, or "" if it declares nothing. It affects decisions about what
	// the members have, but no unit.
	Istio string `json:",omitempty"`
	// IstioRoot is the root namespace of its Istio, or "" if it is the one that policies are carried to.
	IstioRoot string `json:",omitempty"`
}

// Member is a registered member with the data that placement depends on.
type Member struct {
	Name string
	// Labels are the labels of its registration, which placements select by.
	Labels map[string]string
	// Leaving reports whether nothing is placed in the member any more.
	Leaving bool
}

// PlacedIn returns the members that a placement selects, sorted. A member that is listed by name need not be
// registered. It returns false if the result is not known: the placement selects members by labels and not all members
// are known, or its selector is empty or invalid.
func PlacedIn(p *v1alpha1.Placement, members []Member, known bool) ([]string, bool) {
	leaving := map[string]bool{}
	for _, m := range members {
		leaving[m.Name] = leaving[m.Name] || m.Leaving
	}
	var names []string
	switch {
	case p.Clusters != nil && p.ClusterSelector == nil:
		for _, c := range *p.Clusters {
			if !leaving[string(c)] {
				names = append(names, string(c))
			}
		}
	case p.ClusterSelector != nil && p.Clusters == nil && known:
		selected, err := selects(p.ClusterSelector)
		if err != nil {
			return nil, false
		}
		for _, m := range members {
			if !m.Leaving && selected(m.Labels) {
				names = append(names, m.Name)
			}
		}
	default:
		return nil, false
	}
	return sortedUnique(names), true
}

// selects returns a function that reports whether a selector matches a member's labels.
func selects(selector *metav1.LabelSelector) (func(map[string]string) bool, error) {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller only asks whether there is one
	}
	return func(l map[string]string) bool { return s.Matches(memberLabels(l)) }, nil
}

// memberLabels are labels in the form that selectors use.
type memberLabels map[string]string

// Has reports whether a label exists.
func (l memberLabels) Has(key string) bool { _, ok := l[key]; return ok }

// Get returns the value of a label.
func (l memberLabels) Get(key string) string { return l[key] }

// Lookup returns the value of a label and whether there is one.
func (l memberLabels) Lookup(key string) (string, bool) { v, ok := l[key]; return v, ok }

// clustersOf returns the labels of the members by name, or nil if the fleet is not known.
func clustersOf(in Input) map[string]map[string]string {
	if in.Clusters == nil {
		return nil
	}
	out := make(map[string]map[string]string, len(in.Clusters))
	for _, c := range in.Clusters {
		out[c.Name] = c.Labels
	}
	return out
}

// WithoutRequests returns the reason why Cilium's HTTP rules are not enforced in the member; zero if they are, as far as
// is known.
func (c *Cluster) WithoutRequests() message.Message {
	if c.NoRequests.IsZero() && c.Dataplane != nil {
		return message.Restore(c.Dataplane.NoHTTP, c.Dataplane.NoHTTPCode, c.Dataplane.NoHTTPParams)
	}
	return c.NoRequests
}

// noRequestsOf returns the members without HTTP rules, by name, with the reasons.
func noRequestsOf(in Input) map[string]message.Message {
	var out map[string]message.Message
	for _, c := range in.Clusters {
		if why := c.WithoutRequests(); !why.IsZero() {
			if out == nil {
				out = map[string]message.Message{}
			}
			out[c.Name] = why
		}
	}
	return out
}

// isPlacedIn reports whether a member may have units of the class. It returns true if no member is named.
func (c *resourceClass) isPlacedIn(s *Snapshot, cluster string) bool {
	if c.places == nil || cluster == "" {
		return true
	}
	if _, ok := c.places[cluster]; ok {
		return true
	}
	// An unknown member is treated as if the class were placed there; see CheckCluster.
	_, known := s.clusters[cluster]
	return s.clusters != nil && !known
}

// ErrUnknownCluster is wrapped by the error of CheckCluster.
var ErrUnknownCluster = errors.New("no member of the fleet has this name")

// CheckCluster returns an error if the fleet is known and no member has the name. "" is always valid.
func (s *Snapshot) CheckCluster(name string) error {
	if name == "" || s.clusters == nil {
		return nil
	}
	if _, ok := s.clusters[name]; ok {
		return nil
	}
	names := sortedKeys(s.clusters)
	more := ""
	if n := len(names) - 10; n > 0 {
		names, more = names[:10], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("cluster %q: %w: there are %s%s", name, ErrUnknownCluster, cmp.Or(strings.Join(names, ", "), "none"), more)
}

// placesOf returns the members in which a class is placed; nil means every member.
func (s *Snapshot) placesOf(p *v1alpha1.Placement) map[string]struct{} {
	out := map[string]struct{}{}
	switch {
	case p.Clusters != nil:
		for _, c := range *p.Clusters {
			out[string(c)] = struct{}{}
		}
		return out
	case p.ClusterSelector != nil && s.clusters != nil:
		selected, err := selects(p.ClusterSelector)
		if err != nil {
			return nil // such a class is not accepted; the strict interpretation is that it is placed everywhere
		}
		for name, labels := range s.clusters {
			if labels == nil || selected(labels) {
				out[name] = struct{}{}
			}
		}
		return out
	default:
		return nil
	}
}
