package policy

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Cluster is a member of the fleet.
type Cluster struct {
	Name string
	// Labels by which placements select it; nil: not known, so that any may.
	Labels map[string]string
	// NoRequests says why the member does not get Cilium's rules about requests (method, path); "": it does. It counts in
	// decisions about what the members have, and in no unit.
	NoRequests string `json:",omitempty"`
	// Dataplane is what is known of its dataplane; nil: nothing, so that defaults count.
	Dataplane *v1alpha1.MemberDataplane `json:",omitempty"`
}

// Member is a registered member, as far as it decides what is placed there.
type Member struct {
	Name string
	// Labels are those of its registration, by which classes place.
	Labels map[string]string
	// Leaving: nothing is placed there any more.
	Leaving bool
}

// PlacedIn returns the members that a placement names, sorted. A member that is named need not be registered. False: not known,
// because the placement selects members by their labels and not all members are known, or because it selects by nothing or by
// something that is no selector.
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

// selects returns what a selector of members selects by their labels.
func selects(selector *metav1.LabelSelector) (func(map[string]string) bool, error) {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller only asks whether there is one
	}
	return func(l map[string]string) bool { return s.Matches(memberLabels(l)) }, nil
}

// memberLabels are labels as selectors read them.
type memberLabels map[string]string

// Has tells whether there is a label.
func (l memberLabels) Has(key string) bool { _, ok := l[key]; return ok }

// Get returns the value of a label.
func (l memberLabels) Get(key string) string { return l[key] }

// Lookup returns the value of a label and whether there is one.
func (l memberLabels) Lookup(key string) (string, bool) { v, ok := l[key]; return v, ok }

// clustersOf are the labels of the members by name; nil: the fleet is not known.
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

// WithoutRequests says why the member does not get Cilium's rules about requests; "": it does, as far as is known.
func (c *Cluster) WithoutRequests() string {
	if c.NoRequests == "" && c.Dataplane != nil {
		return c.Dataplane.NoHTTP
	}
	return c.NoRequests
}

// noRequestsOf are the members without rules about requests, by name, with the reasons.
func noRequestsOf(in Input) map[string]string {
	var out map[string]string
	for _, c := range in.Clusters {
		if why := c.WithoutRequests(); why != "" {
			if out == nil {
				out = map[string]string{}
			}
			out[c.Name] = why
		}
	}
	return out
}

// isPlacedIn tells whether members may have units of the class. Which they have is not asked where no member is named.
func (c *resourceClass) isPlacedIn(s *Snapshot, cluster string) bool {
	if c.places == nil || cluster == "" {
		return true
	}
	if _, ok := c.places[cluster]; ok {
		return true
	}
	// A member that nobody has heard of is judged as if the class were there; see CheckCluster.
	_, known := s.clusters[cluster]
	return s.clusters != nil && !known
}

// ErrUnknownCluster is what CheckCluster returns, wrapped.
var ErrUnknownCluster = errors.New("no member of the fleet has this name")

// CheckCluster returns an error when the fleet is known and no member has the name; "" asks for no member.
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

// placesOf are the members that a class is placed in; nil: wherever the question is about.
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
			return nil // such a class is not accepted; the strict reading is that it counts
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
